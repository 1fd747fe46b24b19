"""Functions of libm in generated code: exact enough in vectors, right at every special value, plain calls where there is no libmvec."""

from __future__ import annotations

import importlib.util
import math
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from llvmlite import binding
from ops.harness import helpers

import numbascan as ns
import numbascan.tensor as nt
from numbascan.emit.inside import polynomials, vector_forms
from numbascan.emit.inside.shortcuts import VECTOR_FORMS
from numbascan.emit.inside.vector_forms import ARITY
from numbascan.emit.runtime import vecmath
from numbascan.ops.elementwise import in_lanes

DOCS = Path(__file__).parents[2] / "docs"
DTYPES = ("float64", "float32")
NAMES = sorted(ARITY)
POLYNOMIALS = sorted(polynomials.FUNCTIONS)
HELD = [*NAMES, *map(in_lanes, POLYNOMIALS)]
POINTS = 4099  # not a multiple of the lanes: the last elements are computed by calls
LONG = np.finfo(np.longdouble).nmant > 52  # else the reference has errors of its own
LIMIT = 4.0 if LONG else 5.0

has_forms = pytest.mark.skipif(
    not (vector_forms.present() and VECTOR_FORMS.is_taken()), reason="no libmvec here: plain calls, whose values the tests above hold"
)


@cache
def table() -> Any:
    spec = importlib.util.spec_from_file_location("accuracy_table", DOCS / "accuracy_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiled(names: Sequence[str], dtype: str, arity: int) -> Any:
    """One loop for each function, from the rows of x to the rows of out."""
    args = ", ".join(f"x[{k}, i]" for k in range(arity))
    lines = [f"    for i in range(x.shape[1]):\n        out[{k}, i] = {name}({args})" for k, name in enumerate(names)]
    space = helpers()
    exec("\n".join(["def kernel(x, out):", *lines]), space)
    array = numba.types.Array(getattr(numba.types, dtype), 2, "C")
    return numba.njit((array, array), error_model="numpy")(space["kernel"])


@cache
def kernel(dtype: str, arity: int) -> tuple[list[str], Any]:
    """All functions of so many operands, and the polynomials."""
    names = [name for name in NAMES if ARITY[name] == arity]
    names += [in_lanes(name) for name in POLYNOMIALS if ARITY[name] == arity]
    return names, compiled(names, dtype, arity)


def values(name: str, *points: np.ndarray) -> np.ndarray:
    """The compiled function in a loop of its own."""
    names, function = kernel(points[0].dtype.name, len(points))
    x = np.array(points)
    out = np.empty((len(names), x.shape[1]), x.dtype)
    function(x, out)
    return out[names.index(name)]


def exact(name: str, *points: np.ndarray) -> np.ndarray:
    """The function in more digits, as C has it."""
    name = name.removesuffix(in_lanes(""))
    with np.errstate(all="ignore"):
        if name in ("erf", "erfc"):  # no longer form; Python's is good to 1 and 4 ulp in double precision
            return np.array([getattr(math, name)(x) for x in points[0].tolist()], np.longdouble)
        return getattr(np, name)(*(x.astype(np.longdouble) for x in points))


def limit(name: str, dtype: str) -> float:
    return LIMIT + {"erf": 1, "erfc": 4}.get(name, 0) * (dtype == "float64")


def hard_values(dtype: str) -> np.ndarray:
    """Zeros, whole numbers, edges of domains, the ends of the range of every function, numbers of every kind; both signs."""
    info = np.finfo(dtype)
    found = [0.0, 0.5, 1.0, 1 + info.eps, 1 - info.epsneg, 1.5, 2.0, 2.5, 3.0, 4.0, 8.0, 10.0, 27.0, 100.0, 1e-3, 1e-8, 1e-20, 1e-30]
    found += [info.eps, info.tiny, info.tiny / 2, info.smallest_subnormal, info.max, np.inf, np.nan, np.pi, np.pi / 2]
    found += [1e5, 1e15, 1e22, 1e38, 9.1, 10.1, 19.5, 26.5, 27.3, 88.0, 88.8, 89.5, 104.0, 127.0, 128.0, 149.0, 150.0]
    found += [708.0, 709.9, 710.6, 746.0, 1023.0, 1024.0, 1075.0]
    array = np.array(found).astype(dtype)
    return np.concatenate([array, -array])


def assembly(function: Any) -> str:
    (text,) = function.inspect_asm().values()
    return str(text)


def processor() -> frozenset[str]:
    return vector_forms._features(numba.core.registry.cpu_target.target_context.codegen().magic_tuple()[2])


def forms_of(name: str, dtype: str) -> set[str]:
    """What a loop of this function may call on this machine."""
    if not VECTOR_FORMS.is_taken():
        return set()
    return set(vector_forms.vector_names(name, np.dtype(dtype).itemsize, processor()).values()) & vector_forms.present()


def is_polynomial(name: str) -> bool:
    """Is a function in lanes arithmetic on this machine?"""
    return name in POLYNOMIALS and VECTOR_FORMS.is_taken() and vector_forms.has_fma(numba.core.registry.cpu_target.target_context)


# values -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", HELD)
def test_errors_are_within_4_ulp(name: str, dtype: str) -> None:
    for points in table().operands(name.removesuffix(in_lanes("")), dtype, seed=1, n=POINTS):
        errors = table().ulps(values(name, *points), exact(name, *points))
        worst = int(errors.argmax())
        assert errors[worst] <= limit(name, dtype), (errors[worst], [x[worst] for x in points])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", HELD)
def test_special_values_are_those_of_c(name: str, dtype: str) -> None:
    hard = hard_values(dtype)
    points = [np.ascontiguousarray(grid.ravel()) for grid in np.meshgrid(*(hard,) * ARITY[name.removesuffix(in_lanes(""))])]
    for gap in (0, 1):  # beside one another, and each alone among numbers that are nothing special
        spread = [np.repeat(x, 8) if gap else x for x in points]
        if gap:
            for x in spread:
                x[np.arange(x.size) % 8 != 3] = 0.75
        actual, wanted = values(name, *spread), exact(name, *spread)
        with np.errstate(all="ignore"):
            rounded = wanted.astype(dtype)
        errors = table().ulps(actual, wanted)
        right = (errors <= limit(name, dtype)) & ((actual == 0) == (rounded == 0)) & (np.isinf(actual) == np.isinf(rounded))
        right &= (np.signbit(actual) == np.signbit(rounded)) | np.isnan(rounded)
        assert [tuple(x[~right][:3]) for x in spread] == [()] * len(spread)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_sines_and_cosines_never_leave_their_range(name: str, dtype: str) -> None:
    rng = np.random.default_rng(5)
    near = rng.normal(size=400_000) * rng.choice([1e-12, 1e-9, 3e-5, 1e-4], 400_000)
    for centre in (0.0, np.pi / 2, -np.pi / 2, np.pi, 5 * np.pi / 2):
        assert np.abs(values(name, (centre + near).astype(dtype))).max() <= 1.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_sigmoid_and_softplus_keep_the_digits_of_small_results(dtype: str) -> None:
    rng = np.random.default_rng(7)
    ends = (-745.0, 710.0) if dtype == "float64" else (-103.0, 89.0)
    x = np.concatenate([rng.uniform(*ends, POINTS), rng.normal(size=POINTS), rng.normal(size=POINTS) * 1e-9]).astype(dtype)
    out = np.empty((2, x.size), dtype)
    compiled(["sigmoid", "softplus"], dtype, 1)(x[None], out)
    wide = x.astype(np.longdouble)
    tail = np.exp(-np.abs(wide))
    assert table().ulps(out[0], np.where(wide < 0, tail, 1) / (1 + tail)).max() <= 6
    assert table().ulps(out[1], np.maximum(wide, 0) + np.log1p(tail)).max() <= 6


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_of_exponentials_are_exact_to_the_digits_of_the_greater_operand(dtype: str) -> None:
    rng = np.random.default_rng(8)
    pairs = np.concatenate([rng.normal(size=(2, POINTS)) * scale for scale in (1.0, 30.0, 1e6)], axis=1).astype(dtype)
    out = np.empty_like(pairs)
    compiled(["logaddexp", "logaddexp2"], dtype, 2)(pairs, out)
    wide = pairs.astype(np.longdouble)
    for actual, wanted in zip(out, (np.logaddexp(*wide), np.logaddexp2(*wide)), strict=True):
        size = np.maximum(np.abs(wide).max(axis=0), np.abs(wanted))
        assert (np.abs(actual - wanted) / size).max() <= 4 * np.finfo(dtype).eps


def test_infinite_operands_of_sums_of_exponentials() -> None:
    grid = np.array([-np.inf, -1.0, 0.0, 2.5, np.inf, np.nan])
    x, y = (np.tile(side.ravel(), 3) for side in np.meshgrid(grid, grid))
    out = np.empty((2, x.size))
    compiled(["logaddexp", "logaddexp2"], "float64", 2)(np.array([x, y]), out)
    for actual, function in zip(out, (np.logaddexp, np.logaddexp2), strict=True):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(actual, function(x, y), rtol=1e-15)


exp, hypot = vecmath.exp, vecmath.hypot


def test_integers_and_mixed_operands_give_double_precision() -> None:
    @numba.njit
    def mixed(n: int, x: Any) -> Any:
        return exp(n), hypot(x, n), hypot(x, x)

    one, two, three = mixed(2, np.float32(1.5))
    assert (one, two) == (math.exp(2), 2.5)
    assert mixed.nopython_signatures[0].return_type.types == (numba.float64, numba.float64, numba.float32)
    assert three == np.hypot(np.float32(1.5), np.float32(1.5))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_have_the_same_bits_at_every_place_and_as_numbers(name: str, dtype: str) -> None:
    x = np.concatenate([np.random.default_rng(9).normal(size=60) * 3, hard_values(dtype)]).astype(dtype)
    bits = np.dtype(dtype).str.replace("f", "i")
    whole = values(in_lanes(name), x)
    for start in range(0, x.size, 7):
        for length in (1, 2, 3, 5, 9, 17, 33):
            part = values(in_lanes(name), x[start : start + length])
            np.testing.assert_array_equal(part.view(bits), whole[start : start + length].view(bits))


# machine code -------------------------------------------------------------------------------------------------------


@has_forms
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("arity", [1, 2])
def test_a_loop_calls_the_vector_form(dtype: str, arity: int) -> None:
    names, function = kernel(dtype, arity)
    text = assembly(function)
    called = {name for name in names if name in ARITY and any(form in text for form in forms_of(name, dtype))}
    assert called == {name for name in names if name in ARITY and forms_of(name, dtype)}


@has_forms
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("arity", [1, 2])
def test_a_loop_over_lanes_calls_the_vector_form_itself(dtype: str, arity: int) -> None:
    names = [name for name in NAMES if ARITY[name] == arity]
    blocks = assembly(compiled([in_lanes(name) for name in names], dtype, arity)).split(".cfi_endproc")
    (loops,) = (block for block in blocks if re.search(r"^_ZN\d+\w*kernel\w*:", block, re.MULTILINE))
    called = {name for name in names if not is_polynomial(name) and any(form in loops for form in forms_of(name, dtype))}
    wanted = {name for name in names if forms_of(name, dtype) and not is_polynomial(name)}
    assert called == wanted
    assert all(in_lanes(f"{name}{'f' * (dtype == 'float32')}") in loops for name in wanted)  # what is left over


@has_forms
def test_generated_code_of_several_functions_in_one_loop_calls_the_vector_forms() -> None:
    x = nt.dvector("x")
    function = ns.function([x], np.exp(-(x**2)) * np.tanh(x) + nt.softplus(x) * nt.sigmoid(x) + np.logaddexp(x, np.cos(x)))
    points = np.random.default_rng(2).normal(size=100)
    soft, sigmoid = np.logaddexp(points, 0), 1 / (1 + np.exp(-points))
    expected = np.exp(-(points**2)) * np.tanh(points) + soft * sigmoid + np.logaddexp(points, np.cos(points))
    np.testing.assert_allclose(function(points), expected, rtol=1e-14)
    space: dict[str, Any] = {}
    exec(function.source().replace("cache=True, ", ""), space)
    *_, kernel = (value for value in space.values() if hasattr(value, "inspect_asm"))  # helpers stand before it
    text = assembly(kernel)
    for name in ("exp", "tanh", "log1p", "cos"):
        assert is_polynomial(name) or any(form in text for form in forms_of(name, "float64")), name


@pytest.mark.skipif(not is_polynomial("exp"), reason="a processor without fused multiplication and addition")
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_loop_over_lanes_of_polynomials_calls_nothing(dtype: str) -> None:
    blocks = assembly(compiled(map(in_lanes, POLYNOMIALS), dtype, 1)).split(".cfi_endproc")
    (loops,) = (block for block in blocks if re.search(r"^_ZN\d+\w*kernel\w*:", block, re.MULTILINE))
    assert not re.search(r"call.*(exp|tanh)", loops)
    if "x86" in binding.get_process_triple():
        letter = {"float64": "d", "float32": "s"}[dtype]
        assert re.search(rf"vfn?madd\d+p{letter}\s.*[yz]mm", loops)  # in vectors


def test_without_libmvec_there_are_plain_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_forms, "present", frozenset)
    function = compiled(["exp", "sin"], "float64", 1)
    assert "_ZGV" not in assembly(function)
    x = np.linspace(-3, 3, 50)[None]
    out = np.empty((2, 50))
    function(x, out)
    np.testing.assert_allclose(out, [np.exp(x[0]), np.sin(x[0])], rtol=1e-15)


def test_no_vector_form_is_wider_than_the_registers() -> None:
    assert vector_forms.vector_names("exp", 8, frozenset()) == {}
    assert vector_forms.vector_names("exp", 8, {"sse2"}) == {2: "_ZGVbN2v_exp"}
    assert vector_forms.vector_names("pow", 4, {"sse2", "avx"}) == {4: "_ZGVbN4vv_powf", 8: "_ZGVcN8vv_powf"}
    assert vector_forms.vector_names("tan", 4, {"sse2", "avx", "avx2"}) == {4: "_ZGVbN4v_tanf", 8: "_ZGVdN8v_tanf"}


def test_a_missing_library_has_no_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_forms, "LIBRARY", "libnone.so.0")
    assert vector_forms.present.__wrapped__() == frozenset()


# on disk ------------------------------------------------------------------------------------------------------------

PROGRAM = """
import numpy as np
import numbascan as ns

x = np.linspace(-2.0, 2.0, 101)
print(ns.jit(lambda x: np.log1p(x * x) + np.sin(x))(x).tobytes().hex())
"""


def run(program: str, folder: Path, **settings: str) -> str:
    environment = {**os.environ, "NUMBASCAN_CACHE_DIR": str(folder), **settings}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_code_from_the_disk_finds_the_vector_forms(tmp_path: Path) -> None:
    first = run(PROGRAM, tmp_path)
    before = _times(tmp_path)
    assert run(PROGRAM, tmp_path) == first
    assert _times(tmp_path) == before
    stored = b"".join(path.read_bytes() for path in before if path.suffix != ".py")
    for name in ("log1p", "sin"):
        assert not forms_of(name, "float64") or any(form.encode() in stored for form in forms_of(name, "float64"))


def _times(folder: Path) -> dict[Path, int]:
    """When each file was written, but for those that say when code was last used."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file() and path.suffix != ".used"}


# names --------------------------------------------------------------------------------------------------------------


def test_a_users_names_do_not_hide_functions() -> None:
    def step(exp: Any, log: Any) -> Any:
        return np.exp(exp) * 0.1 + np.log(log)

    actual, _ = ns.scan(step, sequences=np.array([0.5, 1.5]), non_sequences=2.0)
    np.testing.assert_allclose(actual, np.exp([0.5, 1.5]) * 0.1 + np.log(2.0), rtol=1e-15)


def test_a_users_function_may_have_the_name_of_one_that_it_calls() -> None:
    @ns.jit
    def sigmoid(x: Any) -> Any:
        return nt.sigmoid(x) + np.tanh(x)

    np.testing.assert_allclose(sigmoid(np.array([0.5])), 1 / (1 + np.exp(-0.5)) + np.tanh(0.5), rtol=1e-14)


def test_every_function_is_on_the_page_of_accuracy() -> None:
    of_the_simd_unit = (DOCS / "accuracy.md").read_text(encoding="utf-8").partition("## Special functions")[0]
    rows = {line.split("`")[1]: line for line in of_the_simd_unit.splitlines() if line.startswith("| `")}
    assert sorted(rows) == NAMES
    assert all(float(number) <= 4.0 for row in rows.values() for number in row.split("|")[2:6])
