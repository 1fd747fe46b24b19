"""What cannot be exported is refused by its name, and nothing is written."""

from __future__ import annotations

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

square = np.eye(9) * 2.0
large = np.ones((200, 200))
count = ns.shared(0, name="count")


@ns.scan
def counting(y):
    return y + 1.0, {count: count + 1}


REFUSED = {
    "updates": (counting.lower(outputs_info=0.0, n_steps=2), "counting updates count, and a module has no shared variables"),
    "scipy": (ns.jit(lambda x: nt.erfcx(x), name="tail").lower(1.0), "tail .* computes erfcx, and erfcx is machine code of SciPy"),
    "lapack": (ns.jit(np.linalg.eigvalsh, name="values").lower(square), "values .* computes eigvalsh, and it calls LAPACK's routine heevd"),
    "cuda": (ns.function([], nt.constant(1.0), mode="cuda", name="on_gpu"), "on_gpu is compiled for a GPU"),
    "large": (ns.jit(lambda x: large @ x, name="product").lower(np.ones(200)), "product reads 40,000 numbers .*; make them arguments"),
    "name": (ns.jit(lambda x: 2 * x, name="tuple").lower(1.0), "tuple cannot be a module: it needs tuple for something else; rename yours"),
    "name_of_ours": (ns.jit(lambda x: 2 * x, name="readable").lower(1.0), "it needs a function readable of its own; rename yours"),
    "static": (ns.jit(lambda n, x: n * x, static_argnums=0, name="times").lower(3, 1.0), "times has the static argument n"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_module_can_do_is_refused(tmp_path, name):
    exported, words = REFUSED[name]
    path = tmp_path / "model.py"
    path.write_text("before")
    with pytest.raises(NotImplementedError, match=words):
        exported.export(path)
    with pytest.raises(NotImplementedError, match=words):
        _ = exported.njit
    assert (path.read_text(), list(tmp_path.iterdir())) == ("before", [path])


def test_a_module_is_replaced_as_a_whole(tmp_path):
    x = nt.dscalar("x")
    path = tmp_path / "model.py"
    path.write_text("before")
    assert ns.function([x], x + 1, name="more").export(path) == path
    assert ("def more(x):" in path.read_text(), list(tmp_path.iterdir())) == (True, [path])


def test_a_kind_of_arguments_must_be_known(tmp_path):
    doubled = ns.jit(lambda x: 2 * x, name="doubled", mode="python")
    with pytest.raises(ValueError, match=r"doubled has not been compiled yet; call it, or doubled.lower\(...\)"):
        doubled.export(tmp_path / "model.py")
    doubled(1.0)
    doubled(np.ones(3))
    with pytest.raises(ValueError, match=r"doubled is compiled for 2 kinds of arguments, .* write doubled.lower\(...\)"):
        doubled.export(tmp_path / "model.py")
    assert "x: float64[3]" in doubled.lower(np.ones(3)).export(tmp_path / "model.py").read_text()


def test_what_has_changed_outside_is_not_exported_as_it_was(tmp_path):
    holder = {"exponent": 2}
    power = ns.jit(lambda x: x ** holder["exponent"], name="power", mode="python")
    power(2.0)
    holder["exponent"] = 3
    with pytest.raises(ValueError, match="what power reads from outside has changed since it was compiled"):
        power.export(tmp_path / "model.py")


def test_a_place_that_is_no_module_is_refused(tmp_path):
    x = nt.dscalar("x")
    function = ns.function([x], x + 1, name="more")
    with pytest.raises(ValueError, match=r"is no name of a Python module; write '.*model.py'"):
        function.export(tmp_path / "model")
    with pytest.raises(FileNotFoundError, match=r"more\.export: there is no folder"):
        function.export(tmp_path / "nowhere" / "model.py")
