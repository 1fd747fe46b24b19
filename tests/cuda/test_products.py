"""Large products of matrices go to cuBLAS, one call a step; the rest, and all of them where it is not installed, are loops.

Without a GPU there is, in the place of cuBLAS, a library of the same functions, made of SciPy's BLAS: it takes the same arguments in the
same order, and stores matrices column by column.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernel_text import kernels as kernels_of
from scipy.linalg import cython_blas

import numbascan as ns
import numbascan.tensor as nt
from numbascan.emit.runtime import cublas

Same = Callable[..., Any]
RNG = np.random.default_rng(8)
N = 34
U, A, B = RNG.normal(size=N), RNG.normal(size=(N, N)), RNG.normal(size=(N, 41)) / 6
BATCH, OTHERS = RNG.normal(size=(5, 33, 40)), RNG.normal(size=(5, 40, 35))
PATH = RNG.normal(size=(6, N))

capsule = ctypes.pythonapi.PyCapsule_GetPointer
capsule.restype, capsule.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
name_of = ctypes.pythonapi.PyCapsule_GetName
name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]


class OfDevice:
    """cuBLAS; `called`: the names of its functions that were."""

    def __init__(self, library: Any) -> None:
        self.library, self.called = library, list[str]()

    def __getattr__(self, name: str) -> Any:
        self.called.append(name)
        return getattr(self.library, name)


class Library:
    """The same in the memory of the host."""

    def __init__(self) -> None:
        self.called = list[str]()

    def cublasCreate_v2(self, _: Any) -> int:
        return 0

    def __getattr__(self, name: str) -> Callable[..., int]:
        letter, kind = name.removeprefix("cublas")[0], name.removeprefix("cublas")[1:]

        def call(_: Any, *args: Any) -> int:
            self.called.append(name)
            if kind == "gemv_v2_64":
                blas(f"{letter}gemv", args[:1], args[1:])
            elif kind == "gemm_v2_64":
                blas(f"{letter}gemm", args[:2], args[2:])
            else:
                assert kind == "gemmStridedBatched_64"
                *sizes, a, lda, step_a, b, ldb, step_b, beta, c, ldc, step_c, count = args[2:]
                size = {"S": 4, "D": 8, "C": 8, "Z": 16}[letter]
                for k in range(count.value):
                    at = (ctypes.c_void_p(one.value + k * step.value * size) for one, step in ((a, step_a), (b, step_b), (c, step_c)))
                    x, y, z = at
                    blas(f"{letter}gemm", args[:2], (*sizes, x, lda, y, ldb, beta, z, ldc))
            return 0

        return call


def blas(name: str, ways: tuple[int, ...], args: tuple[Any, ...]) -> None:
    """Calls a function of BLAS, which wants the addresses of all its arguments."""
    function = cython_blas.__pyx_capi__[name.lower()]
    pointer = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(ways) + len(args)))(capsule(function, name_of(function)))
    letters = [ctypes.c_char(b"NTC"[way : way + 1]) for way in ways]
    numbers = [ctypes.c_int(arg.value) if isinstance(arg, ctypes.c_int64) else arg for arg in args]
    addresses = [one if isinstance(one, ctypes.c_void_p) else ctypes.cast(ctypes.byref(one), ctypes.c_void_p) for one in letters]
    for one in numbers:
        is_address = isinstance(one, ctypes.c_void_p)
        is_number = isinstance(one, ctypes.c_int)
        addresses.append(one if is_address else ctypes.cast(ctypes.byref(one) if is_number else one, ctypes.c_void_p))
    pointer(*addresses)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Any:
    """Every product is large, and the library is there."""
    is_host = cublas.cuda_package.is_simulated() or request.config.getoption("--compile-kernels")
    found = Library() if is_host else OfDevice(cublas.library() or pytest.skip("cuBLAS is not installed"))
    monkeypatch.setattr(cublas, "_handles", {})
    monkeypatch.setattr(cublas, "LARGE_PRODUCT", 1)
    monkeypatch.setattr(cublas, "library", lambda: found)
    return found


def scan(step: Any, *args: Any, **options: Any) -> Any:
    return ns.scan(step, *args, **options, return_updates=False)


def network(h: Any, w: Any, x: Any, v: Any) -> Any:
    return scan(lambda x, h, w, v: np.tanh(w @ h + v @ x), x, outputs_info=h, non_sequences=[w, v])


def until_small(u: Any, a: Any) -> Any:
    def step(u: Any, a: Any) -> Any:
        following = 0.02 * (a @ u)
        return following, ns.until(abs(following).max() < 0.05)

    return scan(step, outputs_info=u, non_sequences=a, n_steps=20)


PROGRAMS: dict[str, tuple[str, Callable[..., Any], tuple[Any, ...]]] = {
    "matrix and vector": ("gemv", lambda a, u: a @ u, (B.T.copy(), U)),
    "vector and matrix": ("gemv", lambda a, u: u @ a, (B, U)),
    "a transpose and a vector": ("gemv", lambda a, u: a.T @ u, (B, U)),
    "matrices": ("gemm", lambda a, b: a @ b, (A, B)),
    "a transpose from the left": ("gemm", lambda a, b: a.T @ b, (B, A)),
    "a transpose from the right": ("gemm", lambda a, b: a @ b.T, (A, B.T.copy())),
    "two transposes": ("gemm", lambda a, b: a.T @ b.T, (A, B.T.copy())),
    "the transpose of a product": ("gemm", lambda a, b: np.einsum("ik,kj->ji", a, b), (A, B)),
    "one row": ("gemv", lambda a, b: a @ b, (A[:1], B)),
    "one column": ("gemv", lambda a, b: a @ b, (A, B[:, :1])),
    "parts of matrices": ("gemm", lambda a, b: a[1:, :33] @ b[1:], (A, B)),
    "batches": ("Batched", lambda a, b: a @ b, (BATCH, OTHERS)),
    "a batch and a matrix": ("Batched", lambda a, b: np.einsum("nij,njk->nik", a, b[0] + np.zeros((5, 1, 1))), (BATCH, OTHERS)),
    "a batch of matrices and vectors": ("Batched", lambda a, b: np.einsum("nij,nj->ni", a, b[:, :, 0].copy()), (BATCH, OTHERS)),
    "batches of one matrix": ("Batched", lambda a, b: a @ b, (BATCH, OTHERS[0])),
    "one matrix and a batch": ("Batched", lambda a, b: np.einsum("ik,bkj->bij", a, b), (BATCH[0], OTHERS)),
    "rows of each step": ("gemv", lambda u, a: scan(lambda u, a: np.tanh(a @ u), outputs_info=u, non_sequences=a, n_steps=4), (U, A)),
    "the last rows": (
        "gemv",
        lambda u, a: scan(lambda u, a: np.tanh(a @ u), outputs_info=u, non_sequences=a, n_steps=5)[-2:],
        (U, A),
    ),
    "matrices of each step": (
        "gemm",
        lambda a, b: scan(lambda x, a: np.tanh(a @ x), outputs_info=b, non_sequences=a, n_steps=3),
        (A, B),
    ),
    "old rows": (
        "gemv",
        lambda u, a: scan(
            lambda u, v, a: np.tanh(a @ u) - 0.5 * v, outputs_info={"initial": u, "taps": [-3, -1]}, non_sequences=a, n_steps=5
        ),
        (PATH[:3], A),
    ),
    "a network": ("gemv", network, (U, A, PATH, A[::-1].copy())),
    "its gradient": ("gemv", ns.grad(lambda *args: (network(*args) ** 2).sum(), argnums=(0, 1, 2, 3)), (U, A / 6, PATH, A[::-1] / 6)),
    "a network that goes backwards": (
        "gemv",
        lambda h, w, x: scan(lambda x, h, w: np.tanh(w @ h + x), x, outputs_info=h, non_sequences=w, go_backwards=True),
        (U, A, PATH),
    ),
    "until": ("gemv", until_small, (U, A)),
    "checkpoints": (
        "gemv",
        ns.grad(
            lambda u, a: (scan(lambda u, a: np.tanh(a @ u), outputs_info=u, non_sequences=a, n_steps=7, checkpoint=3) ** 2).sum(),
            argnums=(0, 1),
        ),
        (U, A / 6),
    ),
    "loops in loops": (
        "gemv",
        lambda u, a: scan(
            lambda u, a: 0.5 * scan(lambda v, a: np.tanh(a @ v), outputs_info=u, non_sequences=a, n_steps=2)[-1],
            outputs_info=u,
            non_sequences=a,
            n_steps=3,
        ),
        (U, A),
    ),
    "a choice": (
        "gemv",
        lambda u, a: scan(lambda u, a: nt.ifelse(u.sum() > 0.0, np.tanh(a @ u), u * 0.5 + 0.1), outputs_info=u, non_sequences=a, n_steps=5),
        (abs(U), A),
    ),
    "no steps": ("", lambda u, a: scan(lambda u, a: np.tanh(a @ u), outputs_info=u, non_sequences=a, n_steps=0), (U, A)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_products_by_cublas(name: str, library: Any, same: Same, request: pytest.FixtureRequest) -> None:
    kind, function, args = PROGRAMS[name]
    same(function, *args, rtol=1e-10)
    if not request.config.getoption("--compile-kernels"):
        assert any(kind in one for one in library.called) == bool(kind)


@pytest.mark.usefixtures("runs_kernels")
@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
@pytest.mark.parametrize("name", ["matrix and vector", "matrices", "two transposes", "batches", "rows of each step"])
def test_products_of_other_dtypes(name: str, dtype: str, library: Any, same: Same) -> None:
    kind, function, args = PROGRAMS[name]
    turned = [(arg + 1j * arg[::-1] if dtype.startswith("complex") else arg).astype(dtype) for arg in args]
    same(function, *turned, rtol=1e-3 if dtype in ("float32", "complex64") else 1e-10)
    letter = {"float32": "S", "complex64": "C", "complex128": "Z"}[dtype]
    assert any(one.startswith(f"cublas{letter}") and kind in one for one in library.called)


@pytest.mark.usefixtures("runs_kernels")
@pytest.mark.parametrize(
    "labels", ["ik,kj->ij", "ki,kj->ij", "ik,jk->ij", "ki,jk->ij", "ik,kj->ji", "bik,bkj->bij", "bki,kj->bij", "ik,bkj->bij", "ik,.kj->.ij"]
)
@pytest.mark.parametrize("lengths", list(itertools.product([1, 3], [1, 2], [1, 4])))
def test_axes_of_length_1(labels: str, lengths: tuple[int, ...], library: Any) -> None:
    sizes = dict(zip("ijk", lengths, strict=True)) | ({"b": 2} if "b" in labels else {})
    axes = labels.replace("->", ",").split(",")
    shapes = [tuple(sizes.get(letter, 1) for letter in place) for place in axes]
    left, right = (RNG.normal(size=shape) for shape in shapes[:2])
    arrays = [cublas.cuda_package.cuda().to_device(array) for array in (left, right, np.full(shapes[2], np.nan))]
    assert cublas.by_cublas(labels, sizes, *((array, (0,) * array.ndim) for array in arrays))
    np.testing.assert_allclose(arrays[2].copy_to_host(), np.einsum(labels.replace(".", "z"), left, right), rtol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a.astype("int64") @ b.astype("int64"),
        lambda a, b: np.einsum("ij,ij->i", a[:, :30], b[:, :30]),
        lambda a, b: np.einsum("ij,kl->ik", a, b),
        lambda a, b: np.einsum("ii,ij->ij", a, b),
        lambda a, b: a[::-1] @ b[::-1, ::-1],
        ns.vmap(lambda row: scan(lambda u: np.tanh(np.outer(u, u) @ u), outputs_info=row, n_steps=2)),
        lambda a, b: ns.vmap(lambda u: scan(lambda u, a: np.tanh(a @ u), outputs_info=u, non_sequences=a, n_steps=2))(a),
    ],
)
@pytest.mark.usefixtures("runs_kernels")
def test_what_is_no_product_stays_a_loop(function: Any, library: Any, same: Same) -> None:
    args = (A,) if not hasattr(function, "__code__") or function.__code__.co_argcount < 2 else (A, A[::-1] * 2)
    same(function, *args, rtol=1e-10)
    assert not library.called


@pytest.mark.usefixtures("runs_kernels")
def test_a_product_that_would_read_what_it_writes_is_a_loop(library: Any) -> None:
    matrix = cublas.cuda_package.cuda().to_device(A)
    lengths = {"i": N, "k": N}
    operands = (matrix, (0, 0)), (cublas.cuda_package.cuda().to_device(U), (0,)), (matrix, (0, 0))
    assert not cublas.by_cublas("ik,k->i.", lengths, *operands)
    assert not library.called


@pytest.mark.usefixtures("runs_kernels")
@pytest.mark.parametrize(("lengths", "dtype"), [({"i": -1, "k": -9}, "float64"), ({"i": N, "k": N}, "float32")])
def test_no_elements_and_several_dtypes_are_for_the_loop(lengths: dict[str, int], dtype: str, library: Any) -> None:
    arrays = [cublas.cuda_package.cuda().to_device(array) for array in (A, U, U.astype(dtype))]
    assert not cublas.by_cublas("ik,k->i", lengths, *((array, (0,) * array.ndim) for array in arrays))
    assert not library.called


@pytest.mark.usefixtures("runs_kernels")
def test_small_products_stay_in_one_kernel(library: Any, monkeypatch: pytest.MonkeyPatch, same: Same) -> None:
    monkeypatch.setattr(cublas, "LARGE_PRODUCT", N * N + 1)
    same(PROGRAMS["rows of each step"][1], U, A, rtol=1e-10)
    assert not library.called


def test_a_loop_is_one_kernel_where_no_product_is_large() -> None:
    text = ns.jit(PROGRAMS["rows of each step"][1]).lower(U, A).source("cuda")
    assert "if takes_cublas(a.shape[0] * u.shape[0]):" in text
    assert "else:\n        in_one_grid(" in text
    assert sum("cuda.cg.this_grid()" in kernel for kernel in kernels_of(text).values()) == 1


def test_products_that_are_known_to_be_small_need_no_library() -> None:
    text = ns.jit(lambda u, a: scan(lambda u, a: np.tanh(a @ u), outputs_info=u, non_sequences=a, n_steps=4)).lower(U[:9], A[:9, :9])
    assert "cublas" not in text.source("cuda")


def test_very_large_products_without_cublas_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cublas, "library", lambda: None)
    monkeypatch.setattr(cublas.cuda_package, "is_simulated", lambda: False)
    assert not cublas.takes_cublas(2**24 - 1)
    with pytest.raises(ImportError, match="16,777,216 multiplications needs cuBLAS on a GPU: pip install nvidia-cublas"):
        cublas.takes_cublas(2**24)


@pytest.mark.parametrize(
    ("status", "error", "text"), [(3, MemoryError, "there is no memory"), (13, RuntimeError, "cublasDgemv_v2_64 returned status 13")]
)
@pytest.mark.usefixtures("runs_kernels")
def test_errors_of_cublas(status: int, error: type[Exception], text: str, library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(library), "cublasDgemv_v2_64", lambda *_: status, raising=False)
    with pytest.raises(error, match=text):
        ns.jit(lambda a, u: a @ u, mode="cuda")(A, U)
