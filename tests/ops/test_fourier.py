"""Fourier transforms are NumPy's, with derivatives: against np.fft itself, and against differences."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from shortcuts_taken import needs

import numbascan as ns
import numbascan.tensor as nt
from numbascan.emit.inside import numpy_fft

rng = np.random.default_rng(5)
REAL, MANY = rng.normal(size=(3, 12)), rng.normal(size=(2, 40))  # lengths that are fixed in code, and one that is not
WHOLE = REAL + 1j * rng.normal(size=REAL.shape)
NORMS: tuple[str | None, ...] = (None, "backward", "ortho", "forward")

ONE_AXIS: dict[str, Any] = {"fft": WHOLE, "ifft": WHOLE, "rfft": REAL, "irfft": WHOLE, "hfft": WHOLE, "ihfft": REAL}
AXES: dict[str, Any] = {
    "fftn": WHOLE,
    "ifftn": WHOLE,
    "fft2": WHOLE,
    "ifft2": WHOLE,
    "rfftn": REAL,
    "irfftn": WHOLE,
    "rfft2": REAL,
    "irfft2": WHOLE,
}


def agree(f: Callable[..., Any], *args: Any, mode: Any = None, rtol: float = 1e-11) -> None:
    expected, found = f(*args), ns.jit(f, mode=mode)(*args)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


def test_every_function_of_numpy_is_here() -> None:
    public = {name for name in vars(np.fft) if inspect.isroutine(getattr(np.fft, name)) and not name.startswith("_") and name != "test"}
    assert public == set(nt.fft.__all__)
    for name in public:
        theirs, ours = (list(inspect.signature(getattr(module, name)).parameters) for module in (np.fft, nt.fft))
        assert ours == [one for one in theirs if one != "device"], name


@pytest.mark.parametrize("name", ONE_AXIS)
def test_along_an_axis(name: str) -> None:
    f = getattr(np.fft, name)
    for norm in NORMS:
        for n, axis in ((None, -1), (None, 0), (9, 1), (16, -1), (1, 1), (5, -2)):
            agree(lambda x, n=n, axis=axis, norm=norm: f(x, n, axis, norm), ONE_AXIS[name], mode="python")
    for n, axis, norm in ((None, -1, None), (None, 0, "ortho"), (9, 1, "forward"), (16, -1, None)):
        agree(lambda x, n=n, axis=axis, norm=norm: f(x, n, axis, norm), ONE_AXIS[name])


@pytest.mark.parametrize("name", AXES)
def test_along_several_axes(name: str) -> None:
    f, x = getattr(np.fft, name), AXES[name]
    default = (-2, -1) if name.endswith("2") else None
    for s, axes, norm in ((None, default, None), ((4, 7), (0, 1), "ortho"), (None, (1, 0), "forward"), ((3, -1), (0, 1), None)):
        agree(lambda x, s=s, axes=axes, norm=norm: f(x, s, axes, norm), x, mode="python")
    agree(lambda x: f(x), x)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "int64", "bool"])
def test_dtypes_are_those_of_numpy(dtype: str) -> None:
    x = (WHOLE if dtype == "complex64" else REAL > 0 if dtype == "bool" else 9 * REAL).astype(dtype)
    for mode in ("python", None):
        agree(lambda x: np.fft.fft(x), x, mode=mode, rtol=1e-5)
        agree(lambda x: np.fft.irfft(x), x, mode=mode, rtol=1e-5)


@pytest.mark.parametrize("n", [1, 2, 13, 14])
def test_the_number_of_points_may_be_traced(n: int) -> None:
    whole = MANY + 1j
    for f, x in ((np.fft.fft, whole), (np.fft.rfft, MANY), (np.fft.irfft, whole), (np.fft.hfft, whole)):
        agree(lambda x, n, f=f: f(x, n), x, n)
    for frequencies in (np.fft.fftfreq, np.fft.rfftfreq):
        agree(lambda n, d, of=frequencies: of(n, d), n, 0.25)


def test_shifts_and_open_lengths() -> None:
    for x in (REAL, MANY, MANY[0, :21]):
        agree(lambda x: np.fft.fftshift(np.fft.fft(x)), x)
        agree(lambda x: np.fft.ifftshift(x, axes=-1), x)
    agree(lambda x: np.fft.irfft(np.fft.rfft(x) * 2.0, norm="ortho"), MANY)


COSTS: dict[str, Callable[..., Any]] = {
    "fft": lambda x: (np.abs(np.fft.fft(x)) ** 2 * np.arange(7)).sum(),
    "ifft": lambda x: (np.fft.ifft(x * (1 + 2j), norm="ortho").imag ** 3).sum(),
    "rfft": lambda x: (np.abs(np.fft.rfft(x)) ** 3 * np.arange(4)).sum(),
    "rfft of an even number": lambda x: (np.fft.rfft(x[:6]).real ** 3).sum(),
    "irfft": lambda x: (np.fft.irfft(x * (1 + 2j)) ** 3).sum(),
    "irfft of an odd number": lambda x: (np.fft.irfft(x * (1 + 2j), 11) ** 3).sum(),
    "irfft of one": lambda x: (np.fft.irfft(x * (1 + 2j), 1) ** 3).sum(),
    "there and back": lambda x: (np.fft.irfft(np.fft.rfft(x, 10) * np.exp(-np.arange(6))) ** 3).sum(),
    "two axes": lambda x: (np.fft.irfft2(np.fft.rfft2(np.outer(x, x)) ** 2) ** 2).sum(),
    "hfft": lambda x: (np.fft.hfft(x * (1 + 2j)) ** 3).sum() + (np.fft.ihfft(x).imag ** 3).sum(),
}


@pytest.mark.parametrize("name", COSTS)
def test_derivatives(name: str) -> None:
    cost, x, h = COSTS[name], rng.normal(size=7), 1e-5
    ways = np.eye(7) * h
    slopes = np.array([(cost(x + way) - cost(x - way)) / (2 * h) for way in ways])
    found = ns.grad(cost)(x)
    np.testing.assert_allclose(found, slopes, rtol=1e-6, atol=1e-6 * np.abs(slopes).max())
    np.testing.assert_allclose(ns.jvp(cost, (x,), (slopes,))[1], slopes @ found, rtol=1e-8)
    bends = np.array([(ns.grad(cost)(x + way) - ns.grad(cost)(x - way)) / (2 * h) for way in ways])
    np.testing.assert_allclose(ns.hessian(cost)(x), bends, rtol=1e-6, atol=1e-6 * np.abs(bends).max())


def heated(u: Any, n: Any) -> Any:
    """Heat on a ring of 64 points, step by step in Fourier space."""
    decay = np.exp(-1e-3 * np.fft.rfftfreq(64, 1 / 64) ** 2)
    return ns.scan(lambda u: np.fft.irfft(np.fft.rfft(u) * decay), outputs_info=u, n_steps=n, return_updates=False)


def test_within_steps_lanes_and_checkpoints() -> None:
    u = rng.normal(size=(5, 64))
    plain = u
    for _ in range(30):
        plain = np.fft.irfft(np.fft.rfft(plain) * np.exp(-1e-3 * np.fft.rfftfreq(64, 1 / 64) ** 2))
    np.testing.assert_allclose(heated(u[0], 30)[-1], plain[0], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ns.vmap(lambda u: heated(u, 30)[-1])(u), plain, rtol=1e-10, atol=1e-12)
    assert ns.jit(heated)(u[0], 0).shape == (0, 64)

    def cost(u: Any, checkpoint: Any = None) -> Any:
        def step(u: Any) -> Any:
            return u - 0.1 * np.fft.ifft(np.fft.fft(u) * 1j * np.fft.fftfreq(16)).real * u

        return (ns.scan(step, outputs_info=u, n_steps=20, checkpoint=checkpoint, return_updates=False)[-1] ** 2).sum()

    v, h = rng.normal(size=16), 1e-6
    slopes = [(cost(v + h * way) - cost(v - h * way)) / (2 * h) for way in np.eye(16)]
    for checkpoint in (None, 4):
        np.testing.assert_allclose(ns.grad(lambda v, c=checkpoint: cost(v, c))(v), slopes, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: np.fft.fft(x[:0]), ValueError, r"Invalid number of FFT data points \(0\)"),
        (lambda x: np.fft.rfft(x, 0), ValueError, r"np.fft.rfft: Invalid number of FFT data points \(0\)"),
        (lambda x: np.fft.irfft(x[:1]), ValueError, r"Invalid number of FFT data points \(0\)"),
        (lambda x: np.fft.fft(x, norm="half"), ValueError, "Invalid norm value half"),
        (lambda x: np.fft.rfft(x * 1j), TypeError, "the array is complex.*np.fft.fft"),
        (lambda x: np.fft.fft(x[0]), IndexError, "no axis"),
        (lambda x: np.fft.fft2(x), np.exceptions.AxisError, "axis -2 is out of bounds"),
        (lambda x: np.fft.fftn(x, s=(2, 3), axes=(0,)), ValueError, "different lengths"),
        (lambda x: np.fft.fft(x, out=np.zeros(3)), TypeError, "np.fft.*out is float64"),
    ],
)
def test_what_cannot_be_is_refused(call: Callable[..., Any], error: type[Exception], words: str) -> None:
    for x in (MANY[0], MANY[0, :6]):
        with pytest.raises(error, match=words):
            ns.jit(call)(x)


def test_no_points_are_an_error_of_the_run_where_the_run_decides() -> None:
    f = ns.jit(lambda x, n: np.fft.fft(x, n))
    np.testing.assert_allclose(f(MANY, 4), np.fft.fft(MANY, 4), rtol=1e-11)
    with pytest.raises(ValueError, match=r"-?[0-9]+"):
        f(MANY, 0)


def test_a_module_of_its_own_and_a_gpu_are_refused_by_name(tmp_path: Any) -> None:
    f = ns.jit(lambda x: np.fft.fft(x), name="waves").lower(REAL)
    with pytest.raises(NotImplementedError, match=r"waves .*fft"):
        f.export(tmp_path / "waves.py")


@needs("numpy_fft")
def test_what_is_not_the_loop_of_a_transform_is_not_called() -> None:
    (address, *_) = numpy_fft.addresses().values()
    assert numpy_fft._transforms("fft", address, np.dtype("float64"))
    assert not numpy_fft._transforms("fft", 0, np.dtype("float64"))
    assert numpy_fft._functions(np.add) is None
