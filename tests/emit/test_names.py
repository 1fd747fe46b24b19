"""Whatever a variable, a loop or a function is called: its code means what it means under plain names, and messages show the name."""

from __future__ import annotations

import ast
import unicodedata
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import numbascan as ns
import numbascan.tensor as nt
from numbascan.compile import _identifier
from numbascan.emit.cpu.module import RESERVED, beginnings, module_text
from numbascan.emit.cuda import module as cuda
from numbascan.emit.names import ROUTINES
from numbascan.emit.runtime import routines
from numbascan.ir.graph import close
from numbascan.ir.loops import Let, Name
from numbascan.ir.mentions import mentioned
from numbascan.ir.names import RESERVED as OF_PYTHON
from numbascan.ir.names import Names, identifier, verbatim
from numbascan.ir.node import new_input
from numbascan.modes import Mode
from numbascan.ops.algebra import add
from numbascan.plan.cpu import CPU
from numbascan.plan.cuda import CUDA
from numbascan.plan.plan import plan
from numbascan.types import TensorType

ODD = [
    "µ",
    "μ",
    "x₁",
    "x1",
    "σ²",
    "σ",
    "spectral",
    "externals",
    "np",
    "s {0}",
    "{",
    "lambda",
    "match",
    "",
    "first",
    "t",
    "%d\n'\"\\",
    "ERROR_1",
    "f_lanes",
]
ODD += [
    "ValueError",
    "𝐱",
    "_",
    "9",
    "a" * 300,
    "é" * 300,
    "\ud800",
    "__debug__",
    "in_threads",
    "中",
    "e\u0301",
    "float64_1d",
    "steps",
    "n_steps",
]
texts = st.text(max_size=30) | st.sampled_from([*ODD, *RESERVED, *sorted(OF_PYTHON)])


def normal(name: str) -> str:
    return unicodedata.normalize("NFKC", name)


@given(texts)
@example("µ" * 300)
def test_any_text_gives_a_name_that_python_reads_as_it_stands(text: str) -> None:
    name = identifier(text, "x")
    ast.parse(f"{name} = 1")
    assert (normal(name), mentioned([Let(name, Name("int64", name))])) == (name, {name})
    assert len(name.encode()) <= 82
    assert verbatim(text).format() == text


@settings(max_examples=50)
@given(st.lists(texts, min_size=1, max_size=12), texts)
@example(ODD, "f")
@example(["x"], "exp_in")
def test_variables_have_names_of_their_own(names: list[str], title: str) -> None:
    inputs = [new_input(TensorType("float64", (None,)), name) for name in names]
    total = inputs[0]
    for node in inputs[1:]:
        total = add(total, node)
    function = _identifier(title, Mode())
    made = plan(close(inputs, [total]), CPU, function, reserved=RESERVED, beginnings=beginnings(function)).function
    taken = [argument.name for argument in made.arguments]
    assert len({*map(normal, taken), function}) == len(names) + 1
    assert {*taken, function}.isdisjoint({*RESERVED, *OF_PYTHON})
    assert not any(name.startswith(beginnings(function)) for name in (*taken, function, *RESERVED))
    text = module_text(made)
    (defined,) = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert (defined.name, [one.arg for one in defined.args.args]) == (function, taken)
    text.encode()


@settings(max_examples=50)
@given(st.lists(texts | st.sampled_from(cuda.RESERVED), min_size=1, max_size=5), texts | st.sampled_from(cuda.RESERVED))
@example(["f_kernel_1", "error", "first"], "f")
def test_names_in_modules_with_kernels_mean_one_thing(names: list[str], title: str) -> None:
    reserved = (*RESERVED, *cuda.RESERVED)
    inputs = [new_input(TensorType("float64", (None,)), name) for name in names]
    function = _identifier(title, Mode(target="cuda"))
    graph = close(inputs, [reduce(add, inputs)])
    text = cuda.module_text(plan(graph, CUDA, function, reserved=reserved, beginnings=beginnings(function)).function)
    (*kernels, host) = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    own = {node.id for node in ast.walk(host) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {one.arg for one in host.args.args}
    assert host.name == function
    assert own.isdisjoint({*reserved, *OF_PYTHON, function, *(kernel.name for kernel in kernels)})


def test_a_loop_over_lanes_does_not_take_the_name_of_a_helper() -> None:
    def last(x: Any) -> Any:
        return ns.scan(lambda s: np.exp(-s) * x, outputs_info=[x], n_steps=20, return_updates=False)[-1]

    x = np.linspace(0.1, 1.0, 70)
    lanes = ns.jit(ns.vmap(last), name="exp_in")(x)
    np.testing.assert_array_equal(lanes, ns.jit(ns.vmap(last), name="exp")(x))
    np.testing.assert_allclose(lanes, ns.jit(ns.vmap(last), mode="python")(x), rtol=1e-13)


def test_every_module_of_routines_is_reserved() -> None:
    from pathlib import Path

    modules = {path.stem for path in Path(routines.__file__).parent.glob("*.py")} - {"__init__"}
    assert modules == set(ROUTINES)


def test_names_of_any_kind_in_one_graph() -> None:
    """Inputs, rows in memory, shared variables, loops, keys of results and the function itself."""
    numbers = [nt.dscalar(name) for name in ODD]
    rows = [nt.dvector(name) for name in ODD[:6]]
    shared = [ns.shared(float(k), name=name) for k, name in enumerate(ODD[:6])]
    loops = {}
    for k, (name, row) in enumerate(zip(ODD, rows * 6, strict=False)):
        first = numbers[k] * nt.ones(12)
        first.name = ODD[-1 - k]
        if k % 5 == 0:
            loops[name] = ns.scan(lambda x, s: (s + x)[::-1] * 0.5, row, first, name=name, return_updates=False)[-1]
    total = sum(number * (k + 1) for k, number in enumerate([*numbers, *shared]))
    results = {**loops, "{total}": total}
    values = [float(np.sin(k)) for k in range(len(numbers))] + [np.arange(3.0) + k for k in range(len(rows))]
    compiled, plain = (ns.function([*numbers, *rows], results, mode=mode, name="σ {0}\n" + "é" * 300)(*values) for mode in (None, "python"))
    assert list(compiled) == list(plain) == list(results)
    for key, value in plain.items():
        np.testing.assert_allclose(compiled[key], value, rtol=1e-13)


@pytest.mark.parametrize("mode", [None, "python"])
def test_messages_show_names_as_they_are(mode: str | None) -> None:
    name, row = "s {0}, lane {1}", "x {9} %d"

    def f(*values: Any) -> Any:
        x = nt.dvector(row)
        n = nt.lscalar("n")
        loop = ns.scan(lambda x: np.log(x), x, n_steps=n, name=name, return_updates=False)
        return ns.function([x, n], loop, mode=ns.Mode(target=mode or "numba", check_finite=True) if values else mode)

    with pytest.raises(ValueError, match="n_steps") as short:
        f()(np.ones(3), 5)
    assert f"scan {name!r}: sequence 0 ({row}) has 3 rows" in str(short.value)
    with pytest.raises(FloatingPointError) as wrong:
        f(1)(np.zeros(3), 2)
    assert str(wrong.value).startswith(f"scan {name!r}, step 0: ")


def test_an_input_is_given_by_its_name_as_python_writes_it() -> None:
    x, mu = nt.dscalar("𝐱"), nt.dscalar("µ")
    f = ns.function([x, mu], x - mu, mode="python")
    assert f(𝐱=5.0, µ=2.0) == f(**{"𝐱": 5.0, "µ": 2.0}) == 3.0


@pytest.mark.parametrize("name", ["np", "range", "IndexError", "exp", "linalg", "njit", "ERROR_1"])
def test_a_loop_may_be_called_what_its_code_uses(name: str) -> None:
    def step(x: Any, s: Any, a: Any) -> Any:
        return np.exp(-s) * x[0] + np.linalg.solve(a, x).sum()

    x, a = np.random.default_rng(0).normal(size=(3, 5)), np.eye(5) * 2 + 0.1
    compiled, plain = (ns.scan(step, name=name, mode=mode)(x, 0.5, a) for mode in (None, "python"))
    np.testing.assert_allclose(compiled, plain, rtol=1e-12)


def test_a_name_that_is_free_again_is_given_next() -> None:
    names = Names()
    assert [names.fresh("x") for _ in range(4)] == ["x", "x_2", "x_3", "x_4"]
    names.free("x_2")
    assert [names.fresh("x") for _ in range(2)] == ["x_2", "x_5"]
    copy = names.copy()
    assert copy.fresh("x") == names.fresh("x") == "x_6"
    assert [names.fresh("x1"), names.fresh("x1"), names.fresh("x1_v2")] == ["x1", "x1_v2", "x1_v2_v2"]


def test_a_name_of_a_counter_is_given_to_counters_alone() -> None:
    names = Names()
    names.counters.add(names.fresh("i", is_counter=True))
    names.free("i")
    assert [names.fresh("i"), names.fresh("i", is_counter=True), names.fresh("i", is_counter=True)] == ["i_2", "i", "i_3"]


def test_no_name_comes_from_another_program() -> None:
    """Equal nodes are one node while they live: names that other programs gave them, and equal constants, are not shown."""
    held = [ns.scan(lambda a, b, s: s + a * b, [nt.dvector("a"), nt.dvector("b")], 0.0, return_updates=False), nt.constant(1)]
    held[1].name = "one_of_theirs"
    a, b, c = nt.dvector("a"), nt.dvector("b"), nt.dvector("c")
    other = ns.function([a, b], ns.scan(lambda a, b, s: s + a * b, [a, b], 0.0, return_updates=False))
    other(np.ones(3), np.ones(3))
    f = ns.function([a, b, c], ns.scan(lambda a, b, c, s: s + a * b * c + 1, [a, b, c], 0.0, return_updates=False))
    f(np.ones(3), np.ones(3), np.ones(3))
    assert "n_steps = min(min(a.shape[0], b.shape[0]), c.shape[0])" in f.source()
    assert "one_of_theirs" not in str(ns.show(f))
    assert held[1].name == "one_of_theirs"
    assert str(ns.show(ns.function([a], a + held[1]))).count("one_of_theirs") == 2
