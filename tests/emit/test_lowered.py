"""Generated functions that are lowered from their text, beside what Numba makes of the same text."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from shortcuts_taken import needs

import numbascan as ns
from numbascan.emit import cache
from numbascan.emit.inside.compiling import short_ways
from numbascan.emit.inside.lowered import text as lowered_text
from numbascan.emit.inside.lowered.module import module_code

pytestmark = needs("lowered", "np_empty", "stack", "compiler")
HEAD = """import math
import numpy as np
from numba import njit, types
from numbascan.emit.runtime.intrinsics import interrupted, interrupted_at, lanes, small_array, wrapping_add
from numbascan.emit.runtime.scalars import int_floor_divide

vector = types.Array(types.float64, 1, "C", readonly=True)
matrix = types.Array(types.float64, 2, "C", readonly=True)
row_out = types.Array(types.float64, 1, "C")
matrix_out = types.Array(types.float64, 2, "C")
integers = types.Array(types.int64, 1, "C", readonly=True)
bytes_ = types.Array(types.uint8, 1, "C", readonly=True)
bits = types.Array(types.boolean, 1, "C", readonly=True)
single = types.Array(types.float32, 1, "C", readonly=True)
waves = types.Array(types.complex128, 1, "C", readonly=True)
ERROR_1 = "ERROR_1: {0} is not {1}"


"""
X, Y = np.linspace(-2.0, 3.0, 7), np.array([3.0, -1.0, np.nan, np.inf, 0.0, -0.0, 2.5])
M = np.arange(12.0).reshape(4, 3)
N = np.array([3, -7, 0, 5, -(2**62), 2**62, 1])


def compiled(types_: str, arguments: str, body: str) -> Callable[..., Any]:
    lines = "\n".join("    " + line for line in body.strip("\n").split("\n"))
    return cache.load(
        f'{HEAD}@njit(({types_},), cache=True, error_model="numpy", nogil=True, no_cfunc_wrapper=True)\ndef f({arguments}):\n{lines}\n', "f"
    )


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> list[str]:
    """What was not lowered; in a folder of its own, since something is put into the place of what compiles."""
    monkeypatch.setenv("NUMBASCAN_CACHE_DIR", str(tmp_path))
    seen: list[str] = []
    init = lowered_text.Unknown.__init__

    def note(self: Any, what: Any) -> None:
        init(self, what)
        seen.append(str(self))

    monkeypatch.setattr(lowered_text.Unknown, "__init__", note)
    return seen


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch, unknown: list[str]) -> Callable[..., list[Callable[..., Any]]]:
    """A function lowered from its text, and as Numba compiles it."""

    def make(types_: str, arguments: str, body: str, is_known: bool = True) -> list[Callable[..., Any]]:
        monkeypatch.delenv("NUMBASCAN_SHORTCUTS", raising=False)
        lowered = compiled(types_, arguments, body)
        assert bool(unknown) != is_known, unknown
        monkeypatch.setenv("NUMBASCAN_SHORTCUTS", "-lowered")
        return [lowered, compiled(types_, arguments, body)]

    return make


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The bits of all results, or the error."""
    try:
        results = function(*args)
    except Exception as error:
        return type(error), error.args
    several = results if isinstance(results, tuple) else (results,)
    return [(np.asarray(one).dtype, np.shape(one), np.asarray(one).tobytes()) for one in several]


BODIES = {
    "loops": (
        "vector",
        "x",
        """
out = np.empty(x.shape[0])
for i in range(x.shape[0] - 1, -1, -1):
    out[i] = x[i] * 2.0
for i in range(0, x.shape[0], 3):
    if i == 3:
        break
    out[i] += 1.0
for i in range(5, 2):
    out[i] = 0.0
return out""",
        [(X,), (X[:0],), (X[:1],)],
    ),
    "a step that the run knows": (
        "vector, types.int64",
        "x, step",
        """
total = 0.0
for i in range(0, x.shape[0], step):
    total = total * 2.0 + x[i]
for i in range(x.shape[0] - 1, 0, -step):
    total = total * 3.0 + x[i]
return total""",
        [(X, 1), (X, 2), (X, 100), (X, -1)],
    ),
    "a counter that is assigned": (
        "vector",
        "x",
        """
total = 0.0
for i in range(x.shape[0]):
    total = total * 2.0 + x[i]
    i = -1
    total = total + x[i:][0]
i = i - 1
return total, x[i:][0]""",
        [(X,)],
    ),
    "indices from the end": (
        "matrix, types.int64",
        "x, k",
        """
row = x[k]
part = x[k, -1]
copy = row.copy()
return copy, part, x[-1, k]""",
        [(M, 0), (M, 2)],
    ),
    "a loop that only its break ends": (
        "vector, types.boolean",
        "x, is_known",
        """
stop = 9223372036854775807 if is_known else 0
passes = 0
total = 0.0
for k in range(stop):
    total = total * 0.5 + x[k % x.shape[0]]
    passes = k + 1
    if k == 200:
        break
    if interrupted(256):
        raise InterruptedError
return total, passes, k""",
        [(X, True)],
    ),
    "a bound that is endless, or another number": (
        "types.int64, types.boolean",
        "n, is_known",
        """
stop = 9223372036854775807 if is_known else 0
stop = n
passes = 0
for k in range(stop):
    passes = k + 1
    if k == 200:
        break
    if interrupted(256):
        raise InterruptedError
for k in range(3, 0 if is_known else 5):
    passes += 1000
return passes""",
        [(n, is_known) for n in (-1, 0, 1, 63, 64, 65, 128, 500) for is_known in (False, True)],
    ),
    "looks behind strips": (
        "types.int64, types.int64",
        "first, last",
        """
total = 0
passes = 0
for k in range(first, last):
    k = k * 3 % 7
    total = total * 3 + k
    if interrupted_at(256, k, last):
        raise InterruptedError
for k in range(last, first, -1):
    passes += k
    if interrupted(256):
        raise InterruptedError
return total, passes""",
        [(first, last) for first in (-65, 0, 64) for last in (-70, -1, 0, 1, 63, 64, 127, 128, 129, 300)],
    ),
    "slices": (
        "matrix, types.int64, types.int64",
        "x, a, b",
        """
rows = x[a:b]
more = x[:b]
rest = x[a:]
total = 0.0
for i in range(rows.shape[0]):
    for j in range(rows.shape[1]):
        total = total * 2.0 + rows[i, j]
again = rest[1:]
more_2 = more.copy()
rest_2 = rest.copy()
again_2 = again.copy()
rows_2 = x[a:b].copy()
return total, more_2, rest_2, again_2, rows.shape[0], more.shape[0], rows_2""",
        [(M, a, b) for a in (-9, -4, -1, 0, 2, 9) for b in (-9, -2, 0, 1, 4, 9)],
    ),
    "views": (
        "matrix",
        "x",
        """
flat = x.reshape((12,))
back = flat.reshape((3, 4))
turned = x.T
out = np.empty((3, 3))
np.dot(turned, x, out)
piece = out[1:]
copy = flat[3:].copy()
return copy, back, out, piece, x""",
        [(M,)],
    ),
    "a shape that does not fit": (
        "matrix, types.int64",
        "x, n",
        "taken = np.empty(9)\ntaken[0] = x[0, 0]\nflat = x.reshape((n, 2))\nreturn flat",
        [(M, 6), (M, 5)],
    ),
    "arrays that are taken again": (
        "vector",
        "x",
        """
total = 0.0
before = np.empty(3)
before[0] = 1.0
for k in range(4):
    work = np.empty(x.shape[0] + k)
    for i in range(work.shape[0]):
        work[i] = k * 10.0 + i
    view = work[1:]
    held = work
    total = total * 2.0 + view[k] + held[0] + before[0]
    before = work.copy()
return total, before, before""",
        [(X,)],
    ),
    "written arguments": (
        "matrix_out, matrix_out, types.boolean",
        "x, y, swap",
        """
x[0, 0] = 5.0
rows = y[1:]
rows[0, 1] = 7.0
if swap:
    return y, x, rows
return x, x, rows""",
        [(M.copy(), M.copy(), False), (M.copy(), M.copy(), True)],
    ),
    "counters with the name of another": (
        "vector, types.int64",
        "x, i",
        """
total = x[i:][0]
for i in range(3):
    total = total * 2.0 + x[i:][0]
for i in range(-3, 0):
    for j in range(i, 3):
        total = total * 2.0 + x[j:][0]
return total""",
        [(X, -1), (X, 2)],
    ),
    "swaps": (
        "vector",
        "x",
        """
a = np.empty(2)
b = np.empty(2)
a[0] = 1.0
b[0] = 2.0
for k in range(3):
    c = a
    a = b
    b = c
    a[1] = k
return a, b, a[0], c""",
        [(X,)],
    ),
    "numbers": (
        "vector, vector",
        "x, y",
        """
out = np.empty((7, x.shape[0]))
for i in range(x.shape[0]):
    out[0, i] = x[i] / y[i]
    out[1, i] = x[i] // y[i]
    out[2, i] = x[i] % y[i]
    out[3, i] = x[i]**3 - y[i]**-2 + x[i]**0 + y[i]**1 + x[i]**65
    out[4, i] = min(x[i], y[i]) + 2.0 * max(y[i], x[i], 0.5)
    out[5, i] = abs(x[i]) + math.sqrt(abs(y[i])) - -y[i]
    out[6, i] = 1.0 if x[i] < y[i] and not y[i] == np.inf or x[i] != x[i] else -x[i]
return out""",
        [(X, Y), (Y, X)],
    ),
    "integers": (
        "integers, bytes_, types.uint64",
        "n, b, u",
        """
out = np.empty((6, n.shape[0]), np.int64)
small = np.empty(b.shape[0], np.uint8)
total = np.int64(0)
for i in range(n.shape[0]):
    out[0, i] = n[i] // 3 + n[i] % 3
    out[1, i] = wrapping_add(n[i], n[i])
    out[2, i] = n[i] & 6 | 1 ^ n[i]
    out[3, i] = int_floor_divide(n[i], 2) if n[i] > 2 else 7
    out[4, i] = np.int64(u) + b[i]
    out[5, i] = n[i] >> 3
    small[i] = b[i] * np.uint8(200)
    small[i] += 100
    total += b[i]
    total -= 3
return out, small, total, u // 3, u % 7, n[np.uint64(2)], np.float32(0.1) * 3""",
        [(N, np.arange(7, dtype=np.uint8) * 41, 2**63 + 5)],
    ),
    "other kinds": (
        "bits, single, waves",
        "b, s, z",
        """
out = np.empty(b.shape[0], np.bool_)
other = np.empty(s.shape[0], np.float32)
wave = np.empty(z.shape[0], np.complex128)
for i in range(b.shape[0]):
    out[i] = b[i] and s[i] > 0.0 or not b[i]
    other[i] = s[i] * 3 + s[i]**2
    wave[i] = z[i] * z[i] + s[i] - z[i].imag / (z[i].real + 2.0) + z[i]**2
return out, other, wave, out[0] == b[1]""",
        [(np.array([True, False, True]), np.float32([0.1, -3.0, 7.0]), np.array([1 + 2j, -1j, 0.5]))],
    ),
    "work on the stack": (
        "vector",
        "x",
        """
work = small_array((3,), np.float64)
for i in range(lanes(3)):
    work[i] = x[i]
other = small_array((2, 2), np.int64)
other[1, 1] = 5
return work[0] + work[2], other[1, 1]""",
        [(X,)],
    ),
    "errors": (
        "vector, types.int64, types.boolean",
        "x, n, is_late",
        """
taken = np.empty(x.shape[0])
for i in range(x.shape[0]):
    taken[i] = x[i]
    if n == 1:
        raise ValueError(ERROR_1, n, x[i])
if n == 2:
    raise IndexError(ERROR_1)
more = np.empty(n)
if is_late:
    raise np.linalg.LinAlgError(ERROR_1, is_late, n, 3)
return taken, more""",
        [(X, n, late) for n in (-1, 0, 1, 2, 3) for late in (False, True)],
    ),
    "nothing": ("vector", "x", "if x.shape[0] > 100:\n    return", [(X,)]),
    "returns on the way": (
        "vector, types.int64",
        "x, n",
        """
out = np.empty(n)
for i in range(n):
    out[i] = x[i]
    for j in range(n):
        if x[j] > 1.0:
            return out, i
return out, n""",
        [(X, 0), (X, 3), (X, 7)],
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_text_means_what_numba_makes_of_it(name: str, both: Callable[..., list[Callable[..., Any]]]) -> None:
    types_, arguments, body, calls = BODIES[name]
    lowered, by_numba = both(types_, arguments, body)
    for args in calls:
        assert outcome(lowered, args) == outcome(by_numba, args), args


@pytest.mark.parametrize(
    ("types_", "arguments", "body", "args"),
    [
        ("matrix", "x", "part = x[1, 0:2]\nreturn part.copy()", (M,)),
        ("vector", "x", "x2 = x[0:4:2]\nreturn x2.sum()", (X,)),
        ("vector", "x", "k = 1\nk = 2.5\nreturn k * x[0]", (X,)),
        ("vector", "x", "total = 0.0\nfor v in x:\n    total += v\nreturn total", (X,)),
        ("vector", "x", "return 1.0 if 0.0 < x[0] < 1.0 else 2.0", (X,)),
        ("vector", "x", "return np.sum(np.empty(3) * 0.0 + x[0] > -9.0)", (X,)),
        ("vector, types.int64", "x, n", "if n > 2:\n    return x[0]", (X, 3)),
        ("vector", "x", "pair = (x[0], 2)\nreturn pair", (X,)),
        (
            "vector",
            "x",
            """
old = np.empty(300)
for i in range(300):
    old[i] = x[0]
for t in range(6):
    new = np.empty(300)
    other = np.empty(300)
    for i in range(300):
        other[i] = 1e9
    for i in range(300):
        new[i] = old[i] + 1.0
    new[0] += other[7]
    old = new
return old""",
            (X,),
        ),
        ("vector", "x", "k = 0\nwhile k < 3:\n    k += 1\nreturn k + x[0]", (X,)),
    ],
)
def test_what_is_not_lowered_numba_compiles(
    types_: str, arguments: str, body: str, args: tuple[Any, ...], both: Callable[..., list[Callable[..., Any]]]
) -> None:
    lowered, by_numba = both(types_, arguments, body, is_known=False)
    assert outcome(lowered, args) == outcome(by_numba, args)


@pytest.mark.parametrize("name", ["arrays that are taken again", "swaps", "errors", "a shape that does not fit", "views", "slices"])
def test_arrays_are_given_back(name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the call fails: each result and error is dropped, and as much is given back as was taken."""
    from numba.core.runtime import _nrt_python as memory

    monkeypatch.setenv("NUMBASCAN_CACHE_DIR", str(tmp_path))
    types_, arguments, body, calls = BODIES[name]
    f = compiled(types_, arguments, body)
    memory.memsys_enable_stats()
    try:
        for args in calls:
            if name == "errors" and args[1] == -1:
                continue  # the error is raised within `np.empty`, which gives back nothing of others, as Numba's own
            gc.collect()
            taken, back = memory.memsys_get_stats_mi_alloc(), memory.memsys_get_stats_mi_free()
            outcome(f, args)
            gc.collect()
            assert memory.memsys_get_stats_mi_alloc() - taken == memory.memsys_get_stats_mi_free() - back, args
    finally:
        memory.memsys_disable_stats()


def test_an_array_is_given_back_behind_its_last_mention(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBASCAN_CACHE_DIR", str(tmp_path))
    calls: list[int] = []
    text = """
a = np.empty(n)
a[0] = 1.0
part = a[0:1]
total = part[0]
b = np.empty(n)
b[0] = 2.0
total = total + b[0]
return total"""
    from numbascan.emit.inside.lowered import code

    release = code.Code._release
    monkeypatch.setattr(code.Code, "_release", lambda self, name: (calls.append(len(self.builder.function.blocks)), release(self, name))[1])
    assert compiled("types.int64", "n", text)(5) == 3.0
    assert len(calls) == 2


def grown(x: Any) -> Any:
    return ns.scan(lambda s: (s * x, ns.until(s > 9.0)), outputs_info=1.0, n_steps=30, return_updates=False)[-1]


def test_a_written_argument_comes_back_itself(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBASCAN_CACHE_DIR", str(tmp_path))
    x = M.copy()
    assert compiled("matrix_out", "x", "x[0, 0] += 1.0\nreturn x")(x) is x
    assert x[0, 0] == 1.0


@pytest.mark.parametrize("name", ["context", "typing", "names", "function", "body", "made"])
def test_arguments_have_any_name(name: str, unknown: list[str]) -> None:
    assert compiled("vector", name, f"return {name}[0] * 2.0")(X) == -4.0
    assert not unknown


PROGRAMS: dict[str, Callable[[], Any]] = {
    "a loop": lambda: ns.scan(lambda x, s: s * 0.5 + np.tanh(x), X, 0.0, return_updates=False),
    "a gradient": lambda: ns.grad(lambda x: ns.scan(lambda x, s: s * np.sin(x), x, 1.0, return_updates=False)[-1])(X),
    "lanes": lambda: ns.vmap(
        lambda x: ns.scan(lambda s: (s * x, ns.until(s > 9.0)), outputs_info=1.0, n_steps=30, return_updates=False)[-1]
    )(np.linspace(1.0, 2.0, 40)),
    "plain Python": lambda: ns.jit(lambda x: sum(v if v > 0 else -v for v in x))(np.linspace(-1.0, 1.0, 30)),
    "products": lambda: ns.jit(lambda a, b: a @ b @ a.T)(M, np.eye(3)),
    "a sort": lambda: ns.jit(np.sort)(X[::-1].copy()),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_lowered(name: str, unknown: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_loaded", {})
    PROGRAMS[name]()
    assert not unknown


def test_nothing_is_lowered_where_numba_compiles_nothing(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python runs the text as it stands, as the plan checks have it."""
    monkeypatch.setenv("NUMBASCAN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "_loaded", {})
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    f = compiled("vector", "x", "total = 0.0\nfor i in range(x.shape[0]):\n    total = total + x[i] * 0.0625\nreturn total")
    assert not hasattr(f, "overloads")
    assert f(X) == np.sum(X) * 0.0625


# memory that is shared, and memory that is not --------------------------------------------------------------------------

OVERLAPPING = {
    "arguments that overlap": (
        "row_out, row_out",
        "x, y",
        """
kept = np.empty(x.shape[0])
for i in range(x.shape[0]):
    kept[i] = x[i]
    y[i] = kept[i] * 2.0 + x[i]
return kept""",
    ),
    "a local that is an argument or new": (
        "row_out, row_out",
        "x, y",
        """
z = np.empty(x.shape[0])
for i in range(x.shape[0]):
    z[i] = 1.0
if x[0] > 0.0:
    z = y
for i in range(x.shape[0]):
    z[i] = x[i] + y[i]
    y[i] = z[i] * 0.5
before = x.copy()
after = y.copy()
kept = z.copy()
return before, after, kept""",
    ),
    "rows of one array": (
        "row_out, row_out",
        "x, y",
        """
a = np.empty((2, x.shape[0]))
b = np.empty(x.shape[0])
for i in range(x.shape[0]):
    a[0, i] = x[i]
    a[1, i] = y[i]
row = a[1]
flat = a.reshape((2 * x.shape[0],))
for i in range(x.shape[0]):
    row[i] = a[0, i] + flat[i]
    b[i] = row[i]
    flat[i] = b[i] + a[1, i]
return a, b""",
    ),
    "a local that is a view of one array or another": (
        "row_out, row_out",
        "x, y",
        """
a = np.empty((2, x.shape[0]))
b = np.empty((2, x.shape[0]))
for k in range(2):
    for i in range(x.shape[0]):
        a[k, i] = x[i]
        b[k, i] = y[i]
for k in range(2):
    row = a[k]
    if k == 1:
        row = b[0]
    for i in range(x.shape[0] - 1):
        row[i + 1] = row[i] + a[0, i] + b[0, i]
        a[0, i] = row[i + 1]
        b[0, i] = a[0, i] * 0.5
return a, b""",
    ),
    "an array that a loop takes anew": (
        "row_out, row_out",
        "x, y",
        """
total = 0.0
for i in range(x.shape[0]):
    a = np.empty(x.shape[0])
    a[0] = x[i]
    b = np.empty(x.shape[0])
    b[0] = a[0] * y[i]
    total = total * 0.5 + b[0] + a[0]
return total""",
    ),
}


@pytest.mark.parametrize("name", OVERLAPPING)
def test_memory_that_is_shared_is_seen_to_be(name: str, both: Callable[..., list[Callable[..., Any]]]) -> None:
    numbers = np.random.default_rng(3).normal(size=200) + 2.0
    functions = both(*OVERLAPPING[name])
    for distance in (0, 1, 3, 100):  # how far apart the two arguments begin
        seen = []
        for function in functions:
            memory = numbers.copy()
            seen.append((outcome(function, (memory[:100], memory[distance : distance + 100])), memory.tobytes()))
        assert seen[0] == seen[1], distance


def test_a_loop_over_many_arrays_is_vectorised(tmp_path: Any) -> None:
    """LLVM compares addresses at run time for a few pairs of arrays alone."""
    body = "".join(f"a{k} = np.empty((2, x.shape[0]))\n" for k in range(20)) + "for i in range(x.shape[0]):\n"
    body += "".join(f"    a{k}[1, i] = {f'a{k - 1}[1, i]' if k else 'x[i]'} * 3.0 + y[i]\n" for k in range(20))
    lines = "\n".join("    " + line for line in (body + "return " + ", ".join(f"a{k}" for k in range(20))).split("\n"))
    code = module_code(f'{HEAD}@njit((vector, vector), error_model="numpy", nogil=True)\ndef f(x, y):\n{lines}\n', str(tmp_path))
    space: dict[str, Any] = {}
    assert code is not None
    with short_ways():
        exec(code, space)
    (assembly,) = space["f"].inspect_asm().values()
    assert len(re.findall("v?mulpd", assembly)) >= 20
    x = np.linspace(0.0, 1.0, 50)
    np.testing.assert_allclose(space["f"](x, x)[1][1], (x * 3 + x) * 3 + x)
