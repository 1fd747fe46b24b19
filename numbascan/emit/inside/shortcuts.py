"""Ways through private parts of Numba, llvmlite, NumPy and SciPy: what each needs there, what it buys, and whether it is taken.

Nothing private is imported but by the names below, which are looked up when a shortcut is taken. The public way is taken instead where

* a name is missing, or a function has other parameters than those written here;
* Numba is of a version that this was not tried with;
* NUMBASCAN_SHORTCUTS says so: `none`, or the names of those to take (`np_empty,lapack`), or of those to leave out (`-np_empty,-lapack`).

Importing this imports nothing.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

TRIED = ((0, 62), (0, 69))  # versions of Numba, the second one not among them
SHORTCUTS: dict[str, Shortcut] = {}

_public_ways: list[None] = []  # if not empty, no shortcut is taken
_originals: dict[int, Any] = {}  # Numba's own functions, by the id of their present replacements


class Shortcut:
    """Private objects as attributes, by the last part of their names; those that were there when `is_taken` was last asked."""

    def __init__(self, name: str, *paths: str) -> None:
        self.name, self.paths = name, {re.split(r"[.:]", path.partition("(")[0])[-1]: path for path in paths}
        SHORTCUTS[name] = self

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the shortcut {self.name!r} names no {name!r}, or was never taken")

    def is_chosen(self) -> bool:
        """True if it may be taken, provided that its names are there."""
        return is_tried() and not _public_ways and _is_chosen(self.name, os.environ.get("NUMBASCAN_SHORTCUTS", ""))

    def is_taken(self, module: Callable[[str], Any] = importlib.import_module) -> bool:
        """True if it is chosen and its names are there with the known parameters. `module` imports."""
        if not self.is_chosen():
            return False
        try:
            vars(self).update({name: _looked_up(path, module) for name, path in self.paths.items()})
        except (ImportError, AttributeError):
            return False
        return True

    @contextmanager
    def replaced(self, **functions: Callable[..., Any]) -> Iterator[None]:
        """Inside, these functions stand in the place of Numba's."""
        before = {}
        try:
            for name, function in functions.items():
                owner = _looked_up(re.sub(r"[.:]\w+(\(.*)?$", "", self.paths[name]))
                before[name] = owner, getattr(owner, name)
                _originals[id(function)] = _originals.get(id(before[name][1]), before[name][1])  # replaced twice: still Numba's
                setattr(owner, name, function)
            yield
        finally:
            for name, (owner, function) in before.items():
                setattr(owner, name, function)
                _originals.pop(id(functions[name]), None)


def _looked_up(path: str, module: Callable[[str], Any] = importlib.import_module) -> Any:
    """The object at `package.module:name.name(parameters)`."""
    place, _, parameters = path.partition("(")
    where, _, names = place.partition(":")
    private = module(where)
    for name in filter(None, names.split(".")):
        private = getattr(private, name)
    private = _originals.get(id(private), private)  # shortcuts are asked for while others are in force
    if parameters and ", ".join(inspect.signature(private).parameters) != parameters.rstrip(")"):
        raise AttributeError(f"{place} takes other arguments")
    return private


def _is_chosen(name: str, choice: str) -> bool:
    names = {one.strip() for one in choice.split(",")} - {"", "all"}
    left_out = {one[1:] for one in names if one.startswith("-")}
    return name not in left_out and (not names - {f"-{one}" for one in left_out} or name in names)


@contextmanager
def public_ways() -> Iterator[None]:
    """Inside, no shortcut is taken."""
    _public_ways.append(None)
    try:
        yield
    finally:
        _public_ways.pop()


@cache
def numba_folder() -> Path:
    """Where Numba is installed, found without importing it."""
    spec = importlib.util.find_spec("numba")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


@cache
def numba_version() -> str:
    """The version of Numba, found without importing it."""
    try:
        match = re.search(r'"version": "([^"]+)"', numba_folder().joinpath("_version.py").read_text())
    except OSError:
        match = None
    if match is not None:
        return match[1]
    from importlib.metadata import version  # slow to import

    return version("numba")


def is_tried() -> bool:
    """True if the shortcuts were tried with the version of Numba that is installed."""
    numbers = re.match(r"(\d+)\.(\d+)", numba_version())
    return numbers is not None and TRIED[0] <= (int(numbers[1]), int(numbers[2])) < TRIED[1]


# the start of a process ------------------------------------------------------------------------------------------------

# Machine code of kernels is stored, and loaded without Numba (`object_code.py`); else Numba loads its own cache.
OBJECT_CODE = Shortcut(
    "object_code",
    "numba.core.compiler:CompileResult._find_referenced_environments(self)",
    "numba.core.funcdesc:FunctionDescriptor.llvm_cpython_wrapper_name",
    "numba.core.codegen:CodeLibrary.has_dynamic_globals",
)
# The extension modules that it needs, imported without the package around them.
OBJECT_CODE_LOADED = Shortcut(
    "object_code_loaded",
    "numba._helperlib:c_helpers",
    "numba._dynfunc:Environment",
    "numba.core.runtime._nrt_python:memsys_use_cpython_allocator",
    "importlib._bootstrap:_ModuleLockManager(name)",
)
# The class of NumPy's arrays is a symbol of the linker, not a pickle that is looked up in a dict for each result.
ARRAY_CLASS = Shortcut(
    "array_class",
    "numba.core.pythonapi:PythonAPI.serialize_object(self, obj)",
    "numba.core.pythonapi:PythonAPI.unserialize(self, structptr)",
    "numba.core.pythonapi:PythonAPI.get_c_object(self, name)",
)

# compiling -------------------------------------------------------------------------------------------------------------

# What all below need: nobody else compiles while functions of Numba are replaced.
COMPILER = Shortcut("compiler", "numba.core.compiler_lock:global_compiler_lock", "numba.core.registry:cpu_target")
# What Numba knows of NumPy is loaded without SciPy, and in an order that looks for more of it twice and not 250 times.
DECLARATIONS = Shortcut("declarations", "numba.np.linalg:ensure_blas()", "numba.core.typing.context:BaseContext.refresh(self)")
DECLARATIONS_OF_CODE = Shortcut("declarations_of_code", "numba.core.base:BaseContext.refresh(self)")
# `np.empty` is typed and lowered in one step (`arrays.py`), not in five functions that are compiled one by one.
NP_EMPTY = Shortcut(
    "np_empty",
    "numba.core.typing.context:BaseContext.refresh(self)",
    "numba.core.typing.context:BaseContext.resolve_value_type(self, val)",
    "numba.core.typing.context:BaseContext._insert_global(self, gv, gty)",
    "numba.core.typing.context:BaseContext._remove_global(self, gv)",
    "numba.core.typing.templates:AbstractTemplate",
    "numba.core.typing.templates:signature(return_type, args, kws)",
    "numba.core.base:BaseContext.get_preferred_array_alignment(context, ty)",
    "numba.core.imputils:impl_ret_new_ref(ctx, builder, retty, ret)",
    "numba.core.runtime.context:NRTContext.meminfo_alloc_aligned_unchecked(self, builder, size, align)",
    "numba.core.runtime.context:NRTContext.meminfo_data(self, builder, meminfo)",
    "numba.core.callconv:CPUCallConv.return_user_exc(self, builder, exc, exc_args, loc, func_name)",
    "numba.core.cgutils:get_or_insert_function(module, fnty, name)",
    "numba.core.cgutils:if_unlikely(builder, pred)",
    "numba.core.cgutils:unpack_tuple(builder, tup, count)",
    "numba.np.arrayobj:make_array(array_type)",
    "numba.np.arrayobj:populate_array(array, data, shape, strides, itemsize, meminfo, parent)",
)
# Generated functions are lowered from their text (`lowered`); else by Numba's own way, which takes three times as long.
LOWERED = Shortcut(
    "lowered",
    "numba.core.base:BaseContext.add_linking_libs(self, libs)",
    "numba.core.base:BaseContext.enable_boundscheck",
    "numba.core.base:BaseContext.get_function(self, fn, sig, _firstcall)",
    "numba.core.callconv:CPUCallConv._get_excinfo_argument(self, func)",
    "numba.core.callconv:CPUCallConv._return_errcode_raw(self, builder, code)",
    "numba.core.callconv:CPUCallConv.build_excinfo_struct(self, exc, exc_args, loc, func_name)",
    "numba.core.callconv:CPUCallConv.emit_unwrap_dynamic_exception_fn(self, module, st_type, nb_types)",
    "numba.core.callconv:CPUCallConv.emit_wrap_args_insts(self, builder, pyapi, struct_type, exc_args)",
    "numba.core.callconv:CPUCallConv.set_static_user_exc(self, builder, exc, exc_args, loc, func_name)",
    "numba.core.callconv:PICKLE_BUFSZ_IDX",
    "numba.core.callconv:PICKLE_BUF_IDX",
    "numba.core.callconv:RETCODE_USEREXC",
    "numba.core.callconv:errcode_t",
    "numba.core.callconv:excinfo_ptr_t",
    "numba.core.callconv:excinfo_t",
    "numba.core.cgutils:do_boundscheck(context, builder, ind, dimlen, axis)",
    "numba.core.cgutils:for_range(builder, count, start, intp)",
    "numba.core.cgutils:get_or_insert_function(module, fnty, name)",
    "numba.core.cgutils:raw_memcpy(builder, dst, src, count, itemsize, align)",
    "numba.core.cgutils:unpack_tuple(builder, tup, count)",
    "numba.core.errors:NumbaError",
    "numba.core.runtime.context:NRTContext.allocate(self, builder, size)",
    "numba.core.typing.context:BaseContext.resolve_function_type(self, func, args, kws)",
    "numba.core.typing.context:BaseContext.resolve_value_type(self, val)",
    "numba.core.typing.context:BaseContext.unify_types(self, typelist)",
    "numba.core.typing.templates:fold_arguments(pysig, args, kws, normal_handler, default_handler, stararg_handler)",
    "numba.core.typing.templates:signature(return_type, args, kws)",
    "numba.np.arrayobj:load_item(context, builder, arrayty, ptr)",
    "numba.np.arrayobj:make_array(array_type)",
    "numba.np.arrayobj:populate_array(array, data, shape, strides, itemsize, meminfo, parent)",
    "numba.np.arrayobj:store_item(context, builder, arrayty, val, ptr)",
)
# Products by one call of BLAS (`products.py`): 8 of them of several types take 0.1 s of a first call, 1.3 by Numba's `np.dot`.
NP_DOT = Shortcut(
    "np_dot",
    "numba.core.typing.context:BaseContext.refresh(self)",
    "numba.core.typing.context:BaseContext.resolve_value_type(self, val)",
    "numba.core.typing.context:BaseContext._insert_global(self, gv, gty)",
    "numba.core.typing.context:BaseContext._remove_global(self, gv)",
    "numba.core.typing.templates:AbstractTemplate",
    "numba.core.typing.templates:signature(return_type, args, kws)",
    "numba.core.imputils:impl_ret_borrowed(ctx, builder, retty, ret)",
    "numba.core.callconv:CPUCallConv.return_user_exc(self, builder, exc, exc_args, loc, func_name)",
    "numba.core.cgutils:alloca_once(builder, ty, size, name, zfill)",
    "numba.core.cgutils:get_or_insert_function(module, fnty, name)",
    "numba.core.cgutils:if_unlikely(builder, pred)",
    "numba.core.cgutils:memset(builder, ptr, size, value)",
    "numba.core.cgutils:unpack_tuple(builder, tup, count)",
    "numba.np.linalg:ensure_blas()",
    "numba.np.linalg:make_constant_slot(context, builder, ty, val)",
    "numba.np.linalg:call_xxdot(context, builder, conjugate, dtype, n, a_data, b_data, out_data)",
    "numba.np.linalg:call_xxgemv(context, builder, do_trans, m_type, m_shapes, m_data, v_data, out_data)",
    "numba.np.linalg:call_xxgemm(context, builder, x_type, x_shapes, x_data, y_type, y_shapes, y_data, out_type, out_shapes, out_data)",
)
# Lowered functions go through LLVM's optimiser once (`one_pipeline.py`); Numba's go three times.
ONE_PIPELINE = Shortcut(
    "one_pipeline",
    "numba.core.base:BaseContext.active_code_library",
    "numba.core.codegen:CPUCodeLibrary._optimize_functions(self, ll_module)",
    "numba.core.codegen:CPUCodeLibrary._optimize_final_module(self)",
    "numba.core.codegen:CPUCodegen._module_pass_manager(self, kwargs)",
)
# Functions that Python never calls are optimised and translated as parts of those that call them alone (`inner_functions.py`).
INNER_FUNCTIONS = Shortcut(
    "inner_functions",
    "numba.core.codegen:CPUCodeLibrary._optimize_final_module(self)",
    "numba.core.codegen:CPUCodeLibrary._finalize_final_module(self)",
    "numba.core.codegen:CPUCodeLibrary._finalize_dynamic_globals(self)",
    "numba.core.codegen:CPUCodeLibrary._verify_declare_only_symbols(self)",
    "numba.core.codegen:JITCPUCodegen.set_env(self, env_name, env)",
    "numba.core.cpu:CPUContext.get_executable(self, library, fndesc, env)",
    "numba.core.environment:lookup_environment(env_name)",
)
# The type of `x + y` is found once for the types of x and y; Numba tries dozens of templates, each time.
OPERATOR_TYPES = Shortcut("operator_types", "numba.core.types.functions:BaseFunction.get_call_type(self, context, args, kws)")

# running ---------------------------------------------------------------------------------------------------------------

# A kernel is called without a second check of its arguments.
ENTRY_POINT = Shortcut("entry_point", "numba.core.compiler:CompileResult.entry_point")
# Arrays lie at multiples of 64 bytes; Numba's own 32 split every second AVX-512 store in two. A row of 1,000 numbers updated in place:
# 97 ns a pass, 160 where the heap happened to give 32 bytes.
CACHE_LINES = Shortcut("cache_lines", "numba.core.base:BaseContext.get_preferred_array_alignment(context, ty)")
# Work rows on the stack, and vectors seen as columns without a count of references (40 ns); else they are arrays on the heap.
STACK = Shortcut(
    "stack",
    "numba.np.arrayobj:make_array(array_type)",
    "numba.np.arrayobj:populate_array(array, data, shape, strides, itemsize, meminfo, parent)",
)
# Loops call libmvec (`vector_forms.py`): tanh 21 -> 2.1 ns an element. Else there are calls of libm.
VECTOR_FORMS = Shortcut(
    "vector_forms",
    "numba.core.cpu:CPUContext.codegen(self)",
    "numba.core.codegen:CPUCodegen.magic_tuple(self)",
    "llvmlite.ir.values:FunctionAttributes",
)
# Lanes in several threads (`threads.py`); else in one.
THREADS = Shortcut(
    "threads",
    "numba.core.dispatcher:Dispatcher.get_call_template(self, args, kws)",
    "numba.core.base:BaseContext.add_linking_libs(self, libs)",
    "numba.core.base:BaseContext.declare_function(self, module, fndesc)",
    "numba.core.callconv:CPUCallConv.call_function(self, builder, callee, resty, argtys, args, attrs)",
    "numba.core.cgutils:alloca_once(builder, ty, size, name, zfill)",
    "numba.core.cgutils:alloca_once_value(builder, value, name, zfill)",
    "numba.core.cgutils:for_range(builder, count, start, intp)",
    "numba.core.cgutils:gep(builder, ptr, inds, kws)",
    "numba.core.cgutils:gep_inbounds(builder, ptr, inds, kws)",
    "numba.core.cgutils:get_or_insert_function(module, fnty, name)",
    "numba.core.cgutils:if_unlikely(builder, pred)",
    "numba.core.cgutils:unpack_tuple(builder, tup, count)",
)
# LAPACK in place, NaN let through (`lapack.py`); else SciPy's bindings, called through Python.
LAPACK = Shortcut("lapack", "numba.np.linalg:_LAPACK", "numba.np.linalg:get_blas_kind(dtype, func_name)", "numba.np.linalg:F_INT_nptype")
# NumPy's sorts (`numpy_sorts.py`); else rows are merged.
NUMPY_SORTS = Shortcut("numpy_sorts", "numpy._core._multiarray_umath:_ARRAY_API")
# NumPy's Fourier transforms (`numpy_fft.py`); else they are called through Python.
NUMPY_FFT = Shortcut(
    "numpy_fft",
    "numpy.fft._pocketfft_umath:fft",
    "numpy.fft._pocketfft_umath:rfft_n_even",
    "numpy.fft._pocketfft_umath:rfft_n_odd",
    "numpy.fft._pocketfft_umath:irfft",
)
# Machine code of SciPy's scalar functions; else they are called through Python.
SCIPY = Shortcut("scipy_functions", "scipy.special.cython_special:__pyx_capi__")
