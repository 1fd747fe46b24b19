"""The text of modules, and what their functions take and refuse."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import random
import subprocess
import sys
from collections import namedtuple

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan import backends


def loaded(exported, folder):
    """The module, imported."""
    path = exported.export(folder / "exported_model.py")
    spec = importlib.util.spec_from_file_location("exported_model", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_kernel_is_the_generated_code(tmp_path):
    @ns.scan
    def falling(y, rate):
        return y * rate

    falling.lower(outputs_info=1.0, non_sequences=0.5, n_steps=3)
    text = falling.export(tmp_path / "model.py").read_text()
    kernel = text[text.index("def falling_kernel") : text.index("# arguments")]
    assert "    for t in range(n_steps):\n        y_2 *= rate\n        y_rows[t] = y_2\n" in kernel
    assert "numbascan.emit" not in text
    assert "Any" not in text


def test_arguments_go_by_position_and_by_name(tmp_path):
    x, y = nt.dscalars("x y")
    module = loaded(ns.function([x, y], x - y, name="difference"), tmp_path)
    assert [float(module.difference(3, 1.5)), float(module.difference(y=1.0, x=2))] == [1.5, 1.0]


def test_arguments_that_were_given_by_name_have_the_places_of_the_signature(tmp_path):
    def share(b, a, *, d, c, **more):
        return (b - a) * d / c + 100 * more["z"] - more["e"]

    numbers = {"e": 6.0, "z": 7.0, "c": 4.0, "d": 3.0, "a": 5.0, "b": 1.0}
    module = loaded(ns.jit(share).lower(**numbers), tmp_path)
    expected = share(**numbers)
    assert module.share(1.0, 5.0, c=4.0, d=3.0, z=7.0, e=6.0) == module.share(**numbers) == expected
    assert module.share_njit(1.0, 5.0, 3.0, 4.0, 6.0, 7.0) == expected
    with pytest.raises(TypeError, match="positional argument"):
        module.share(1.0, 5.0, 3.0, 4.0, 6.0, 7.0)


def random_parameters(chance, names):
    """Positional ones, those of both kinds, keywords, and defaults, as Python writes them; the names that are left out go into **more."""
    k, m, n = sorted(chance.choices(range(len(names) + 1), k=3))
    first_default = chance.choice([k, m, len(names)])
    texts = [f"{name}=None" if first_default <= place < m else name for place, name in enumerate(names)]
    alone = ["*", *texts[m:n]] if n > m else []
    return ", ".join([*texts[:k], *["/"] * (k > 0), *texts[k:m], *alone, *["**more"] * (n < len(names))])


def signature_of(parameters):
    scope = {}
    exec(f"def call({parameters}): pass", scope)
    return inspect.signature(scope["call"])


def bound(signature, args, named):
    """Which name gets which value; None where Python refuses the call."""
    try:
        arguments = dict(signature.bind(*args, **named).arguments)
    except TypeError:
        return None
    return arguments | arguments.pop("more", {})


@pytest.mark.parametrize("seed", range(25))
def test_a_module_puts_every_argument_where_the_original_does(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(backends, "jit_is_off", lambda: True)  # it is asked what the module takes, not what it computes
    chance = random.Random(seed)
    names = chance.sample("abcdeg", 5)
    parameters = random_parameters(chance, names)
    original, scope = signature_of(parameters), {}
    exec(f"def f({parameters}): return 0.0", scope)
    calls = [(range(chance.randint(0, 4)), dict.fromkeys(chance.sample(names, chance.randint(0, 5)), 9.0)) for _ in range(400)]
    calls = [(list(map(float, places)), named) for places, named in calls]
    calls = [call for call in calls if bound(original, *call)]
    args, named = calls[0]
    text, refused = "", ""
    try:
        text = ns.jit(scope["f"]).lower(*args, **named).export(tmp_path / "model.py").read_text()
    except NotImplementedError as error:
        refused = str(error)
    assert text or "which stands before it" in refused or "has two arguments called" in refused
    if refused:
        return
    (exported,) = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == "f")
    taken = signature_of(ast.unparse(exported.args))
    assert bound(taken, args, named) == bound(original, args, named)
    assert all(bound(taken, *call) in (None, bound(original, *call)) for call in calls)


def test_an_argument_behind_one_that_was_left_out_has_no_place():
    late = ns.jit(lambda b, d=2.0, c=5.0: b - c * d, name="late").lower(1.0, c=2.0)
    with pytest.raises(NotImplementedError, match="late was compiled for c without d, which stands before it"):
        _ = late.njit


@pytest.fixture(scope="module")
def scaled(tmp_path_factory):
    function = ns.jit(lambda x, k: x * k, name="scaled").lower(np.ones(3), 2)
    return loaded(function, tmp_path_factory.mktemp("scaled")).scaled


@pytest.mark.parametrize(
    "x, k, error, words",
    [
        (np.ones(4), 2, ValueError, "scaled: x has length 4 along axis 0, where 3 is compiled in"),
        (np.ones(3, "float32"), 2, TypeError, r"scaled: x has dtype float32, where float64 is needed; write value.astype\('float64'\)"),
        (np.ones((3, 1)), 2, TypeError, r"scaled: x has 2 dimensions \(shape \(3, 1\)\), where 1 are needed"),
        (np.ones(3), 2.5, TypeError, "scaled: k has dtype float64, where int64 is needed"),
        (np.ones(3), 2**70, TypeError, "scaled: k has dtype object"),
        ("abc", 2, TypeError, "scaled: x has dtype"),
    ],
)
def test_what_does_not_fit_is_refused(scaled, x, k, error, words):
    with pytest.raises(error, match=words):
        scaled(x, k)


def test_lists_and_other_layouts_are_taken(scaled):
    assert [3.0, 6.0, 9.0] == scaled([1, 2, 3], 3).tolist() == scaled(np.array([9.0, 6.0, 3.0])[::-1] / 3, 3.0).tolist()


def test_errors_of_the_run_tell_what_was_seen(tmp_path):
    module = loaded(ns.jit(lambda x, i: x[i], name="picked").lower(np.ones(20), 3), tmp_path)
    with pytest.raises(IndexError, match="index 25 is out of bounds for axis 0 with size 20"):
        module.picked(np.ones(20), 25)
    assert float(module.picked(np.arange(20.0), -3)) == 17.0


def test_nests_come_and_go_in_their_structure(tmp_path):
    Point = namedtuple("Point", "x y")
    moved = ns.jit(lambda p, by=None: {"to": Point(p["at"][0] + p["by"], p["at"].y), "none": by}, name="moved")
    module = loaded(moved.lower({"by": 1.0, "at": Point(2.0, np.ones(2))}, None), tmp_path)
    result = module.moved({"at": (2.0, [1, 1]), "by": 1.0}, None)
    assert (list(result), float(result["to"].x), result["to"].y.tolist()) == (["to", "none"], 3.0, [1.0, 1.0])
    with pytest.raises(TypeError, match="moved: p must be a dict with the keys 'at', 'by'"):
        module.moved({"at": (2.0, [1, 1])}, None)
    with pytest.raises(TypeError, match=r"moved: p\['at'\] must be a tuple or list of 2"):
        module.moved({"at": 2.0, "by": 1.0}, None)


def test_lists_of_a_length_that_only_the_run_knows_are_lists(tmp_path):
    kept = ns.jit(lambda x: ([v for v in x if v > 0], tuple(v * 2 for v in x), x[x > 1]), name="kept")
    x = np.arange(-3.0, 20.0)
    some, twice, greater = loaded(kept.lower(x), tmp_path).kept(x)
    assert (type(some), type(twice)) == (list, tuple)
    assert [float(v) for v in some] == [*range(1, 20)]
    assert [float(v) for v in twice] == [*range(-6, 40, 2)]
    np.testing.assert_array_equal(greater, x[x > 1])
    pairs = ns.jit(lambda x: [(i, v) for i, v in enumerate(x)], name="pairs")
    with pytest.raises(NotImplementedError, match="list of nests"):
        pairs.lower(x).export(tmp_path / "pairs.py")


def test_results_are_arrays_of_their_own(tmp_path):
    v = nt.dvector("v")
    module, given = loaded(ns.function([v], v, name="same"), tmp_path), np.ones(3)
    assert not np.shares_memory(module.same(given), given)


def test_a_shared_array_of_one_number_broadcasts(tmp_path):
    v = nt.dvector("v")
    module = loaded(ns.function([v], v + ns.shared(np.array([2.0])), name="raised"), tmp_path)
    assert module.raised([1.0, 2.0]).tolist() == [3.0, 4.0]


def test_an_argument_may_be_called_as_what_the_module_uses(tmp_path):
    named = ns.jit(lambda log, error, max, first: np.exp(log) + error * max - first, name="named").lower(0.0, 2.0, 3.0, 4.0)
    assert float(loaded(named, tmp_path).named(log=0.0, error=2.0, max=3.0, first=4.0)) == 3.0


WAYS = """
import importlib, importlib.util, pathlib, runpy, sys

folder = sys.argv[1]

def by_path(name):
    spec = importlib.util.spec_from_file_location(name, f"{folder}/package/shape.py")
    module = importlib.util.module_from_spec(spec)
    return spec, module

spec, module = by_path("shape")
spec.loader.exec_module(module)
print(module.area(2.0), "by its path")
spec, sys.modules["any.name"] = by_path("any.name")
spec.loader.exec_module(sys.modules["any.name"])
print(sys.modules["any.name"].area(2.0), "under another name")
print(runpy.run_path(f"{folder}/package/shape.py")["area"](2.0), "as a script")
names = {}
exec(pathlib.Path(f"{folder}/package/shape.py").read_text(), names)
print(names["area"](2.0), "as a text")
sys.path.append(sys.argv[2])
module = importlib.import_module(sys.argv[3])
print(module.area(2.0), "imported")
print(sum(module.area_njit.stats.cache_hits.values()), "found")
"""


def test_a_module_works_in_every_process_however_it_is_loaded(tmp_path):
    (tmp_path / "package").mkdir()
    ns.jit(lambda r: 3.0 * r * r, name="area").lower(1.0).export(tmp_path / "package" / "shape.py")
    for place, name, hits in ((tmp_path / "package", "shape", 0), (tmp_path, "package.shape", 0), (tmp_path / "package", "shape", 1)):
        command = [sys.executable, "-c", WAYS, str(tmp_path), str(place), name]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
        assert done.returncode == 0, done.stderr
        said = [f"12.0 {way}" for way in ("by its path", "under another name", "as a script", "as a text", "imported")]
        assert done.stdout.splitlines() == [*said, f"{hits} found"]


def test_what_a_module_exports_is_named(tmp_path):
    Point = namedtuple("Point", "x y")
    module = loaded(ns.jit(lambda x: Point(x, 2 * x), name="doubled").lower(1.0), tmp_path)
    assert module.__all__ == ["doubled", "doubled_njit", "Point"]
    assert all(hasattr(module, name) for name in module.__all__)


def read_by(text, functions):
    """The names that some functions of a module use."""
    bodies = [one for one in ast.parse(text).body if isinstance(one, ast.FunctionDef) and one.name in functions]
    return sorted({node.id for body in bodies for node in ast.walk(body) if isinstance(node, ast.Name)})


def test_every_name_of_the_module_may_be_that_of_an_argument(tmp_path):
    Point = namedtuple("Point", "x y")
    scale = np.float32(0.5)

    def first(p, q):
        return {"np": Point(q * scale, p["a"] + q[0]), "k": q[0] > 1}

    text = ns.jit(first, name="named").lower({"a": 1.0}, np.ones(3, "float32")).export(tmp_path / "first.py").read_text()
    names = [*read_by(text, ("named", "named_njit")), "Point_2", "_error", "error", "x_", "x", "match", "\u03bc", "p_a", "ValueError"]
    names = [name for name in dict.fromkeys(names) if name not in ("p", "q")]
    assert {"np", "argument_of", "leaves_of", "readable", "named_njit", "named_kernel", "ValueError", "Exception"} <= set(names)
    terms = " + ".join(f"{k} * {name}" for k, name in enumerate(names, 1))
    second = eval(f"lambda p, q, {', '.join(names)}: dict(first(p, q), sum={terms})", {"first": first})
    values = {name: float(k * k) for k, name in enumerate(names, 1)}
    p, q = {"a": 1.0}, np.arange(3, dtype="float32")
    module = loaded(ns.jit(second, name="named").lower(p, q, **values), tmp_path)
    expected = second(p, q, **values)
    result = module.named(p=p, q=q, **values)
    assert list(inspect.signature(module.named).parameters)[:2] == ["p", "q"]
    assert float(result["sum"]) == expected["sum"]
    assert type(result["np"]) is module.Point
    np.testing.assert_array_equal(result["np"].x, expected["np"].x)
    with pytest.raises(ValueError, match="named: q has length 4"):
        module.named(p=p, q=np.ones(4, "float32"), **values)


def test_a_parameter_of_a_step_keeps_its_name_beside_leaves_that_are_called_so(tmp_path):
    step = ns.scan(lambda s, s_a: {"a": s["a"] * s_a})
    module = loaded(step.lower(outputs_info={"a": 1.0}, non_sequences=2.0, n_steps=3), tmp_path)
    function = getattr(module, module.__all__[0])
    assert list(inspect.signature(function).parameters) == ["s_a_2", "s_a", "n_steps"]
    assert function(1.0, s_a=3.0, n_steps=2)["a"].tolist() == [3.0, 9.0]
