"""The user's own Numba functions in CUDA kernels: the CPU's numbers, and refused by name what code for a GPU cannot be.

On a machine without a GPU: in the simulator, where the CPU's machine code stands for them, and compiled with `--compile-kernels`.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.emit.inside import cuda_package

Same = Callable[..., Any]
RNG = np.random.default_rng(11)
MEANS, WIDE = np.linspace(0.1, 3.0, 45), RNG.normal(size=(45, 300))
ROWS = np.ascontiguousarray(WIDE[:, :4])
GAIN = 3.0
TABLE = np.array([1.0, 2.0, 4.0])
LARGE = np.ones(10_000)

njit = numba.njit(error_model="numpy")


@njit
def kepler(mean, eccentricity):
    e = mean
    for _ in range(50):
        e -= (e - eccentricity * np.sin(e) - mean) / (1 - eccentricity * np.cos(e))
    return e


def kepler_vjp(mean, eccentricity, g):
    e = anomaly(mean, eccentricity)
    slope = g / (1 - eccentricity * np.cos(e))
    return slope, slope * np.sin(e)


@njit
def kepler_jvp(mean, eccentricity, d_mean, d_eccentricity):
    e = kepler(mean, eccentricity)
    return (d_mean + d_eccentricity * np.sin(e)) / (1 - eccentricity * np.cos(e))


anomaly = ns.external(kepler, vjp=kepler_vjp, jvp=kepler_jvp)


@njit
def weighted(x, weight):
    total, n = 0.0, 0
    for k in range(len(x)):
        total += weight[k] * x[k]
        n += x[k] > 0
    return total, None, n, n > len(x) // 2


@njit
def scaled(x):
    return GAIN * x


@njit
def through_another(x):
    return scaled(x) + TABLE[1]


@njit
def collatz(n):
    return n // 2 if n % 2 == 0 else 3 * n + 1


@njit
def corner(x):
    return x[0, 0] + 2.0 * x[-1, 1]


def scan(step: Any, *args: Any, **options: Any) -> Any:
    return ns.scan(step, *args, **options, return_updates=False)


def orbit(mean: Any, eccentricity: Any, n_steps: Any = 7) -> Any:
    return scan(lambda m, e: anomaly(m, e) * 0.9 + 0.1, outputs_info=mean, non_sequences=eccentricity, n_steps=n_steps)


def stopped(mean: Any) -> Any:
    return scan(lambda m: (anomaly(m, 0.2) + 0.5, ns.until(m > 2.0)), outputs_info=mean, n_steps=20)[-1]


def driven(means: Any) -> Any:
    return scan(lambda m, x: 0.5 * x + anomaly(m, 0.3), means, np.float64(1.0))


def wide_and_scalar(u: Any) -> Any:
    return scan(lambda u, s: (u * np.cos(s), anomaly(s, 0.3) + u[0]), outputs_info=[u, np.float64(0.4)], n_steps=3)


def own_row(x: Any) -> Any:
    return ns.external(weighted)(2.0 * x, x)[0]


def of_a_state(x: Any) -> Any:
    return scan(lambda x: x * 0.9 + ns.external(weighted)(x, np.roll(x, 1))[0], outputs_info=x, n_steps=4)[-1]


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a number": (lambda m: anomaly(m, 0.3), (0.5,)),
    "one loop": (orbit, (0.5, 0.3)),
    "elements": (lambda x: ns.map(lambda m: anomaly(m, 0.3), x, return_updates=False), (MEANS,)),
    "lanes": (ns.vmap(orbit), (MEANS, MEANS / 4)),
    "ends of lanes": (ns.vmap(stopped), (MEANS,)),
    "a drive of a linear recurrence": (driven, (np.linspace(0.0, 3.0, 200),)),
    "beside a wide state": (wide_and_scalar, (WIDE[0],)),
    "elements of a wide state": (
        lambda u: scan(lambda u: ns.map(lambda m: anomaly(m, 0.1), u, return_updates=False), outputs_info=u, n_steps=3)[-1],
        (WIDE[0],),
    ),
    "several results of arrays": (lambda x, w: ns.external(weighted)(x[::-1], w)[::2], (WIDE[0], WIDE[1])),
    "arrays of lanes": (ns.vmap(own_row), (ROWS,)),
    "long arrays of lanes": (ns.vmap(own_row), (WIDE,)),
    "a state of lanes": (ns.vmap(of_a_state), (ROWS,)),
    "a long state of lanes": (ns.vmap(of_a_state), (WIDE,)),
    "a matrix of lanes": (ns.vmap(lambda x: ns.external(corner)(x.reshape(2, 2).T)), (ROWS,)),
    "functions that call each other": (ns.vmap(lambda x: ns.external(through_another)(x) * anomaly(x, 0.1)), (MEANS,)),
    "a choice in lanes": (ns.vmap(lambda m: anomaly(m, 0.3) if m > 1.0 else ns.external(scaled)(m) * 2.0), (MEANS,)),
    "integers": (ns.vmap(lambda n: scan(lambda n: ns.external(collatz)(n), outputs_info=n, n_steps=9)), (np.arange(1, 46),)),
    "gradient": (ns.grad(lambda m, e: orbit(m, e)[-1], argnums=(0, 1)), (0.5, 0.3)),
    "gradients of lanes": (ns.vmap(ns.grad(lambda m, e: (orbit(m, e) ** 2).sum(), argnums=(0, 1))), (MEANS, MEANS / 4)),
    "gradients of lanes that stop": (ns.vmap(ns.grad(stopped)), (MEANS,)),
    "gradient of what lanes share": (ns.grad(lambda e, m: ns.vmap(lambda m: orbit(m, e)[-1])(m).sum()), (0.3, MEANS)),
    "gradient with checkpoints": (
        ns.grad(lambda m: scan(lambda m: anomaly(m, 0.3) * 0.95, outputs_info=m, n_steps=33, checkpoint=4).sum()),
        (0.7,),
    ),
    "second derivatives of lanes": (ns.vmap(ns.grad(ns.grad(lambda m: anomaly(m, 0.3)))), (MEANS,)),
    "tangents of lanes": (ns.vmap(lambda m: ns.jvp(lambda m: orbit(m, 0.3)[-1], (m,), (1.0,))), (MEANS,)),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_give_the_numbers_of_numpy(program: str, same: Same) -> None:
    function, args = PROGRAMS[program]
    same(function, *args)


@pytest.mark.parametrize("program", ["lanes", "ends of lanes", "arrays of lanes", "long arrays of lanes", "a long state of lanes"])
def test_lanes_have_a_thread_each(program: str) -> None:
    function, args = PROGRAMS[program]
    text = ns.jit(function, mode="cuda").lower(*args).source("cuda")
    assert "on_grid(" in text
    assert "alone(" not in text


def test_lanes_are_those_of_the_cpu(runs_kernels: None) -> None:
    lanes = ns.vmap(stopped)
    np.testing.assert_allclose(ns.jit(lanes, mode="cuda")(MEANS), ns.jit(lanes)(MEANS), rtol=1e-14)


@pytest.mark.parametrize("n", [0, 1])
def test_none_and_one_lane(n: int, same: Same) -> None:
    same(ns.vmap(stopped), MEANS[:n])
    same(ns.vmap(own_row), WIDE[:n])


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float32", "float64", "complex64"])
def test_dtypes(dtype: str, same: Same) -> None:
    @njit
    def both(x, row):
        return x + x, row[1], row[0] + x

    same(ns.vmap(lambda x, row: ns.external(both)(x, row)), (MEANS * 2).astype(dtype), ROWS.astype(dtype), rtol=1e-6)


def test_division_is_that_of_numpy(same: Same) -> None:
    @njit
    def divided(x, k):
        return 1.0 / x, 7 // k, 7 % k

    found = same(ns.vmap(ns.external(divided)), np.array([0.0, 2.0, -0.0] * 15), np.array([0, 2, 5] * 15))
    assert [one[:3].tolist() for one in found] == [[np.inf, 0.5, -np.inf], [0, 3, 1], [0, 1, 2]]


def test_a_loop_without_a_division_by_what_may_be_zero_needs_no_option(same: Same) -> None:
    @numba.njit
    def halves(n, x):
        return n // 2 + n % 3, x / 2.0

    same(ns.vmap(ns.external(halves)), np.arange(45), MEANS)


@njit
def of_numpy(x, y):
    return (
        np.exp(-x) + np.sqrt(y) + np.floor(x) * np.ceil(y) + np.abs(x - y),
        np.log1p(y) + np.expm1(x) + np.cbrt(x) + np.exp2(x) + np.log(y) + np.arctan2(x, y),
        np.rint(x) + np.trunc(x) + np.fabs(x) + np.copysign(x, y) + np.pi,
        np.isfinite(x) and not np.isinf(y),
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_numpy(dtype: str, same: Same) -> None:
    x = (MEANS - 1.5).astype(dtype)
    same(ns.vmap(lambda x, y: ns.external(of_numpy)(x, y)), x, x**2 + np.dtype(dtype).type(0.5), rtol=1e-6)


def test_fast_arithmetic_is_taken_over_where_all_of_it_is_asked_for(kernels: list[Any], request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--compile-kernels"):
        pytest.skip("tox -e cuda-compile runs it")

    def approximates(fastmath: Any) -> bool:
        root = numba.njit(fastmath=fastmath, error_model="numpy")(lambda x: np.cos(x) / x)
        ns.jit(ns.vmap(ns.external(root)), mode="cuda")(MEANS.astype("float32"))
        return "cos.approx" in cuda_package.assembly(kernels[-1].function, kernels[-1].types)

    assert [approximates(fastmath) for fastmath in (False, True, {"reassoc"})] == [False, True, False]


# what it reads ---------------------------------------------------------------------------------------------------------------


def test_what_it_reads_is_frozen_and_seen_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    f = ns.jit(ns.vmap(ns.external(through_another)), mode="cuda")
    x = np.arange(45.0)

    def text() -> str:
        return f.lower(x).source("cuda")

    texts = [text()]
    assert f(x).tolist() == (3.0 * x + 2.0).tolist()
    monkeypatch.setitem(globals(), "GAIN", 7.0)
    assert f(x).tolist() == (7.0 * x + 2.0).tolist()
    texts.append(text())
    monkeypatch.setitem(globals(), "TABLE", TABLE * 10)
    assert f(x).tolist() == (7.0 * x + 20.0).tolist()
    texts.append(text())
    assert len(set(texts)) == 3


def test_compiled_functions_keep_what_they_were_compiled_with(monkeypatch: pytest.MonkeyPatch) -> None:
    x = nt.dvector("x")
    f = ns.function([x], ns.vmap(ns.external(through_another))(x), mode="cuda")
    monkeypatch.setitem(globals(), "GAIN", 7.0)
    assert f(MEANS).tolist() == (3.0 * MEANS + 2.0).tolist()


def test_what_no_text_tells_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same: Same) -> None:
    pair = collections.namedtuple("pair", "a b")
    monkeypatch.setenv("NUMBASCAN_CACHE_DIR", str(tmp_path))
    same(ns.vmap(ns.external(njit(lambda x: pair(x, 2.0).a * pair(x, 2.0).b))), MEANS)
    assert not list(tmp_path.glob("*.py"))
    same(ns.vmap(ns.external(njit(lambda x: 5.0 * x))), MEANS)
    assert len(list(tmp_path.glob("*.py"))) == 1


# refusals --------------------------------------------------------------------------------------------------------------------


@njit
def limited(x):
    if x > 2.0:
        raise ValueError("too large")
    return x


namespace: dict[str, Any] = {}
exec("def asserts(x):\n    assert x < 2.0\n    return x", namespace)  # where pytest does not rewrite it
asserts = njit(namespace["asserts"])


@njit
def calls_limited(x):
    return limited(x) + 1.0


@njit
def tries(x):
    try:
        if x > 2.0:
            raise ValueError
    except Exception:
        return 0.0
    return x


@njit
def makes_an_array(x):
    work = np.zeros(3)
    for k in range(3):
        work[k] = k * x
    return work[1]


@njit
def makes_a_list(x):
    numbers = [x]
    for k in range(int(x)):
        numbers.append(k * x)
    return numbers[-1]


@njit
def factorial(n):
    if n < 2:
        return 1
    return n * factorial(n - 1)


@njit
def through_factorial(n):
    return factorial(n) + n


@numba.njit
def divides(x):
    return 1.0 / x


@numba.njit
def calls_divides(x):
    return divides(x)


@numba.njit("float64(float64)")
def typed(x):
    return 2.0 * x


@numba.njit(locals={"y": numba.float32})
def with_locals(x):
    y = x
    return y + 1.0


REFUSED = {
    "raises": (limited, 1.0, "limited, a function of ns.external, raises, asserts or tries"),
    "asserts": (asserts, 1.0, "asserts, a function of ns.external, raises, asserts or tries"),
    "calls what raises": (calls_limited, 1.0, "calls_limited, a function of ns.external, calls limited, which raises"),
    "tries": (tries, 1.0, "tries, a function of ns.external, raises, asserts or tries"),
    "memory": (makes_an_array, 1.0, "makes_an_array, a function of ns.external, makes arrays, lists or text.*keep to numbers"),
    "lists": (makes_a_list, 1.0, "makes_a_list, a function of ns.external, makes arrays, lists or text"),
    "an array": (njit(lambda x: 2.0 * x), ROWS[0], "lambda, a function of ns.external, returns an array.*let it return numbers"),
    "divides": (divides, 1.0, r"divides.* may raise ZeroDivisionError .*@njit\(error_model='numpy'\)"),
    "calls what divides": (calls_divides, 1.0, r"calls_divides.* may raise ZeroDivisionError .*@njit\(error_model='numpy'\)"),
    "divides integers": (numba.njit(lambda n: 7 % n), 1, r"ZeroDivisionError .integer modulo by zero.*error_model='numpy'"),
    "errors of Numba": (njit(lambda x: x.max()), ROWS[0], "may raise ValueError .zero-size array.*write what cannot fail"),
    "checks of indices": (numba.njit(boundscheck=True)(lambda x: x[2]), ROWS[0], "may raise IndexError"),
    "recursion": (factorial, 5, "factorial, a function of ns.external, calls itself.*write a loop"),
    "recursion elsewhere": (through_factorial, 5, "through_factorial, a function of ns.external, calls itself, or one that it calls does"),
    "types": (typed, 1.0, "typed, a function of ns.external, was given types.*leave them out"),
    "locals": (with_locals, 1.0, "with_locals, a function of ns.external, was given types, locals="),
    "a large table": (njit(lambda k: LARGE[k]), 1, "reads arrays of 80,000 bytes.*pass them as arguments"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_gpu_cannot_do_is_refused_by_name(case: str) -> None:
    function, argument, message = REFUSED[case]
    f = ns.jit(ns.external(function), mode="cuda")
    with pytest.raises(NotImplementedError, match=f"(?s)mode='cuda': .*{message}.*or use mode=None"):
        f(argument)
    assert np.all(ns.jit(ns.external(function))(argument) == function(argument))


def test_a_rule_that_raises_is_refused_by_its_name() -> None:
    @njit
    def rule(x, g):
        if g > 2.0:
            raise ValueError
        return g

    lanes = ns.vmap(ns.grad(lambda x: ns.external(scaled, vjp=rule)(x)))
    with pytest.raises(NotImplementedError, match=r"rule, a function of ns.external, raises"):
        ns.jit(lanes, mode="cuda")(MEANS)


@njit
def overwrites(x):
    x[0] = 1.0
    return x[1]


def test_what_the_cpu_refuses_is_refused_alike() -> None:
    with pytest.raises(TypeError, match="overwrites writes into an array"):
        ns.jit(ns.external(overwrites), mode="cuda")(np.ones(3))


@njit
def hashed(x):
    return hash(x)


@njit
def added_as_logarithms(x):
    return np.logaddexp(x, 2.0)


@pytest.mark.parametrize(
    "function, message",
    [(hashed, "hashed for a GPU .TypingError: .*hash"), (added_as_logarithms, "added_as_logarithms for a GPU .KeyError: .*logaddexp")],
)
def test_what_numba_lacks_for_a_gpu_is_told_before_a_launch(function: Any, message: str, request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--compile-kernels"):
        pytest.skip("tox -e cuda-compile runs it")
    with pytest.raises(NotImplementedError, match=rf"ns.external: Numba does not compile {message}.*mode=None"):
        ns.jit(ns.vmap(ns.external(function)), mode="cuda")(MEANS)
