"""Functions of SciPy that converted code calls with traced values, and that have a counterpart here. SciPy itself is not imported.

SciPy's ufuncs (`scipy.special.erf`) find theirs by NumPy's protocols, and are none of these.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ops.raising import RAISING
from ..numpy import decompositions, linalg, math, systems
from ..variable import Variable, as_variable, at_line, op
from .stores import holds_traced

_IGNORED = ("check_finite", "overwrite_a", "overwrite_b", "overwrite_c", "lapack_driver", "driver")
"""Parameters that say how SciPy computes, and change no result; what `check_finite` asks for is checked."""


def _norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Variable:
    if not (ord is None or isinstance(ord, str | int | float)):
        raise TypeError(f"scipy.linalg.norm: ord is {ord!r}{at_line()}; give a number, 'fro' or 'nuc'")
    norm: Any = np.linalg.norm
    return as_variable(norm(as_variable(a), ord, axis, keepdims))


def _pinv(a: Any, *, atol: float | None = None, rtol: Any = None) -> Variable:
    x = as_variable(a)
    if atol is not None:
        raise TypeError(f"scipy.linalg.pinv(atol={atol!r}) is not supported on traced values{at_line()}; give rtol")
    eps = np.finfo(x.dtype if x.type.kind in "fc" else np.float64).eps
    return decompositions.pinv(x, rtol=np.maximum(*x.shape) * eps if rtol is None else rtol)


def _cholesky(a: Any, lower: bool = False) -> Variable:
    return linalg.cholesky(a, upper=not lower)


def _cho_factor(a: Any, lower: bool = False) -> tuple[Variable, bool]:
    """The other triangle is that of `a`, as SciPy leaves it."""
    other = np.triu(as_variable(a), 1) if lower else np.tril(as_variable(a), -1)
    return as_variable(_cholesky(a, lower) + other), lower


def _qr(a: Any, mode: str = "full") -> Any:
    known = {"full": "complete", "economic": "reduced", "r": "complete"}
    if mode not in known:
        raise ValueError(f"scipy.linalg.qr: mode {mode!r} is not supported on traced values{at_line()}; use one of {', '.join(known)}")
    q, r = linalg.qr(a, known[mode])
    return (r,) if mode == "r" else (q, r)


def _eigh(a: Any, *, lower: bool = True, eigvals_only: bool = False) -> Variable:
    if not eigvals_only:  # SciPy asks another routine of LAPACK than NumPy, whose vectors have other signs
        raise TypeError(f"scipy.linalg.eigh of a traced value{at_line()} gives values alone; write np.linalg.eigh for vectors, too")
    return _eigvalsh(a, lower=lower)


def _eigvalsh(a: Any, *, lower: bool = True) -> Variable:
    return linalg.eigvalsh(a, "L" if lower else "U")


def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    found = decompositions.svd(a, full_matrices, compute_uv)
    return tuple(found) if compute_uv else found


def _solve(a: Any, b: Any, lower: bool = False, assume_a: str | None = None) -> Variable:
    """Of a matrix that is assumed to be symmetric or triangular SciPy reads one triangle alone."""
    if assume_a not in (None, "gen", "general"):
        raise TypeError(
            f"scipy.linalg.solve(assume_a={assume_a!r}) is not supported on traced values{at_line()}; leave assume_a out, or write "
            "scipy.linalg.cho_solve or solve_triangular"
        )
    return systems.solve(a, b)


_OURS: dict[str, dict[str, Callable[..., Any]]] = {
    "scipy.linalg": {
        "block_diag": decompositions.block_diag,
        "cho_factor": _cho_factor,
        "cho_solve": systems.cho_solve,
        "cholesky": _cholesky,
        "det": linalg.det,
        "eigh": _eigh,
        "eigvalsh": _eigvalsh,
        "expm": linalg.expm,
        "inv": linalg.inv,
        "lu": decompositions.lu,
        "lu_factor": decompositions.lu_factor,
        "lu_solve": decompositions.lu_solve,
        "norm": _norm,
        "pinv": _pinv,
        "qr": _qr,
        "solve": _solve,
        "solve_continuous_lyapunov": decompositions.solve_continuous_lyapunov,
        "solve_discrete_lyapunov": decompositions.solve_discrete_lyapunov,
        "solve_sylvester": decompositions.solve_sylvester,
        "solve_triangular": systems.solve_triangular,
        "svd": _svd,
        "svdvals": decompositions.svdvals,
    },
    "scipy.special": {
        "log_softmax": math.log_softmax,
        "logsumexp": math.logsumexp,
        "softmax": math.softmax,
    },
}
"""Our function for each of SciPy's, by module and name, with SciPy's names of parameters."""


def of_scipy(f: Any) -> Callable[..., Any] | None:
    """What is called in the place of a function of SciPy; None for one without a counterpart."""
    package = ".".join(str(f.__module__).split(".")[:2])
    ours = _OURS.get(package, {}).get(f.__name__)
    return None if ours is None else lambda *args, **kwargs: _called(f, ours, args, kwargs)


def _called(f: Any, ours: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a function of SciPy; for traced arguments, of ours with what differs from SciPy's defaults."""
    if not holds_traced([*args, *kwargs.values()]):
        return f(*args, **kwargs)
    name = f"{str(f.__module__).split('._')[0]}.{f.__name__}"
    if ours is decompositions.block_diag:
        return ours(*args)
    signature = inspect.signature(f)
    needed, options = [], {}
    bound = signature.bind(*args, **kwargs).arguments
    for parameter, value in bound.items():
        default = signature.parameters[parameter].default
        if default is inspect.Parameter.empty:
            needed.append(value)
        elif parameter not in _IGNORED and value is not default:
            options[parameter] = value
    if unknown := options.keys() - inspect.signature(ours).parameters.keys():
        option = min(unknown)
        raise TypeError(f"{name}({option}={options[option]!r}) is not supported on traced values{at_line()}; leave {option} out")
    if ours in _OURS["scipy.special"].values():
        return ours(*needed, **options)
    checks_finite = "check_finite" in signature.parameters and bound.get("check_finite", True)
    return ours(*(_matrix(name, value, checks_finite) for value in needed), **options)


def _matrix(name: str, value: Any, checks_finite: bool) -> Any:
    """An operand as SciPy takes it: of a dtype that stays what it is there, one matrix, and finite."""
    if isinstance(value, (tuple, list)) and any(isinstance(part, Variable) and part.ndim for part in value):
        return tuple(_matrix(name, part, checks_finite) if isinstance(part, Variable) and part.ndim > 1 else part for part in value)
    if not holds_traced([value]) and not isinstance(value, np.ndarray):
        return value
    x = as_variable(value)
    if x.dtype.name not in ("float64", "complex128", "int64") or x.ndim > 2:
        raise TypeError(
            f"{name} of {x!r}{at_line()}: matrices of float64, complex128 and int64 have SciPy's results here; write .astype('float64'), "
            "or NumPy's function of a stack"
        )
    if not checks_finite or x.type.kind == "i":
        return x
    return op(RAISING, x, np.isfinite(x).all(), error="ValueError", message="array must not contain infs or NaNs")
