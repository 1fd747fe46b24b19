"""Numba's CUDA half: which package it comes from, and what must be done before it is imported.

The package numba-cuda takes the place of `numba.cuda` through a hook that a `.pth` file installs. Where such files are not read (a folder
on PYTHONPATH) the hook is imported here. Its import needs `np.row_stack`, which NumPy 2.5 and later lack: it is there meanwhile.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

INSTALL = "pip install numbascan[cuda]"
_ADVICE = "CUDA_LOW_OCCUPANCY_WARNINGS"
_settings = threading.Lock()  # held while Numba's are changed


@cache
def cuda() -> Any:
    """The module `numba.cuda`, of numba-cuda where that is installed."""
    _optional("_numba_cuda_redirector")
    lacks_row_stack = not hasattr(np, "row_stack")
    if lacks_row_stack:
        vars(np)["row_stack"] = np.vstack
    try:
        module = importlib.import_module("numba.cuda")
        if is_nvidia(module) and not is_simulated():
            importlib.import_module("numba.cuda.np.arrayobj")
    finally:
        if lacks_row_stack:
            del vars(np)["row_stack"]
    return module


def version() -> str:
    """The version of the package that compiles kernels: numba-cuda, or Numba."""
    module: Any = sys.modules.get("numba_cuda") or importlib.import_module("numba")
    return str(module.__version__)


def keep_machine_code(kernel: Any) -> None:
    """Has numba-cuda keep a kernel's machine code beside the file of its text, and look for it there.

    Not handled: kernels that call `reshape`. They are linked with a file's code, which numba-cuda does not store.
    """
    if is_simulated() or "reshape" in kernel.py_func.__code__.co_names:
        return
    with suppress(RuntimeError, OSError):  # a folder that may not be written
        kernel.enable_caching()
        kept = kernel._cache
        # `load_overload` would first load all of Numba's declarations, a third of a second
        kept.load_overload, kept.save_overload = _or_nothing(kept._load_overload, kept.flush), _or_nothing(kept.save_overload, kept.flush)


def _or_nothing(function: Callable[..., Any], flush: Callable[[], Any]) -> Callable[..., Any]:
    """A function of a store that may be damaged or full: instead of raising it empties the store and returns None, and code is compiled."""

    def call(*args: Any) -> Any:
        try:
            return function(*args)
        except Exception:  # whatever comes of reading a part of a file
            with suppress(Exception):
                flush()
            return None

    return call


def missing() -> str:
    """Why nothing can run on a GPU; "" if it can."""
    if is_simulated():
        return ""
    try:
        if not cuda().is_available():
            return "there is no CUDA driver or device; use mode=None for the CPU, or NUMBA_ENABLE_CUDASIM=1 to try kernels in Python"
    except Exception as error:  # whatever a broken driver raises
        return f"CUDA cannot be used: {error}"
    return "" if is_nvidia(cuda()) else f"the package numba-cuda is missing: {INSTALL}"


def is_nvidia(module: Any) -> bool:
    """True for the package numba-cuda, False for what is left of CUDA in Numba itself."""
    return str(getattr(module, "implementation", "")) == "NVIDIA"


def is_simulated() -> bool:
    """True if Python runs kernels, as NUMBA_ENABLE_CUDASIM=1 asks."""
    from numba import config

    return bool(vars(config)["ENABLE_CUDASIM"])


@contextmanager
def without_advice() -> Iterator[None]:
    """Inside, Numba does not warn of grids that leave much of a device idle: the user's loop decides how many passes there are."""
    from numba import config

    with _settings:
        before = vars(config)[_ADVICE]
        setattr(config, _ADVICE, 0)
        try:
            yield
        finally:
            setattr(config, _ADVICE, before)


def _optional(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


Types = Sequence[tuple[str, int]]
"""Dtype and rank of each argument of a kernel; a number has rank 0."""


def machine_code(function: Any, types: Types, capabilities: Sequence[tuple[int, int]] = ((9, 0),)) -> list[Statistics]:
    """What a thread of a kernel takes on devices of some capabilities, the oldest first: compiles it to machine code, on any machine.

    The way is that of numba-cuda's own launches: code for the linker, then nvJitLink.
    """
    code = _compiled(function, types, capabilities[0], "ltoir")
    names = function.__code__.co_names
    libraries = _device_runtime() if "cg" in names else []  # it has the barriers of a grid
    return [
        _linked([code, *([_of_reshape(capability)] if "reshape" in names else [])], libraries, capability) for capability in capabilities
    ]


def assembly(function: Any, types: Types) -> str:
    """A kernel as PTX, before the linker: it shows the precision and the rounding of each operation."""
    text = _compiled(function, types, (9, 0), "ptx")
    return text.decode() if isinstance(text, bytes) else str(text)


def compiled_for_device(function: Any, types: Types) -> str:
    """The type of what a function returns, compiled as kernels call it for the current device."""
    return str(function.compile_device(_signature(types)).signature.return_type)


def _compiled(function: Any, types: Types, capability: tuple[int, int], output: str) -> Any:
    with of_capability(capability):
        code, _ = cuda().compile(function, _signature(types), cc=capability, device=False, abi="numba", output=output)
        return code


def _signature(types: Types) -> tuple[Any, ...]:
    from numba import types as numba_types

    elements = [getattr(numba_types, "boolean" if dtype == "bool" else dtype) for dtype, _ in types]
    return tuple([numba_types.Array(one, rank, "C") if rank else one for one, (_, rank) in zip(elements, types, strict=True)])


def _of_reshape(capability: tuple[int, int]) -> bytes:
    """The code that numba-cuda links with kernels that call `reshape`."""
    compiler: Any = importlib.import_module("numba.cuda.cudadrv.nvrtc")
    source = Path(compiler.__file__).parents[1] / "reshape_funcs.cu"
    found, _ = compiler.compile(source.read_bytes(), source.name, capability, ltoir=True)
    return bytes(found.code)


def _linked(codes: Sequence[bytes], libraries: Sequence[Path], capability: tuple[int, int]) -> Statistics:
    from cuda.bindings import nvjitlink as linker

    options = [f"-arch=sm_{capability[0]}{capability[1]}", "-lto", "-Xptxas=-v"]
    handle = linker.create(len(options), options)
    for code in codes:
        linker.add_data(handle, linker.InputType.LTOIR, code, len(code), "kernel")
    for library in libraries:
        linker.add_file(handle, linker.InputType.LIBRARY, str(library))
    linker.complete(handle)
    log = bytearray(linker.get_info_log_size(handle))
    linker.get_info_log(handle, log)
    linker.destroy(handle)

    def told(pattern: str) -> int:
        match = re.search(pattern, log.decode())
        return int(match[1]) if match else 0

    return Statistics(told(r"Used (\d+) registers"), told(r"(\d+) bytes stack"), told(r"(\d+) bytes spill stores"))


def _device_runtime() -> list[Path]:
    """CUDA's runtime library for device code, if the package nvidia-cuda-runtime is installed."""
    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    return [path for folder in folders for path in Path(folder).rglob("libcudadevrt.a")][:1]


@dataclass(frozen=True)
class Statistics:
    """What a thread of a kernel takes: registers, bytes on its stack, bytes of spilt registers."""

    registers: int
    stack: int
    spilt: int


@contextmanager
def of_capability(capability: tuple[int, int]) -> Iterator[None]:
    """Inside, the functions that kernels call are compiled as if the current device had this capability."""
    dispatcher: Any = importlib.import_module("numba.cuda.dispatcher")
    before = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability)
    try:
        yield
    finally:
        dispatcher.get_current_device = before
