"""Generated functions, lowered to LLVM from their text: Numba sees a function of one line, and none of the rest. Importing this imports Numba.

Generated text is a small part of Python: numbers whose types do not change, arrays in C order, loops over ranges, choices, errors. So types
follow from arguments in one walk, and code from types in another. Numba's own way takes ten walks, and ends in code with a counter for each
array and a copy for each value, which LLVM takes apart again: two thirds to four fifths of a first call.

What an operation means, and what a function gives, is asked of Numba: the numbers are the same. What is not known here raises Unknown
before any code is made; Numba then compiles the function as it stands.

Conditions:

* A name has one type in all of a function.
* An array that is taken is given back behind the last statement of its block that mentions it or a view of it, and at the end at the
  latest. A view is never returned, but of an argument or an array that lives until the end.
"""

from __future__ import annotations

import ast
import operator
from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from types import CodeType
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .module_functions import called
from .shortcuts import DIRECT as NUMBA

NUMBER, BIT = ir.IntType(64), ir.IntType(1)
_POINTER = ir.IntType(8).as_pointer()
OPERATORS: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class Unknown(Exception):
    """The text holds what is not lowered here."""


def _is_array(type_: Any) -> bool:
    return isinstance(type_, types.Array)


def _plain(type_: Any) -> Any:
    return types.unliteral(type_)


# types -------------------------------------------------------------------------------------------------------------------


class Types:
    """The types of a function's locals and expressions, for given types of its arguments."""

    def __init__(self, context: Any, function: ast.FunctionDef, names: dict[str, Any], arguments: Sequence[Any]) -> None:
        self.context, self.names = context, names
        self.locals: dict[str, Any] = dict(zip([one.arg for one in function.args.args], map(_plain, arguments), strict=True))
        self.of: dict[ast.AST, Any] = {}
        self.signatures: dict[ast.AST, tuple[Any, Any]] = {}  # of operators and calls: the function's type, the signature
        self.returned: Any = None
        self.counters: dict[str, bool] = {}  # counters of loops: are they never negative?
        self._known: dict[Any, Any] = {}
        self.block(function.body)
        if self.returned is None:
            self.returned = types.none

    def block(self, stmts: Sequence[ast.stmt]) -> None:
        for stmt in stmts:
            getattr(self, f"on_{type(stmt).__name__.lower()}", self._unknown)(stmt)

    def _unknown(self, node: ast.AST) -> Any:
        raise Unknown(ast.unparse(node))

    def _bind(self, name: str, type_: Any) -> None:
        type_ = _plain(type_)
        if name in self.counters:
            self.counters[name] = False
        if self.locals.setdefault(name, type_) != type_:
            raise Unknown(f"{name}: {self.locals[name]} and {type_}")

    def on_assign(self, stmt: ast.Assign) -> None:
        (target,) = stmt.targets
        value = self.expr(stmt.value)
        if isinstance(target, ast.Name):
            self._bind(target.id, value)
        elif isinstance(target, ast.Subscript):
            element = self.expr(target)
            if _is_array(element) or _is_array(value):
                raise Unknown(ast.unparse(stmt))
        else:
            raise Unknown(ast.unparse(stmt))

    def on_augassign(self, stmt: ast.AugAssign) -> None:
        self.operation(stmt, OPERATORS[type(stmt.op)], [stmt.target, stmt.value])
        if isinstance(stmt.target, ast.Name) and self.of[stmt] != self.locals[stmt.target.id]:
            raise Unknown(ast.unparse(stmt))

    def on_for(self, stmt: ast.For) -> None:
        call, target = stmt.iter, stmt.target
        is_range = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"
        if not is_range or not isinstance(target, ast.Name) or stmt.orelse:
            raise Unknown(ast.unparse(stmt.iter))
        for bound in call.args:
            type_ = _plain(self.expr(bound))
            if not isinstance(type_, types.Integer) or not type_.signed or type_.bitwidth > 64:
                raise Unknown(f"range of {type_}")
        start, step = _bounds(call)[0], _constant(_bounds(call)[2])
        if step is None or step == 0:
            raise Unknown(ast.unparse(call))
        is_natural = step > 0 and self.is_natural(start) and self.counters.get(target.id, target.id not in self.locals)
        self._bind(target.id, types.int64)
        self.counters[target.id] = is_natural
        self.block(stmt.body)

    def on_if(self, stmt: ast.If) -> None:
        if _plain(self.expr(stmt.test)) != types.boolean:
            raise Unknown(ast.unparse(stmt.test))
        self.block(stmt.body)
        self.block(stmt.orelse)

    def on_expr(self, stmt: ast.Expr) -> None:
        if not isinstance(stmt.value, ast.Call):
            raise Unknown(ast.unparse(stmt))
        self.expr(stmt.value)

    def on_return(self, stmt: ast.Return) -> None:
        type_ = types.none if stmt.value is None else _plain(self.expr(stmt.value))
        if self.returned not in (None, type_):
            raise Unknown(f"returns {self.returned} and {type_}")
        self.returned = type_

    def on_raise(self, stmt: ast.Raise) -> None:
        error, args = raised(stmt)
        self.object_at(error)
        for one in args:
            if not self._is_text(one):
                self.expr(one)

    def _is_text(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and isinstance(self.names.get(node.id), str)

    def on_break(self, stmt: ast.Break) -> None:
        pass

    def on_pass(self, stmt: ast.Pass) -> None:
        pass

    # expressions

    def expr(self, node: ast.expr) -> Any:
        """The type of an expression; literal for an integer that is written out."""
        type_ = getattr(self, f"of_{type(node).__name__.lower()}", self._unknown)(node)
        self.of[node] = type_
        return type_

    def of_constant(self, node: ast.Constant) -> Any:
        value = node.value
        if isinstance(value, bool):
            return types.boolean
        if isinstance(value, int):
            return types.literal(value)
        if isinstance(value, float):
            return types.float64
        if isinstance(value, complex):
            return types.complex128
        raise Unknown(repr(value))

    def of_name(self, node: ast.Name) -> Any:
        if node.id in self.locals:
            return self.locals[node.id]
        if node.id in self.names or hasattr(__builtins__, node.id):
            return self.context.resolve_value_type(self.object_at(node))
        raise Unknown(node.id)

    def of_attribute(self, node: ast.Attribute) -> Any:
        value = self.constant_object(node)
        if value is not None:
            return self.context.resolve_value_type(value)
        array = self.expr(node.value)
        if node.attr == "T" and _is_array(array) and array.ndim == 2 and array.layout == "C":
            return array.copy(layout="F")
        if node.attr in ("real", "imag") and isinstance(array, types.Complex):
            return array.underlying_float
        raise Unknown(ast.unparse(node))

    def of_subscript(self, node: ast.Subscript) -> Any:
        if _is_shape(node.value):
            array = self.expr(node.value.value)
            if not _is_array(array) or _constant(node.slice) not in range(array.ndim):
                raise Unknown(ast.unparse(node))
            return types.int64
        array, index = self.expr(node.value), _entries(node.slice)
        if not _is_array(array) or array.layout != "C" or len(index) > array.ndim:
            raise Unknown(ast.unparse(node))
        if isinstance(index[0], ast.Slice):
            if len(index) != 1 or index[0].step is not None:
                raise Unknown(ast.unparse(node))
            for bound in (index[0].lower, index[0].upper):
                if bound is not None and not isinstance(_plain(self.expr(bound)), types.Integer):
                    raise Unknown(ast.unparse(node))
            return array
        for one in index:
            if isinstance(one, ast.Slice) or not isinstance(_plain(self.expr(one)), types.Integer):
                raise Unknown(ast.unparse(node))
        return array.dtype if len(index) == array.ndim else array.copy(ndim=array.ndim - len(index))

    def of_binop(self, node: ast.BinOp) -> Any:
        return self.operation(node, OPERATORS[type(node.op)], [node.left, node.right])

    def of_unaryop(self, node: ast.UnaryOp) -> Any:
        constant = _constant(node)
        if constant is not None:
            self.expr(node.operand)
            return types.literal(constant)
        return self.operation(node, OPERATORS[type(node.op)], [node.operand])

    def of_compare(self, node: ast.Compare) -> Any:
        if len(node.ops) != 1 or type(node.ops[0]) not in OPERATORS:
            raise Unknown(ast.unparse(node))
        return self.operation(node, OPERATORS[type(node.ops[0])], [node.left, node.comparators[0]])

    def of_boolop(self, node: ast.BoolOp) -> Any:
        if any(_plain(self.expr(value)) != types.boolean for value in node.values):
            raise Unknown(ast.unparse(node))
        return types.boolean

    def of_ifexp(self, node: ast.IfExp) -> Any:
        if _plain(self.expr(node.test)) != types.boolean:
            raise Unknown(ast.unparse(node))
        sides = [_plain(self.expr(node.body)), _plain(self.expr(node.orelse))]
        type_ = sides[0] if sides[0] == sides[1] else self.context.unify_types(*sides)
        if type_ is None or not isinstance(type_, (types.Number, types.Boolean)):
            raise Unknown(ast.unparse(node))
        return type_

    def of_tuple(self, node: ast.Tuple) -> Any:
        return types.BaseTuple.from_types([self.expr(one) for one in node.elts])

    def of_call(self, node: ast.Call) -> Any:
        if node.keywords:
            raise Unknown(ast.unparse(node))
        if isinstance(node.func, ast.Attribute) and self.constant_object(node.func) is None:
            return self._of_method(node, node.func)
        return self.operation(node, self.object_at(node.func), node.args)

    def _of_method(self, node: ast.Call, method: ast.Attribute) -> Any:
        array = self.expr(method.value)
        if not _is_array(array) or array.layout != "C":
            raise Unknown(ast.unparse(node))
        if method.attr == "copy" and not node.args:
            return types.Array(array.dtype, array.ndim, "C")
        if method.attr != "reshape" or len(node.args) != 1:
            raise Unknown(ast.unparse(node))
        shape = node.args[0].elts if isinstance(node.args[0], ast.Tuple) else node.args
        if any(not isinstance(_plain(self.expr(dim)), types.Integer) for dim in shape) or any((_constant(dim) or 0) < 0 for dim in shape):
            raise Unknown(ast.unparse(node))
        return array.copy(ndim=len(shape))

    def operation(self, node: ast.AST, function: Any, operands: Sequence[ast.expr]) -> Any:
        """The type of what a function of Python gives."""
        args = tuple([self.expr(one) for one in operands])
        if function is operator.pow and _constant(operands[1]) is not None:
            args = (_plain(args[0]), args[1])
        key = id(function), args
        if key not in self._known:
            try:
                callee = self.context.resolve_value_type(function)
                found = self.context.resolve_function_type(callee, args, {})
            except NUMBA.NumbaError as error:
                raise Unknown(str(error)) from error
            if found is None:
                raise Unknown(f"{function} of {args}")
            self._known[key] = callee, found
        self.signatures[node] = self._known[key]
        self.of[node] = self._known[key][1].return_type
        return self.of[node]

    # values that are known

    def constant_object(self, node: ast.expr) -> Any:
        """The Python object that `np.inf` and its like name; None for what a local has."""
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or root.id in self.locals:
            return None
        return self.object_at(node)

    def object_at(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Attribute):
            return getattr(self.object_at(node.value), node.attr)
        if isinstance(node, ast.Name):
            builtins = self.names["__builtins__"]
            builtins = builtins if isinstance(builtins, dict) else vars(builtins)
            if node.id in self.names or node.id in builtins:
                return self.names.get(node.id, builtins.get(node.id))
        raise Unknown(ast.unparse(node))

    def is_natural(self, node: ast.expr) -> bool:
        """True if an integer is never negative."""
        constant = _constant(node)
        if constant is not None:
            return constant >= 0
        if isinstance(node, ast.Name):
            return self.counters.get(node.id, False)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult):
            return self.is_natural(node.left) and self.is_natural(node.right)
        return isinstance(node, ast.Subscript) and _is_shape(node.value)


def _constant(node: ast.expr) -> int | None:
    """An integer that is written out."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return -node.operand.value if type(node.operand.value) is int else None
    return None


def _bounds(call: ast.Call) -> tuple[ast.expr, ast.expr, ast.expr]:
    """start, stop and step of range(…)."""
    start, step = ast.Constant(0), ast.Constant(1)
    match call.args:
        case [stop]:
            return start, stop, step
        case [start, stop]:
            return start, stop, step
        case [start, stop, step]:
            return start, stop, step
    raise Unknown(ast.unparse(call))


def _is_shape(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "shape"


def _entries(index: ast.expr) -> list[ast.expr]:
    return list(index.elts) if isinstance(index, ast.Tuple) else [index]


def raised(stmt: ast.Raise) -> tuple[ast.expr, list[ast.expr]]:
    """The class of the error, and its arguments."""
    if stmt.cause is not None or stmt.exc is None:
        raise Unknown(ast.unparse(stmt))
    return (stmt.exc.func, stmt.exc.args) if isinstance(stmt.exc, ast.Call) else (stmt.exc, [])


# memory ------------------------------------------------------------------------------------------------------------------


def _names(*nodes: ast.AST) -> Counter[str]:
    """How often each name stands in a text."""
    return Counter(one.id for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name))


def views_of(function: ast.FunctionDef, is_array: Any) -> dict[str, set[str]]:
    """By array: the locals that may be views of it, and itself."""
    bases: dict[str, set[str]] = {}
    for stmt in ast.walk(function):
        if isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Name) and is_array(stmt.targets[0].id):
            root = _viewed(stmt.value)
            bases.setdefault(stmt.targets[0].id, set()).update([root] if root else [])
    of: dict[str, set[str]] = {}
    for name in bases:
        found, waiting = {name}, [name]
        while waiting:
            for base in bases.get(waiting.pop(), ()):
                if base not in found:
                    found.add(base)
                    waiting.append(base)
        for base in found:
            of.setdefault(base, set()).add(name)
    return of


def _viewed(value: ast.expr) -> str | None:
    """The array that an expression is a view of; None for a new array."""
    if isinstance(value, ast.Name):
        return value.id
    if isinstance(value, ast.Subscript):
        return _viewed(value.value)
    if isinstance(value, ast.Attribute) and value.attr == "T":
        return _viewed(value.value)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "reshape":
        return _viewed(value.func.value)
    return None


# code --------------------------------------------------------------------------------------------------------------------


@dataclass
class Array:
    """An array: the address of its first element, its dimensions, who counts its references (a null pointer for nobody)."""

    type: Any
    data: Any
    shape: list[Any]
    owner: Any


class Code:
    """LLVM's code of one function, under construction."""

    def __init__(self, context: Any, builder: Any, function: ast.FunctionDef, typed: Types, args: Sequence[Any]) -> None:
        self.context, self.builder, self.types = context, builder, typed
        self.slots: dict[str, Any] = {}
        self.owned: dict[str, int] = {}  # names of arrays that are taken here: their places among the owners
        self.views = views_of(function, lambda name: _is_array(typed.locals.get(name)))
        self.mentions = _names(*function.body)
        self.ends: list[Any] = []  # blocks behind the loops around
        self.exit = builder.append_basic_block("exit")
        self.result = None if typed.returned == types.none else self._slot(context.get_value_type(typed.returned))
        taken = [one for one in ast.walk(function) if isinstance(one, ast.Assign) and _is_taken(one.value, typed)]
        named = {one.value for one in ast.walk(function) if isinstance(one, ast.Assign | ast.Expr)}
        if any(_is_taken(one, typed) and one not in named for one in ast.walk(function) if isinstance(one, ast.Call)):
            raise Unknown("an array without a name")
        for one in taken:
            self.owned.setdefault(one.targets[0].id, len(self.owned))
        self.once = {one for one in taken if one in function.body and sum(one.targets[0].id == other.targets[0].id for other in taken) == 1}
        self.owners = self._slot(ir.ArrayType(_POINTER, len(self.owned)), zero=True)
        for argument, value in zip(function.args.args, args, strict=True):
            self.store(argument.arg, self._unpacked(typed.locals[argument.arg], value) if _is_array(typed.locals[argument.arg]) else value)
        self.block(function.body)
        if not builder.block.is_terminated:
            builder.branch(self.exit)
        builder.position_at_end(self.exit)
        self._release_all()

    def returned(self) -> Any:
        return self.context.get_dummy_value() if self.result is None else self.builder.load(self.result)

    # locals

    def _slot(self, type_: Any, zero: bool = False) -> Any:
        with self.builder.goto_entry_block():
            slot = self.builder.alloca(type_)
            if zero:
                self.builder.store(type_(None), slot)
        return slot

    def store(self, name: str, value: Any) -> None:
        """Puts a value into a local."""
        parts = [value.data, *value.shape, value.owner] if isinstance(value, Array) else [value]
        if name not in self.slots:
            self.slots[name] = [self._slot(part.type) for part in parts]
        for slot, part in zip(self.slots[name], parts, strict=True):
            self.builder.store(part, slot)

    def load(self, name: str) -> Any:
        """What a local holds."""
        type_, slots = self.types.locals[name], self.slots.get(name)
        if slots is None:
            raise Unknown(name)
        if not _is_array(type_):
            return self.builder.load(slots[0])
        parts = [self.builder.load(slot) for slot in slots]
        return Array(type_, parts[0], parts[1:-1], parts[-1])

    def _unpacked(self, type_: Any, value: Any) -> Array:
        struct = NUMBA.make_array(type_)(self.context, self.builder, value)
        return Array(type_, struct.data, NUMBA.unpack_tuple(self.builder, struct.shape, type_.ndim), struct.meminfo)

    def _packed(self, array: Array) -> Any:
        """The array as Numba holds it."""
        context, builder, type_ = self.context, self.builder, array.type
        struct = NUMBA.make_array(type_)(context, builder)
        itemsize = NUMBER(context.get_abi_sizeof(context.get_data_type(type_.dtype)))
        strides = [itemsize]
        for dim in array.shape[1:][::-1] if type_.layout == "C" else array.shape[:-1]:
            strides.append(builder.mul(strides[-1], dim))
        strides = strides[::-1] if type_.layout == "C" else strides
        NUMBA.populate_array(struct, array.data, array.shape, strides[: type_.ndim], itemsize, array.owner)
        return struct._getvalue()

    def _value(self, value: Any) -> Any:
        return self._packed(value) if isinstance(value, Array) else value

    # statements

    def block(self, stmts: Sequence[ast.stmt]) -> None:
        """Code of a block; an array that is taken in it is given back behind the last statement that mentions it."""
        last = self._last_mentions(stmts)
        for k, stmt in enumerate(stmts):
            if self.builder.block.is_terminated:
                return
            getattr(self, f"on_{type(stmt).__name__.lower()}")(stmt)
            if not self.builder.block.is_terminated:
                for name in last.get(k, ()):
                    self._release(name)

    def _last_mentions(self, stmts: Sequence[ast.stmt]) -> dict[int, list[str]]:
        taken = [stmt.targets[0].id for stmt in stmts if isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Name)]
        taken = [name for name in dict.fromkeys(taken) if name in self.owned]
        last: dict[int, list[str]] = {}
        if taken:
            mentions, inside = [_names(stmt) for stmt in stmts], _names(*stmts)
            for name in taken:
                views = self.views[name]
                if all(inside[view] == self.mentions[view] for view in views):  # else it lives until the end
                    last.setdefault(max(k for k, names in enumerate(mentions) if names.keys() & views), []).append(name)
        return last

    def _owner(self, name: str) -> Any:
        """Where the owner of an array is kept."""
        return self.builder.gep(self.owners, [ir.IntType(32)(0), ir.IntType(32)(self.owned[name])])

    def _release(self, name: str) -> None:
        owner = self._owner(name)
        self._count("NRT_decref", self.builder.load(owner))
        self.builder.store(_POINTER(None), owner)

    def _count(self, name: str, owner: Any) -> None:
        """One reference more, or less: NRT_incref, NRT_decref."""
        kind = ir.FunctionType(ir.VoidType(), [_POINTER])
        self.builder.call(NUMBA.get_or_insert_function(self.builder.module, kind, name), [owner])

    def _release_all(self) -> None:
        if not self.owned:
            return
        first = self.builder.bitcast(self.owners, _POINTER.as_pointer())

        def write(inside: Any) -> None:
            owners, count = inside.function.args
            with NUMBA.for_range(inside, count) as loop:
                release = NUMBA.get_or_insert_function(inside.module, ir.FunctionType(ir.VoidType(), [_POINTER]), "NRT_decref")
                inside.call(release, [inside.load(inside.gep(owners, [loop.index]))])
            inside.ret_void()

        called(self.builder, "numbascan_release", ir.VoidType(), [first, NUMBER(len(self.owned))], write)

    def on_assign(self, stmt: ast.Assign) -> None:
        (target,) = stmt.targets
        if isinstance(target, ast.Name):
            type_ = self.types.locals[target.id]
            if _is_array(type_):
                value = self.expr(stmt.value)
                if _is_taken(stmt.value, self.types):
                    if stmt not in self.once:
                        self._release(target.id)
                    self.builder.store(value.owner, self._owner(target.id))
                self.store(target.id, value)
            else:
                self.store(target.id, self.cast(stmt.value, type_))
            return
        array, place = self._place(target)
        value = self.cast(stmt.value, array.type.dtype)
        NUMBA.store_item(self.context, self.builder, array.type, value, place)

    def on_augassign(self, stmt: ast.AugAssign) -> None:
        callee, sig = self.types.signatures[stmt]
        value = self.expr(stmt.value)
        if isinstance(stmt.target, ast.Name):
            before = self.load(stmt.target.id)
        else:
            array, place = self._place(stmt.target)
            before = NUMBA.load_item(self.context, self.builder, array.type, place)
        result = self._called(callee, sig, [(before, self.types.of[stmt.target]), (value, self.types.of[stmt.value])])
        if isinstance(stmt.target, ast.Name):
            self.store(stmt.target.id, result)
        else:
            result = self.context.cast(self.builder, result, sig.return_type, array.type.dtype)
            NUMBA.store_item(self.context, self.builder, array.type, result, place)

    def on_for(self, stmt: ast.For) -> None:
        builder = self.builder
        start, stop, step = _bounds(stmt.iter)
        first, last = (self.cast(one, types.int64) if not isinstance(one, ast.Constant) else NUMBER(one.value) for one in (start, stop))
        stride = _constant(step)
        counter = self._slot(NUMBER)
        builder.store(first, counter)
        again, body, end = (builder.append_basic_block(f"{stmt.target.id}_{name}") for name in ("again", "body", "end"))
        builder.branch(again)
        builder.position_at_end(again)
        now = builder.load(counter)
        builder.cbranch(builder.icmp_signed("<" if stride > 0 else ">", now, last), body, end)
        builder.position_at_end(body)
        self.store(stmt.target.id, now)
        self.ends.append(end)
        self.block(stmt.body)
        self.ends.pop()
        if not builder.block.is_terminated:
            builder.store(builder.add(now, NUMBER(stride), flags=["nsw"]), counter)
            builder.branch(again)
        builder.position_at_end(end)

    def on_break(self, stmt: ast.Break) -> None:
        self.builder.branch(self.ends[-1])

    def on_pass(self, stmt: ast.Pass) -> None:
        pass

    def on_if(self, stmt: ast.If) -> None:
        builder = self.builder
        condition = self.expr(stmt.test)
        then, otherwise, end = (builder.append_basic_block(f"if_{name}") for name in ("then", "otherwise", "end"))
        builder.cbranch(condition, then, otherwise if stmt.orelse else end)
        is_reached = not stmt.orelse
        for block, stmts in ((then, stmt.body), (otherwise, stmt.orelse)):
            builder.position_at_end(block)
            self.block(stmts)
            if not builder.block.is_terminated:
                builder.branch(end)
                is_reached = True
        builder.position_at_end(end)
        if not is_reached:
            builder.unreachable()

    def on_expr(self, stmt: ast.Expr) -> None:
        value, type_ = self.expr(stmt.value), self.types.of[stmt.value]
        if isinstance(value, Array):
            self._count("NRT_decref", value.owner)
        elif self.context.data_model_manager[type_].contains_nrt_meminfo():
            self.context.nrt.decref(self.builder, type_, value)

    def on_return(self, stmt: ast.Return) -> None:
        if stmt.value is not None:
            parts = list(stmt.value.elts) if isinstance(stmt.value, ast.Tuple) else [stmt.value]
            values = []
            for part in parts:
                type_ = _plain(self.types.of[part])
                if _is_array(type_):
                    array = self.expr(part)
                    self._count("NRT_incref", array.owner)
                    values.append(self._packed(array))
                else:
                    values.append(self.cast(part, type_))
            is_tuple = isinstance(stmt.value, ast.Tuple)
            value = self.context.make_tuple(self.builder, self.types.returned, values) if is_tuple else values[0]
            self.builder.store(value, self.result)
        self.builder.branch(self.exit)

    def on_raise(self, stmt: ast.Raise) -> None:
        error, args = raised(stmt)
        values, kinds = [], []
        for one in args:
            if self.types._is_text(one):
                values.append(self.types.names[one.id])
                kinds.append(None)
            elif _constant(one) is not None:
                values.append(_constant(one))
                kinds.append(None)
            else:
                kinds.append(_plain(self.types.of[one]))
                values.append(self.cast(one, kinds[-1]))
        class_, convention = self.types.object_at(error), self.context.call_conv
        if all(kind is None for kind in kinds):
            convention.set_static_user_exc(self.builder, class_, tuple(values))
        else:
            self._tell(class_, values, kinds)
        self.builder.branch(self.failed)

    def _tell(self, error: type[Exception], values: Sequence[Any], kinds: Sequence[Any]) -> None:
        """Sets the error of the call, with numbers that only the run knows; kinds: their types, None for what is known now.

        A function of the module does it, for all errors with numbers of these types.
        """
        context, builder, convention = self.context, self.builder, self.context.call_conv
        static = tuple(context.get_dummy_value() if kind is not None else value for value, kind in zip(values, kinds, strict=True))
        place = context.get_python_api(builder).serialize_object(convention.build_excinfo_struct(error, static, None, None))
        numbers = [value for value, kind in zip(values, kinds, strict=True) if kind is not None]
        numbers_types = [kind for kind in kinds if kind is not None]
        operands = [
            _POINTER(None),
            convention._get_excinfo_argument(builder.function),
            place,
            *numbers,
        ]  # as Numba's own functions have them

        def write(inside: Any) -> None:
            _, info, place, *numbers = inside.function.args
            api, struct = context.get_python_api(inside), ir.LiteralStructType([one.type for one in numbers])
            held = convention.emit_wrap_args_insts(inside, api, struct, numbers)
            boxed = convention.emit_unwrap_dynamic_exception_fn(inside.module, struct, numbers_types)
            size = api.py_ssize_t(context.get_abi_sizeof(NUMBA.excinfo_t))
            told = inside.bitcast(context.nrt.allocate(inside, size), NUMBA.excinfo_ptr_t)
            pickled = inside.load(place)
            fields = [inside.extract_value(pickled, k) for k in (NUMBA.PICKLE_BUF_IDX, NUMBA.PICKLE_BUFSZ_IDX)]
            fields += [inside.bitcast(one, _POINTER) for one in (held, boxed)]
            for k, one in enumerate([*fields, ir.IntType(32)(len(struct))]):
                inside.store(one, inside.gep(told, [ir.IntType(32)(0), ir.IntType(32)(k)]))
            inside.store(told, info)
            convention._return_errcode_raw(inside, NUMBA.RETCODE_USEREXC)

        called(builder, f"numbascan_error_{'_'.join(map(str, numbers_types))}", NUMBA.errcode_t, operands, write)

    @cached_property
    def failed(self) -> Any:
        """The block that gives back what was taken, and says that the call has failed."""
        with self.builder.goto_block(block := self.builder.append_basic_block("failed")):
            self._release_all()
            self.context.call_conv._return_errcode_raw(self.builder, NUMBA.RETCODE_USEREXC)
        return block

    # expressions

    def cast(self, node: ast.expr, type_: Any) -> Any:
        """The value of an expression in another type of numbers."""
        return self.context.cast(self.builder, self.expr(node), self.types.of[node], type_)

    def expr(self, node: ast.expr) -> Any:
        return getattr(self, f"of_{type(node).__name__.lower()}")(node)

    def of_constant(self, node: ast.Constant) -> Any:
        type_ = self.types.of[node]
        return (
            self.context.get_constant(_plain(type_), node.value)
            if not isinstance(node.value, complex)
            else self._generic(type_, node.value)
        )

    def _generic(self, type_: Any, value: Any) -> Any:
        return self.context.get_constant_generic(self.builder, type_, value)

    def of_name(self, node: ast.Name) -> Any:
        if node.id in self.types.locals:
            return self.load(node.id)
        return self._generic(self.types.of[node], self.types.object_at(node))

    def of_attribute(self, node: ast.Attribute) -> Any:
        known = self.types.constant_object(node)
        if known is not None:
            return self._generic(self.types.of[node], known)
        if node.attr == "T":
            array = self.expr(node.value)
            return Array(self.types.of[node], array.data, array.shape[::-1], array.owner)
        number = self.context.make_complex(self.builder, self.types.of[node.value], value=self.expr(node.value))
        return getattr(number, node.attr)

    def of_subscript(self, node: ast.Subscript) -> Any:
        if _is_shape(node.value):
            return self.expr(node.value.value).shape[_constant(node.slice)]
        if isinstance(node.slice, ast.Slice):
            return self._slice(self.expr(node.value), node.slice)
        array, place = self._place(node)
        type_ = self.types.of[node]
        if _is_array(type_):
            return Array(type_, place, array.shape[array.type.ndim - type_.ndim :], array.owner)
        return NUMBA.load_item(self.context, self.builder, array.type, place)

    def _place(self, node: ast.Subscript) -> tuple[Array, Any]:
        """The array, and the address of the element, or of the first element of a part."""
        builder, array = self.builder, self.expr(node.value)
        index = [self._index(one, dim) for one, dim in zip(_entries(node.slice), array.shape, strict=False)]
        if self.context.enable_boundscheck:
            for axis, (one, dim) in enumerate(zip(index, array.shape, strict=False)):
                NUMBA.do_boundscheck(self.context, builder, one, dim, axis)
        place = index[0]
        for k, dim in enumerate(array.shape[1:], 1):
            place = builder.mul(place, dim)
            if k < len(index):
                place = builder.add(place, index[k])
        return array, builder.gep(array.data, [place])

    def _index(self, node: ast.expr, dim: Any) -> Any:
        type_ = self.types.of[node]
        value = self.expr(node)
        if not _plain(type_).signed:
            return self.context.cast(self.builder, value, type_, types.uintp)
        value = self.context.cast(self.builder, value, type_, types.intp)
        if self.types.is_natural(node):
            return value
        builder = self.builder
        return builder.select(builder.icmp_signed("<", value, NUMBER(0)), builder.add(value, dim), value)

    def _slice(self, array: Array, part: ast.Slice) -> Array:
        builder, n = self.builder, array.shape[0]

        def clamped(bound: ast.expr | None, default: Any) -> Any:
            if bound is None:
                return default
            value = self.cast(bound, types.int64)
            if not self.types.is_natural(bound):
                value = builder.select(builder.icmp_signed("<", value, NUMBER(0)), builder.add(value, n), value)
                value = builder.select(builder.icmp_signed("<", value, NUMBER(0)), NUMBER(0), value)
            return builder.select(builder.icmp_signed(">", value, n), n, value)

        start, stop = clamped(part.lower, NUMBER(0)), clamped(part.upper, n)
        length = builder.sub(stop, start)
        length = builder.select(builder.icmp_signed("<", length, NUMBER(0)), NUMBER(0), length)
        place = start
        for dim in array.shape[1:]:
            place = builder.mul(place, dim)
        return Array(array.type, builder.gep(array.data, [place]), [length, *array.shape[1:]], array.owner)

    def of_binop(self, node: ast.BinOp) -> Any:
        callee, sig = self.types.signatures[node]
        left, right = self.expr(node.left), self.expr(node.right)
        power = _constant(node.right) if isinstance(node.op, ast.Pow) else None
        if power is not None:
            base = self.types.of[node.left]
            try:
                static = callee.get_call_type(self.context.typing_context, (_plain(base), types.literal(power)), {})
                implementation = self.context.get_function(callee, static)
                result = implementation(self.builder, (left, power))
                return self.context.cast(self.builder, result, static.return_type, sig.return_type)
            except (NUMBA.TypingError, NotImplementedError, AttributeError, TypeError):
                pass
        return self._called(callee, sig, [(left, self.types.of[node.left]), (right, self.types.of[node.right])])

    def of_unaryop(self, node: ast.UnaryOp) -> Any:
        constant = _constant(node)
        if constant is not None:
            return NUMBER(constant)
        callee, sig = self.types.signatures[node]
        return self._called(callee, sig, [(self.expr(node.operand), self.types.of[node.operand])])

    def of_compare(self, node: ast.Compare) -> Any:
        callee, sig = self.types.signatures[node]
        operands = [(self.expr(one), self.types.of[one]) for one in (node.left, node.comparators[0])]
        return self._called(callee, sig, operands)

    def of_boolop(self, node: ast.BoolOp) -> Any:
        builder = self.builder
        end = builder.append_basic_block("known")
        known = BIT(isinstance(node.op, ast.Or))
        reached = []
        for value in node.values[:-1]:
            condition = self.expr(value)
            more = builder.append_basic_block("more")
            reached.append((known, builder.block))
            builder.cbranch(condition, *((end, more) if isinstance(node.op, ast.Or) else (more, end)))
            builder.position_at_end(more)
        reached.append((self.expr(node.values[-1]), builder.block))
        builder.branch(end)
        builder.position_at_end(end)
        answer = builder.phi(BIT)
        for value, block in reached:
            answer.add_incoming(value, block)
        return answer

    def of_ifexp(self, node: ast.IfExp) -> Any:
        builder, type_ = self.builder, self.types.of[node]
        condition = self.expr(node.test)
        then, otherwise, end = (builder.append_basic_block(f"choice_{name}") for name in ("then", "otherwise", "end"))
        builder.cbranch(condition, then, otherwise)
        reached = []
        for block, side in ((then, node.body), (otherwise, node.orelse)):
            builder.position_at_end(block)
            reached.append((self.cast(side, type_), builder.block))
            builder.branch(end)
        builder.position_at_end(end)
        chosen = builder.phi(reached[0][0].type)
        for value, block in reached:
            chosen.add_incoming(value, block)
        return chosen

    def of_tuple(self, node: ast.Tuple) -> Any:
        values = [self._value(self.expr(one)) for one in node.elts]
        return self.context.make_tuple(self.builder, self.types.of[node], values)

    def of_call(self, node: ast.Call) -> Any:
        if node not in self.types.signatures:
            return self._method(node)
        callee, sig = self.types.signatures[node]
        operands = [(self._value(self.expr(one)), self.types.of[one]) for one in node.args]
        value = self._called(callee, sig, operands)
        return self._unpacked(sig.return_type, value) if _is_array(sig.return_type) else value

    def _method(self, node: ast.Call) -> Array:
        builder, array = self.builder, self.expr(node.func.value)
        size = NUMBER(1)
        for dim in array.shape:
            size = builder.mul(size, dim)
        if node.func.attr == "copy":
            return self._copied(array, size)
        dims = node.args[0].elts if isinstance(node.args[0], ast.Tuple) else node.args
        shape = [self.cast(dim, types.int64) for dim in dims]
        product = NUMBER(1)
        for dim in shape:
            product = builder.mul(product, dim)
        with builder.if_then(builder.icmp_signed("!=", product, size), likely=False):
            self._release_all()
            self.context.call_conv.return_user_exc(builder, ValueError, ("total size of new array must be unchanged",))
        return Array(self.types.of[node], array.data, shape, array.owner)

    def _copied(self, array: Array, size: Any) -> Array:
        context, builder, type_ = self.context, self.builder, array.type.copy(readonly=False)
        shape_type = types.UniTuple(types.int64, type_.ndim)
        shape = context.make_tuple(builder, shape_type, array.shape)
        dtype = types.DType(type_.dtype)
        callee = self.types.context.resolve_value_type(np.empty)
        sig = self.types.context.resolve_function_type(callee, (shape_type, dtype), {})
        result = self._unpacked(sig.return_type, self._called(callee, sig, [(shape, shape_type), (context.get_dummy_value(), dtype)]))
        itemsize = context.get_abi_sizeof(context.get_data_type(type_.dtype))
        NUMBA.raw_memcpy(builder, result.data, array.data, size, itemsize)
        return result

    def _called(self, callee: Any, sig: Any, operands: Iterable[tuple[Any, Any]]) -> Any:
        """What a function gives."""
        args = self._folded(sig, list(operands))
        implementation = self.context.get_function(callee, sig)
        self.context.add_linking_libs(getattr(implementation, "libs", ()))
        return implementation(self.builder, args)

    def _folded(self, sig: Any, operands: list[tuple[Any, Any]]) -> Any:
        """The operands in the types of a signature; those for `*args` as one tuple."""

        def cast(operand: tuple[Any, Any], wanted: Any) -> Any:
            return self.context.cast(self.builder, *operand, wanted)

        def tuple_of(index: int, parameter: Any, several: Any) -> Any:
            wanted = sig.args[index]
            return self.context.make_tuple(self.builder, wanted, [cast(*pair) for pair in zip(several, wanted, strict=True)])

        def default(index: int, parameter: Any, value: Any) -> Any:
            if not isinstance(sig.args[index], types.Omitted):
                raise Unknown(str(parameter))
            return self.context.get_dummy_value()

        if sig.pysig is None:
            return [cast(*pair) for pair in zip(operands, sig.args, strict=True)]
        return NUMBA.fold_arguments(sig.pysig, operands, {}, lambda index, parameter, one: cast(one, sig.args[index]), default, tuple_of)


def _is_taken(value: ast.expr, typed: Types) -> bool:
    """True if an expression is an array that somebody has to give back."""
    if not isinstance(value, ast.Call) or not _is_array(typed.of.get(value)):
        return False
    return value in typed.signatures or (isinstance(value.func, ast.Attribute) and value.func.attr == "copy")


# modules -----------------------------------------------------------------------------------------------------------------

_functions: dict[str, ast.FunctionDef] = {}


def is_unknown(error: BaseException | None) -> bool:
    """True if an error comes of a text that is not lowered here."""
    while error is not None and not isinstance(error, Unknown):
        error = error.__cause__ or error.__context__
    return error is not None


def body(key: str, names: dict[str, Any]) -> Any:
    """What a function of a module calls in place of its text."""
    function = _functions[key]
    arguments = ", ".join(["context", *(one.arg for one in function.args.args)])

    def typing(context: Any, *args: Any) -> Any:
        typed = Types(context, function, names, args)

        def emit(context: Any, builder: Any, sig: Any, values: Any) -> Any:
            return Code(context, builder, function, typed, values).returned()

        return NUMBA.signature(typed.returned, *args), emit

    made: dict[str, Any] = {"typing": typing}
    exec(f"def body({arguments}): return typing({arguments})", made)
    return intrinsic(made["body"])


def module_code(text: str, path: str) -> CodeType | None:
    """The code of a generated module whose functions hold nothing but a call of what is lowered here. None: that is switched off."""
    if not NUMBA.is_taken():
        return None
    tree = ast.parse(text)
    stmts: list[ast.stmt] = ast.parse(f"from {__name__} import body as _body").body
    for stmt in tree.body:
        if isinstance(stmt, ast.FunctionDef):
            key, args = f"{path}:{stmt.name}", ", ".join(one.arg for one in stmt.args.args)
            _functions[key] = copy(stmt)
            stmts += ast.parse(f"_{stmt.name}_body = _body({key!r}, globals())").body
            stmt.body = ast.parse(f"return _{stmt.name}_body({args})").body
        stmts.append(stmt)
    tree.body = stmts
    return compile(ast.fix_missing_locations(tree), path, "exec")
