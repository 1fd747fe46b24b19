"""Writes the table of docs/accuracy.md: `python docs/accuracy_table.py`. On x86-64 with glibc; takes about two minutes.

Each vector form is called as it is, through a loop written in LLVM's own text, whatever the vectoriser would choose on this machine.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import binding

from numbascan.emit.inside.vector_forms import ARITY, REGISTERS, present, vector_names

PAGE = Path(__file__).with_name("accuracy.md")
POINTS = 500_000  # in each domain
TYPES = {"float64": "double", "float32": "float", "longdouble": "x86_fp80"}

Sample = Callable[[np.random.Generator, int], np.ndarray]
_engines: list[Any] = []


# where to look ------------------------------------------------------------------------------------------------------


def uniform(low: float, high: float) -> Sample:
    return lambda rng, n: rng.uniform(low, high, n)


def positive(low: float, high: float) -> Sample:
    """As many points between 1 and 10 as between 10 and 100."""
    return lambda rng, n: np.exp(rng.uniform(np.log(low), np.log(high), n))


def both_signs(low: float, high: float) -> Sample:
    return lambda rng, n: positive(low, high)(rng, n) * rng.choice([-1.0, 1.0], n)


def below_one(rng: np.random.Generator, n: int) -> np.ndarray:
    return 1 - positive(1e-16, 1.0)(rng, n)


WIDE, SMALL = both_signs(1e-30, 1e30), both_signs(1e-30, 1.0)
ANGLES = (uniform(-4, 4), uniform(-1e5, 1e5), WIDE)
LOGARITHM = (positive(1e-30, 1e30), uniform(0.5, 2), uniform(0.99, 1.01))
ARC = (uniform(-1, 1), SMALL, below_one)
DOMAINS: dict[str, tuple[Sample, ...]] = {
    **{name: (uniform(-745, 710), uniform(-104, 89), uniform(-1, 1), SMALL) for name in ("exp", "expm1", "sinh", "cosh")},
    "exp2": (uniform(-1075, 1024), uniform(-150, 128), uniform(-1, 1), SMALL),
    **dict.fromkeys(("log", "log2", "log10"), LOGARITHM),
    "log1p": (positive(1e-30, 1e30), uniform(-1, 1), SMALL),
    **dict.fromkeys(("sin", "cos", "tan"), ANGLES),
    **dict.fromkeys(("asin", "acos", "atanh"), ARC),
    **dict.fromkeys(("atan", "asinh", "cbrt"), (uniform(-10, 10), WIDE)),
    "acosh": (uniform(1, 10), lambda rng, n: 1 + positive(1e-15, 1e30)(rng, n)),
    "tanh": (uniform(-20, 20), uniform(-1, 1), SMALL),
    "erf": (uniform(-6, 6), SMALL),
    "erfc": (uniform(-6, 6), uniform(6, 26.5), uniform(6, 10), SMALL),
}
PAIRS: dict[str, tuple[tuple[Sample, Sample], ...]] = {
    "pow": ((positive(1e-3, 1e3), uniform(-20, 20)), (uniform(0.9, 1.1), uniform(-1000, 1000)), (positive(1e-30, 1e30), uniform(-2, 2))),
    "hypot": ((uniform(-5, 5), uniform(-5, 5)), (WIDE, WIDE), (SMALL, SMALL)),
    "atan2": ((uniform(-5, 5), uniform(-5, 5)), (WIDE, WIDE), (SMALL, SMALL)),
}


def any_bits(rng: np.random.Generator, n: int, dtype: str) -> np.ndarray:
    """Numbers of every size, infinities and NaN."""
    size = np.dtype(dtype).itemsize
    return rng.integers(0, 256, n * size, dtype=np.uint8).view(dtype)


def operands(name: str, dtype: str, seed: int = 0, n: int = POINTS) -> list[tuple[np.ndarray, ...]]:
    """Points of every domain of a function, in `dtype`."""
    rng = np.random.default_rng(seed)
    domains = PAIRS.get(name) or [(sample,) for sample in DOMAINS.get(name, (uniform(-10, 10), WIDE))]
    points = [tuple(sample(rng, n).astype(dtype) for sample in domain) for domain in domains]
    return [*points, tuple(any_bits(rng, n, dtype) for _ in range(ARITY[name]))]


# errors -------------------------------------------------------------------------------------------------------------


def ulps(values: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """How far `values` are from `exact`, in units in the last place of the exact value; inf where one alone is NaN or infinite."""
    info = np.finfo(values.dtype)
    with np.errstate(all="ignore"):
        rounded = exact.astype(values.dtype)
        _, exponent = np.frexp(np.maximum(np.abs(exact), info.tiny))
        unit = np.ldexp(np.ones_like(exact), exponent - 1 - info.nmant)
        error = np.abs(values.astype(exact.dtype) - exact) / unit
    same = (values == rounded) | (np.isnan(values) & np.isnan(rounded))
    finite = np.isfinite(values) & np.isfinite(rounded)
    return np.where(finite, error, np.where(same, 0.0, np.inf)).astype("float64")


def applied(symbol: str, dtype: str, lanes: int, arity: int, result: str | None = None) -> Callable[..., np.ndarray]:
    """A function on arrays that calls `symbol` for so many elements at a time; converted to and from `result` where that is given."""
    result = result or dtype
    scalar, other = TYPES[dtype], TYPES[result]
    vector, called = (text if lanes == 1 else f"<{lanes} x {text}>" for text in (scalar, other))
    places = range(arity)
    loads = [f"%q{k} = getelementptr {scalar}, ptr %p{k}, i64 %i\n %v{k} = load {vector}, ptr %q{k}, align 4" for k in places]
    wide = [f"%w{k} = fpext {vector} %v{k} to {called}" for k in places] if result != dtype else []
    args = ", ".join(f"{called} %{'w' if wide else 'v'}{k}" for k in places)
    lines = [*loads, *wide, f"%r = call {called} @{symbol}({args})", f"%o = getelementptr {other}, ptr %out, i64 %i"]
    text = f"""declare {called} @{symbol}({", ".join([called] * arity)})
define void @run({", ".join(f"ptr %p{k}" for k in places)}, ptr %out, i64 %n) {{
 start:
 br label %loop
 loop:
 %i = phi i64 [0, %start], [%j, %loop]
 {chr(10).join(lines)}
 store {called} %r, ptr %o, align 4
 %j = add i64 %i, {lanes}
 %more = icmp ult i64 %j, %n
 br i1 %more, label %loop, label %end
 end:
 ret void
}}"""
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (arity + 1), ctypes.c_int64)(_compiled(text))

    def function(*arrays: np.ndarray) -> np.ndarray:
        n = arrays[0].size
        assert n % lanes == 0
        out = np.empty(n, result)
        run(*(np.ascontiguousarray(array, dtype).ctypes.data for array in arrays), out.ctypes.data, n)
        return out

    return function


def _compiled(text: str) -> int:
    module = binding.parse_assembly(text)
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(), features=binding.get_host_cpu_features().flatten()
    )
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    _engines.append(engine)
    return engine.get_function_address("run")


def measured(name: str, dtype: str) -> tuple[float, float]:
    """The greatest errors found: of the plain call, of the vector forms that this machine can run."""
    arity, size = ARITY[name], np.dtype(dtype).itemsize
    plain = applied(name if size == 8 else f"{name}f", dtype, 1, arity)
    exact = applied(f"{name}l", dtype, 1, arity, "longdouble")
    features = binding.get_host_cpu_features()
    vectors = []
    for _, _, feature in REGISTERS:
        if features.get(feature):
            vectors += [applied(symbol, dtype, lanes, arity) for lanes, symbol in vector_names(name, size, {feature}).items()]
    worst = [0.0, 0.0]
    for points in operands(name, dtype):
        wanted = exact(*points)
        worst[0] = max(worst[0], ulps(plain(*points), wanted).max())
        worst[1] = max(worst[1], *(ulps(vector(*points), wanted).max() for vector in vectors))
    return worst[0], worst[1]


def table() -> str:
    rows = ["| function | float64, call | float64, vector | float32, call | float32, vector |", "|---|---|---|---|---|"]
    for name in sorted(ARITY):
        numbers = [f"{error:.1f}" for dtype in ("float64", "float32") for error in measured(name, dtype)]
        rows.append(f"| `{name}` | {' | '.join(numbers)} |")
    return "\n".join(rows)


def main() -> None:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    binding.load_library_permanently("libm.so.6")
    assert present(), "this machine has no libmvec"
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(re.sub(r"\| function \|.*?\n\n", lambda found: table() + "\n\n", page, count=1, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
