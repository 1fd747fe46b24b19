"""Pages that are written from the code say what the code says; every public name is in the reference and has an example."""

import importlib.util
import inspect
import json
import platform
import re
from importlib.metadata import metadata, version
from pathlib import Path

import near
import pytest
from ops.harness import elementwise_cards

import numbascan as ns
from numbascan.emit.inside.vector_forms import present
from numbascan.modes import LOOP_PASSES, REWRITES

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(autouse=True)
def modules_of_the_pages_are_found(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))


def load(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_functions_is_up_to_date():
    table = load("ops_table")
    assert table.page() == table.PAGE.read_text(encoding="utf-8"), "run python docs/ops_table.py"


def test_what_the_table_says_of_one_card_is_what_the_card_says():
    table = load("ops_table")
    asked = {table.bare_name(names[0] + names[1]): function for function, *names in table.functions()}
    cards = [card for card in elementwise_cards() if card.name in asked]
    assert len(cards) > 60
    said = {card.name: table.ops_support.derivatives(asked[card.name], card.name) for card in cards}
    assert said == {card.name: "yes" if card.has_derivative else "no" for card in cards}


def test_the_table_says_which_functions_have_cuda_code():
    said = {row[0] or row[1]: row[4] for row in load("ops_table").rows()}
    assert (said["`np.tanh`"], said["`np.linalg.solve`"], said["`np.fft.fft`"]) == ("yes", "small", "no")


SIMD = {"exp": "yes", "isnan": "yes", "cumsum": "no", "matmul": "BLAS", "shape": ""}


@pytest.mark.skipif(platform.machine() != "x86_64" or not present(), reason="the table is that of x86-64 with libmvec")
@pytest.mark.parametrize("name", [*SIMD, pytest.param("", marks=pytest.mark.long, id="all")])
def test_what_the_table_says_of_simd_is_what_llvm_made(name):
    table = load("ops_table")
    kept = json.loads(table.MEASURED.read_text(encoding="utf-8"))["simd"]
    asked = [(function, names[0] + names[1]) for function, *names in table.functions()]
    chosen = [(function, names) for function, names in asked if name in ("", table.bare_name(names))]
    found = {names[0]: table.ops_support.simd(function, table.bare_name(names)) for function, names in chosen}
    assert found == {names[0]: kept[names[0]] for _, names in chosen}
    assert not name or set(found.values()) == {SIMD[name]}


def test_the_page_of_rewrites_has_a_row_for_each_in_their_order():
    page = (DOCS / "rewrites.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)`", page, re.MULTILINE) == [*REWRITES, *LOOP_PASSES]


def test_the_table_of_what_is_near_a_change_is_up_to_date():
    assert near.markdown() in (DOCS / "contributing.md").read_text(encoding="utf-8"), "put what near.markdown() gives in"


def test_what_is_near_a_change_is_there():
    for place, tests in near.table().items():
        for path in (place, *tests):
            assert (near.ROOT / path).exists(), path


def test_every_folder_of_the_package_has_tests_near_it():
    package = near.ROOT / "numbascan"
    folders = {f"numbascan/{path.name}/" for path in package.iterdir() if path.is_dir() and any(path.glob("*.py"))} - {"numbascan/data/"}
    assert folders <= near.table().keys()


def test_the_longest_place_counts_and_changed_tests_run_themselves():
    assert near.tests_of(["numbascan/rewrite/one_step.py"]) == ["tests/snapshots", "tests/rewrite", "tests/docs"]
    assert near.tests_of(["numbascan/front/random/stream.py"]) == ["tests/snapshots", *near.table()["numbascan/front/random/"]]
    assert near.tests_of(["tests/docs/test_pages.py", "numbascan/ops/special.py"])[1:] == near.table()["numbascan/ops/"]
    assert near.tests_of(["tests/docs/test_pages.py"]) == ["tests/snapshots", "tests/docs/test_pages.py"]


def test_cards_are_known_from_the_lines_that_change_and_from_what_stands_around_them():
    assert near.cards_in("@@ -122 +122 @@ def sigmoid(x: Any) -> Any:\n-    one = 1\n+    one = 2") == {"sigmoid"}
    assert near.cards_in("@@ -122 +122 @@ SOFTPLUS = special(\n-    softplus,\n+    other,\n--- a/exp.py") == {"softplus"}


def test_every_function_in_the_table_says_what_it_gives():
    assert [row for row in load("ops_table").rows() if not row[2]] == []


@pytest.mark.parametrize(
    "name", [*(name for name in ns.__all__ if name not in ("lax", "tensor")), *(f"lax.{name}" for name in ns.lax.__all__)]
)
def test_public_names_are_in_the_reference(name):
    pages = (DOCS / "api.md").read_text(encoding="utf-8") + (DOCS / "errors.md").read_text(encoding="utf-8")
    assert re.search(rf"^(   |\.\. autoexception:: ){re.escape(name)}$", pages, re.MULTILINE)


@pytest.mark.parametrize(
    "function",
    [*(one for name in ns.__all__ if inspect.isroutine(one := getattr(ns, name))), *(getattr(ns.lax, name) for name in ns.lax.__all__)],
)
def test_public_functions_have_an_example(function):
    assert ">>> " in inspect.getdoc(function)


PAGES = [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]
WIDEST = 88  # what a page shows at once, beside its contents; on a phone code scrolls in its box


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(DOCS.parent).as_posix())
def test_code_is_not_wider_than_a_page(path):
    fence, wide = "", []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        mark = re.match(r"`{3,}|:{3,}", line)
        if mark and fence in ("", mark[0]):
            fence = "" if fence else mark[0] * mark[0].startswith("`")  # what stands between colons is a page, not code
        elif fence and len(line) > WIDEST:
            wide.append((number, line))
    assert wide == []


def test_the_citation_has_the_version_of_the_package():
    citation = (DOCS.parent / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {version('numbascan')}\n" in citation


def test_classifiers_name_the_versions_of_python_that_are_allowed():
    about = metadata("numbascan")
    named = {
        line.rpartition(" ")[2] for line in about.get_all("Classifier") if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", line)
    }
    first, last = re.search(r">=3\.(\d+)", about["Requires-Python"]), re.search(r"<3\.(\d+)", about["Requires-Python"])
    assert named == {f"3.{minor}" for minor in range(int(first[1]), int(last[1]))}


def test_the_table_of_long_first_calls_is_that_of_the_stored_run():
    benches = DOCS.parent / "benches"
    rows = json.loads((benches / "results" / "first_calls" / "latest.json").read_text(encoding="utf-8"))
    for row in rows:
        ours, theirs = row["seconds"]["numbascan"], row["seconds"]["JAX"]
        line = f"| {row['name']} | {row['cache']} | {ours:.1f} | {theirs:.1f} | {theirs / ours:.2f} |"
        assert line in (DOCS / "performance.md").read_text(encoding="utf-8")
