"""Pages that are written from the code say what the code says; every public name is in the reference and has an example."""

import importlib.util
import inspect
from pathlib import Path

import pytest

import numbascan as ns

DOCS = Path(__file__).parents[2] / "docs"


def load(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_functions_is_up_to_date():
    table = load("ops_table")
    assert table.page() == table.PAGE.read_text(encoding="utf-8"), "run python docs/ops_table.py"


def test_every_function_in_the_table_says_what_it_gives():
    assert [row for row in load("ops_table").rows() if not row[3]] == []


@pytest.mark.parametrize(
    "name", [*(name for name in ns.__all__ if name not in ("lax", "tensor")), *(f"numbascan.lax.{name}" for name in ns.lax.__all__)]
)
def test_public_names_are_in_the_reference(name):
    pages = (DOCS / "api.md").read_text(encoding="utf-8") + (DOCS / "errors.md").read_text(encoding="utf-8")
    assert f":: {name}\n" in pages


@pytest.mark.parametrize(
    "function",
    [*(one for name in ns.__all__ if inspect.isroutine(one := getattr(ns, name))), *(getattr(ns.lax, name) for name in ns.lax.__all__)],
)
def test_public_functions_have_an_example(function):
    assert ">>> " in inspect.getdoc(function)
