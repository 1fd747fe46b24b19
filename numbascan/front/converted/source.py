"""The converted form of a user's function: made once for each code object, from the source that Python compiled."""

from __future__ import annotations
import __future__

import ast
import copy
import dis
import functools
import inspect
import linecache
import sys
import threading
import types
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any

from ...tracebacks import entry
from ..protocols import UNCONVERTED, UNREAD
from .lowering import PART, PASS, RUNTIME, Function, NotConvertible, lowered

Key = tuple[CodeType, str]  # equal code of two files has two forms: tracebacks show the file


class Runtime(SimpleNamespace):
    """What converted code calls. A class of its own: it is no object that the user changes."""


runtime = Runtime()
"""What converted code calls; `front/plain` fills it in."""

_made: dict[Key, CodeType | None] = {}  # the code of a function -> that of its converted form; None: it stays as it is
_ours: set[CodeType] = set()  # code that has been converted already
_LOCK = threading.RLock()
_LIBRARIES = frozenset({*sys.stdlib_module_names, "numpy", "scipy", "numba", "llvmlite", "numbascan"} - {"__main__", "this"})
MARK = "__numbascan_as_written__"


@entry
def as_written(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f`, left as it is: Python itself decides in its `if` and `while`, and refuses traced values there.

    Raises TypeError for what is no Python function.

    >>> import numbascan as ns, numpy as np
    >>> @ns.as_written
    ... def double(x):
    ...     return x + x
    >>> ns.jit(double)(2.0)
    array(4.)
    """
    if type(f) is not FunctionType:
        raise TypeError(f"ns.as_written takes a function, not {f!r}")
    vars(f)[MARK] = True
    return f


def converted(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` in its converted form, with the same globals, cells and defaults; `f` itself where it stays as it is."""
    if type(f) is FunctionType:
        return _function(f)
    if type(f) is types.MethodType:
        function = converted(f.__func__)
        return f if function is f.__func__ else types.MethodType(function, f.__self__)
    if type(f) is functools.partial:
        inner = converted(f.func)
        return f if inner is f.func else functools.partial(inner, *f.args, **f.keywords)
    call = inspect.getattr_static(type(f), "__call__", None)
    if type(call) is FunctionType and not isinstance(f, type):
        function = converted(call)
        return f if function is call else types.MethodType(function, f)
    return f


def converted_text(f: Callable[..., Any]) -> str:
    """The converted form of a function as Python source, where `_ns_` is the runtime.

    Raises ValueError, with the reason, for a function that stays as it is.
    """
    inner: Any = inspect.unwrap(f)
    while (behind := getattr(inner, "__func__", None) or getattr(inner, "func", None)) is not None:
        inner = inspect.unwrap(behind)
    if type(inner) is not FunctionType or converted(inner) is inner:
        why = reason(inner) or "it is no function of the user's, or marked ns.as_written"
        raise ValueError(f"source('python'): {getattr(inner, '__name__', inner)!s} is not converted: {why}")
    code = inner.__code__
    tree = ast.fix_missing_locations(lowered(_with_private_names(_tree(code), code)))
    for part in ast.walk(tree):
        if isinstance(part, ast.FunctionDef):
            part.__class__ = ast.FunctionDef  # unparse goes by the class itself
    return ast.unparse(tree) + "\n"


def code_that_runs(form: Callable[..., Any]) -> CodeType | None:
    """The code of a function in its converted form, behind methods and partial; None for builtins."""
    inner: Any = form
    while (behind := getattr(inner, "__func__", None) or getattr(inner, "func", None)) is not None:
        inner = behind
    return getattr(inner, "__code__", None)


def is_converted(form: Callable[..., Any]) -> bool:
    """Whether a function's code is converted code, its own or that of a function written inside a converted one."""
    return code_that_runs(form) in _ours


def reason(f: Callable[..., Any]) -> str:
    """Why a function stays as it is; "" where it does not."""
    code = getattr(f, "__code__", None)
    return UNCONVERTED.get((code, code.co_filename), "") if code is not None else ""


def _function(f: FunctionType) -> Callable[..., Any]:
    code = f.__code__
    if code in _ours or MARK in vars(f) or is_of_library(f):
        return f
    made = _made.get((code, code.co_filename), code)
    if made is code:
        made = _make(f)
    if made is None:
        return f
    cells = dict(zip(code.co_freevars, f.__closure__ or (), strict=True))
    cells[RUNTIME] = types.CellType(runtime)
    closure = tuple(cells.get(name) or types.CellType() for name in made.co_freevars)
    new = FunctionType(made, f.__globals__, f.__name__, f.__defaults__, closure)
    new.__kwdefaults__, new.__qualname__ = f.__kwdefaults__, f.__qualname__
    vars(new)["__wrapped__"] = f
    return new


def is_of_library(f: FunctionType) -> bool:
    """Whether a function belongs to Python, NumPy, SciPy, Numba or numbascan."""
    return is_library_name(str(f.__globals__.get("__name__")))


def is_library_name(module: object) -> bool:
    """Whether a module is Python's, NumPy's, SciPy's, Numba's or numbascan's.

    A class's `__module__` may be no string: in Cython it is a property that its objects share.
    """
    return isinstance(module, str) and module.partition(".")[0] in _LIBRARIES


def _make(f: FunctionType) -> CodeType | None:
    """Converts a function's code, once. None for one that stays as it is; the reason is noted."""
    code = f.__code__
    key = code, code.co_filename
    with _LOCK:
        if key not in _made:
            try:
                tree = _with_private_names(_tree(code), code)
                _check_is_source_of(code, tree)
                _made[key] = _compiled(f, lowered(tree))
            except (NotConvertible, SyntaxError, OSError, RecursionError, ValueError) as error:
                _made[key], UNCONVERTED[key] = None, str(error) or type(error).__name__
        return _made[key]


# the source -----------------------------------------------------------------------------------------------------------


def _tree(code: CodeType) -> Function:
    """The syntax tree of a function, from its lines in the file. NotConvertible for generators, and where the source cannot be found."""
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise NotConvertible("it is a generator, or asynchronous")
    lines = linecache.getlines(code.co_filename)
    if not 0 < code.co_firstlineno <= len(lines):
        raise NotConvertible(UNREAD)
    return _lambda(code, lines) if code.co_name == "<lambda>" else _definition(code, lines)


def _definition(code: CodeType, lines: list[str]) -> ast.FunctionDef:
    first = code.co_firstlineno - 1
    block = inspect.getblock(lines[first:])
    is_indented = block[0][:1].isspace()
    tree = ast.parse("".join(["if True:\n"] * is_indented + block))  # not dedented: that would change strings of several lines
    node = vars(tree.body[0])["body"][0] if is_indented else tree.body[0]
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:
        raise NotConvertible("its source cannot be found at its lines")
    ast.increment_lineno(node, first - is_indented)
    node.decorator_list = []
    node.returns = None
    for arg in ast.walk(node.args):
        if isinstance(arg, ast.arg):
            arg.annotation = None
    return node


Place = tuple[tuple[int, int], tuple[int, int]]  # line and column, in bytes, of the beginning and the end


def _lambda(code: CodeType, lines: list[str]) -> ast.Lambda:
    """The syntax tree of a lambda, found in its file by the place of its body, which Python keeps for tracebacks.

    If no lambda of the file fits, the text at the place is parsed.
    """
    place = _place(code)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    for node in _lambdas(code.co_filename, lines):
        body = node.body
        holds = (body.lineno, body.col_offset) <= place[0] and place[1] <= (body.end_lineno or 0, body.end_col_offset or 0)
        known = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        if holds and node.lineno <= code.co_firstlineno <= body.lineno and known == list(names) and not _has_inner(body, place):
            return copy.deepcopy(node)
    return ast.copy_location(ast.Lambda(_parameters(code), body := _text_at(place, lines)), body)


def _place(code: CodeType) -> Place:
    """Where the body of a lambda lies: from the first to the last of its instructions."""
    places = [one for one in code.co_positions() if None not in one and (one[0], one[2]) != (one[1], one[3])]
    if not places:
        raise NotConvertible("its place in the source is not known")
    ends = [(one[1] or 0, one[3] or 0) for one in places]
    return min((one[0] or 0, one[2] or 0) for one in places), max(ends)


def _has_inner(body: ast.expr, place: Place) -> bool:
    """Whether a lambda within the body holds the place, too, and may be the one that is looked for."""
    inner = [one for one in ast.walk(body) if isinstance(one, ast.Lambda)]
    return any(
        (one.body.lineno, one.body.col_offset) <= place[0] and place[1] <= (one.body.end_lineno or 0, one.body.end_col_offset or 0)
        for one in inner
    )


_FILES: dict[str, tuple[list[str], list[ast.Lambda]]] = {}


def _lambdas(name: str, lines: list[str]) -> list[ast.Lambda]:
    """The lambdas of a file; none if the file is no Python, as pages with examples."""
    known = _FILES.get(name)
    if known is None or known[0] is not lines:
        try:
            found = [node for node in ast.walk(ast.parse("".join(lines))) if isinstance(node, ast.Lambda)]
        except SyntaxError:
            found = []
        known = _FILES[name] = lines, found
    return known[1]


def _text_at(place: Place, lines: list[str]) -> ast.expr:
    """The expression that stands at a place."""
    (first, start), (last, end) = place
    rows = [line.encode() for line in lines[first - 1 : last]]
    rows[-1] = rows[-1][:end]
    rows[0] = rows[0][start:]
    tree = ast.parse("(" + b"".join(rows).decode() + "\n)", mode="eval")
    for one in ast.walk(tree.body):
        if isinstance(one, ast.expr):
            one.col_offset += start - 1 if one.lineno == 1 else 0
            one.end_col_offset = (one.end_col_offset or 0) + (start - 1 if one.end_lineno == 1 else 0)
    ast.increment_lineno(tree.body, first - 1)
    return tree.body


def _parameters(code: CodeType) -> ast.arguments:
    names = iter(code.co_varnames)
    take = lambda count: [ast.arg(next(names)) for _ in range(count)]  # noqa: E731 - three uses in one line each
    positional, others, keyword = (
        take(code.co_posonlyargcount),
        take(code.co_argcount - code.co_posonlyargcount),
        take(code.co_kwonlyargcount),
    )
    rest = take(1)[0] if code.co_flags & inspect.CO_VARARGS else None
    mapping = take(1)[0] if code.co_flags & inspect.CO_VARKEYWORDS else None
    return ast.arguments(positional, others, rest, keyword, [None for _ in keyword], mapping, [])


# code objects ----------------------------------------------------------------------------------------------------------------


class _Mangled(ast.NodeTransformer):
    """Mangles the private names of a class, as Python does: `self.__x` is `self._Class__x`."""

    def __init__(self, cls: str) -> None:
        self.prefix = "_" + cls.lstrip("_")

    def _name(self, name: str) -> str:
        return self.prefix + name if name.startswith("__") and not name.endswith("__") else name

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._name(node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        node.attr = self._name(node.attr)
        return node


def _with_private_names(tree: Function, code: CodeType) -> Function:
    owner = code.co_qualname.rpartition(".")[0].rpartition(".")[2]
    return _Mangled(owner).visit(tree) if owner.isidentifier() else tree


def _check_is_source_of(code: CodeType, tree: Function) -> None:
    """NotConvertible where `tree` is not what was compiled: a file that has changed since, or code that was rewritten on import.

    The converted function is made of the tree, so that has to do what the code does.
    """
    if _ASSERTS in code.co_names:  # pytest rewrites asserts, and leaves all else
        return
    plain = _code_of(code, copy.deepcopy(tree), [*code.co_freevars, "__class__"])
    if not _is_same(code, plain):
        raise NotConvertible("its source is not what was compiled: the file has changed since, or the code was rewritten on import")


_ASSERTS = "@pytest_ar"


def _is_same(one: CodeType, other: CodeType) -> bool:
    """Whether two code objects do the same with the same names, wherever they stand in a file."""
    if one.co_code == other.co_code and _constants(one) == _constants(other) and _names(one) == _names(other):
        return True
    return _names(one) == _names(other) and _instructions(one) == _instructions(other)


def _names(code: CodeType) -> tuple[object, ...]:
    return code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, [_names(one) for one in _codes(code)]


def _constants(code: CodeType) -> list[object]:
    return [(one.co_code, _constants(one)) if isinstance(one, CodeType) else _constant(one) for one in code.co_consts]


def _constant(value: object) -> tuple[type, str]:
    """A constant as it is compared. Of a class's qualified name only the end counts: the beginning says where the class stands."""
    text = value.rpartition("<locals>.")[2] if isinstance(value, str) else value
    return type(value), repr(text)


def _instructions(code: CodeType) -> list[object]:
    """The instructions of code, as they are compared.

    A method of an imported module is loaded in one of two ways, depending on whether the import stands in the same file.
    """
    steps = [one for one in dis.get_instructions(code) if one.opname not in _NO_STEPS]
    return [(_ALIKE.get(one.opname, one.opname), _argument(one)) for one in steps]


_NO_STEPS = frozenset({"NOP", "CACHE", "EXTENDED_ARG", "PUSH_NULL"})
_ALIKE = {"LOAD_METHOD": "LOAD_ATTR"}


def _argument(step: dis.Instruction) -> object:
    if step.opcode in dis.hasjabs or step.opcode in dis.hasjrel:  # jump targets move, the order stays
        return None
    return _instructions(step.argval) if isinstance(step.argval, CodeType) else _constant(step.argval)


def _compiled(f: FunctionType, tree: Function) -> CodeType:
    """The code of the converted function. Its cells are the function's, one for the runtime, and `__class__`."""
    code = f.__code__
    names = [*code.co_freevars, RUNTIME, *(["__class__"] if "__class__" not in code.co_freevars else [])]
    made = _named(_code_of(code, tree, names), code)
    _ours.update(_all_codes(made))
    return made


def _code_of(code: CodeType, tree: Function, names: list[str]) -> CodeType:
    """The code of a tree, compiled in the place of `code` inside a function whose variables are `names`."""
    tree.args.defaults = [ast.Constant(None) for _ in tree.args.defaults]
    tree.args.kw_defaults = [None if one is None else ast.Constant(None) for one in tree.args.kw_defaults]
    if isinstance(tree, ast.FunctionDef):
        tree.name = "_ns_itself_"  # what the function calls by its own name is found where it was found before
    inner: ast.stmt = tree if isinstance(tree, ast.FunctionDef) else ast.Return(tree)
    outer = ast.FunctionDef(
        "_cells_", ast.arguments([], [ast.arg(name) for name in dict.fromkeys(names)], None, [], [], None, []), [inner], [], None, None
    )
    vars(outer)["type_params"] = []  # which Python 3.12 asks for
    module = ast.fix_missing_locations(ast.Module([ast.copy_location(outer, tree)], []))
    (cells,) = _codes(compile(module, code.co_filename, "exec", dont_inherit=True, flags=code.co_flags & _FUTURE))
    (made,) = _codes(cells)
    return made


_FUTURE = __future__.annotations.compiler_flag  # how annotations within the function are read


def _codes(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]


def _all_codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in _codes(code):
        yield from _all_codes(one)


def _named(code: CodeType, original: CodeType, prefix: str = "") -> CodeType:
    """Code with the names that tracebacks show: branches and bodies get the name of the function that they are part of."""
    is_part = code.co_name.startswith((PART, PASS, "_ns_itself_"))
    name, qualname = (
        (original.co_name, original.co_qualname) if is_part or not prefix else (code.co_name, f"{prefix}.<locals>.{code.co_name}")
    )
    inside = original if is_part or not prefix else code
    consts = tuple(_named(one, inside, qualname) if isinstance(one, CodeType) else one for one in code.co_consts)
    return code.replace(co_name=name, co_qualname=qualname, co_consts=consts)
