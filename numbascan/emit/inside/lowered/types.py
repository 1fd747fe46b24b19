"""The types of a generated function's locals and expressions, found in one walk through its text. Importing this imports Numba."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import types

from .. import arrays
from ..shortcuts import LOWERED as NUMBA
from . import text

NEW_ARRAYS = (np.empty, arrays.small_array)
"""The functions that return new arrays."""


def is_array(type_: Any) -> bool:
    """True for the type of an array."""
    return isinstance(type_, types.Array)


def plain(type_: Any) -> Any:
    """A type without the value that a literal type holds."""
    return types.unliteral(type_)


class Types:
    """The types of a function, for given types of its arguments. Raises Unknown for text that is not lowered.

    locals: by name, which has one type in all of a function. of: by expression; an integer that is written out has a literal type.
    signatures: by operation, the type of the function that it calls, and its signature.
    """

    def __init__(self, context: Any, function: ast.FunctionDef, names: dict[str, Any], arguments: Sequence[Any]) -> None:
        self.context, self.names = context, names
        self.locals: dict[str, Any] = dict(zip([one.arg for one in function.args.args], map(plain, arguments), strict=True))
        self.of: dict[ast.AST, Any] = {}
        self.signatures: dict[ast.AST, tuple[Any, Any]] = {}
        self.returned: Any = None
        self._natural = set[str]()  # loop counters that are never negative
        self._find_natural(function)
        self._resolved: dict[Any, tuple[Any, Any]] = {}
        self._block(function.body)
        self.returned = types.none if self.returned is None else self.returned
        if self.returned != types.none and text.has_end(function.body):
            raise text.Unknown("a result that is not always there")

    # statements

    def _block(self, stmts: Sequence[ast.stmt]) -> None:
        for stmt in stmts:
            getattr(self, f"_on_{type(stmt).__name__.lower()}", self._unknown)(stmt)

    def _unknown(self, node: ast.AST) -> Any:
        raise text.Unknown(node)

    def _bind(self, name: str, type_: Any) -> None:
        type_ = plain(type_)
        if isinstance(type_, types.BaseTuple) or self.locals.setdefault(name, type_) != type_:
            raise text.Unknown(f"{name}: {self.locals.get(name)} and {type_}")

    def _on_assign(self, stmt: ast.Assign) -> None:
        (target,) = stmt.targets
        value = self._expr(stmt.value)
        if isinstance(target, ast.Name):
            self._bind(target.id, value)
        elif not isinstance(target, ast.Subscript) or is_array(self._expr(target)) or is_array(value):
            raise text.Unknown(stmt)

    def _on_augassign(self, stmt: ast.AugAssign) -> None:
        result = self._operation(stmt, text.OPERATORS[type(stmt.op)], [stmt.target, stmt.value])
        if is_array(result) or (isinstance(stmt.target, ast.Name) and result != self.locals[stmt.target.id]):
            raise text.Unknown(stmt)

    def _on_for(self, stmt: ast.For) -> None:
        start, stop, step = text.bounds(stmt)
        if not all(map(self._is_signed, (start, stop, step))):
            raise text.Unknown(stmt.iter)
        (name,) = text.names(stmt.target)
        self._bind(name, types.int64)
        self._block(stmt.body)

    def _is_signed(self, node: ast.expr) -> bool:
        type_: Any = plain(self._expr(node))
        return isinstance(type_, types.Integer) and bool(getattr(type_, "signed", False))

    def _on_if(self, stmt: ast.If) -> None:
        self._condition(stmt.test)
        self._block(stmt.body)
        self._block(stmt.orelse)

    def _condition(self, node: ast.expr) -> None:
        if plain(self._expr(node)) != types.boolean:
            raise text.Unknown(node)

    def _on_expr(self, stmt: ast.Expr) -> None:
        if not isinstance(stmt.value, ast.Call):
            raise text.Unknown(stmt)
        self.of[stmt.value] = self._call(stmt.value)

    def _on_return(self, stmt: ast.Return) -> None:
        type_ = types.none if stmt.value is None else plain(self._expr(stmt.value))
        if self.returned not in (None, type_):
            raise text.Unknown(f"returns {self.returned} and {type_}")
        self.returned = type_

    def _on_raise(self, stmt: ast.Raise) -> None:
        error, args = text.error(stmt)
        self.object_at(error)
        for one in args:
            if self.message(one) is None:
                self._expr(one)

    def message(self, node: ast.expr) -> str | None:
        """The text of an error that a name stands for; None if it stands for anything else."""
        value = self.names.get(node.id) if isinstance(node, ast.Name) else None
        return value if isinstance(value, str) else None

    def _on_break(self, stmt: ast.Break) -> None:
        pass

    # expressions

    def _expr(self, node: ast.expr) -> Any:
        type_ = getattr(self, f"_of_{type(node).__name__.lower()}", self._unknown)(node)
        self.of[node] = type_
        return type_

    def _of_constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, bool):
            return types.boolean
        if isinstance(node.value, int):
            return types.literal(node.value)
        if isinstance(node.value, float):
            return types.float64
        raise text.Unknown(node)

    def _of_name(self, node: ast.Name) -> Any:
        known = self.locals.get(node.id)
        return self.context.resolve_value_type(self.object_at(node)) if known is None else known

    def _of_attribute(self, node: ast.Attribute) -> Any:
        if self.is_known(node):
            return self.context.resolve_value_type(self.object_at(node))
        value = self._expr(node.value)
        if node.attr == "T" and is_array(value) and value.ndim == 2 and value.layout == "C":
            return value.copy(layout="F")
        if node.attr in ("real", "imag") and isinstance(value, types.Complex):
            return value.underlying_float
        raise text.Unknown(node)

    def _of_subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.value, ast.Attribute) and text.is_shape(node.value):
            array = self._expr(node.value.value)
            if not is_array(array) or text.integer(node.slice) not in range(array.ndim):
                raise text.Unknown(node)
            return types.int64
        array, index = self._expr(node.value), text.entries(node.slice)
        if not is_array(array) or array.layout != "C" or len(index) > array.ndim:
            raise text.Unknown(node)
        if isinstance(node.slice, ast.Slice):
            bounds = [bound for bound in (node.slice.lower, node.slice.upper) if bound is not None]
            if node.slice.step is not None or not all(map(self._is_signed, bounds)):
                raise text.Unknown(node)
            return array
        if not all(isinstance(plain(self._expr(one)), types.Integer) for one in index):
            raise text.Unknown(node)
        return array.dtype if len(index) == array.ndim else array.copy(ndim=array.ndim - len(index))

    def _of_binop(self, node: ast.BinOp) -> Any:
        return self._operation(node, text.OPERATORS[type(node.op)], [node.left, node.right])

    def _of_unaryop(self, node: ast.UnaryOp) -> Any:
        number = text.integer(node)
        if number is not None:
            return types.literal(number)
        return self._operation(node, text.OPERATORS[type(node.op)], [node.operand])

    def _of_compare(self, node: ast.Compare) -> Any:
        if len(node.ops) != 1 or type(node.ops[0]) not in text.OPERATORS:
            raise text.Unknown(node)
        return self._operation(node, text.OPERATORS[type(node.ops[0])], [node.left, node.comparators[0]])

    def _of_boolop(self, node: ast.BoolOp) -> Any:
        for value in node.values:
            self._condition(value)
        return types.boolean

    def _of_ifexp(self, node: ast.IfExp) -> Any:
        self._condition(node.test)
        sides = [plain(self._expr(node.body)), plain(self._expr(node.orelse))]
        type_ = self.context.unify_types(*sides)
        if not isinstance(type_, types.Number | types.Boolean):
            raise text.Unknown(node)
        return type_

    def _of_tuple(self, node: ast.Tuple) -> Any:
        return types.BaseTuple.from_types([self._expr(one) for one in node.elts])

    def _of_call(self, node: ast.Call) -> Any:
        type_ = self._call(node)
        if is_array(type_) and node in self.signatures and self.object_at(node.func) not in NEW_ARRAYS:
            raise text.Unknown(node)  # it may be a view of an argument
        return type_

    def _call(self, node: ast.Call) -> Any:
        if node.keywords:
            raise text.Unknown(node)
        if isinstance(node.func, ast.Attribute) and not self.is_known(node.func):
            return self._method(node, node.func)
        return self._operation(node, self.object_at(node.func), node.args)

    def _method(self, node: ast.Call, method: ast.Attribute) -> Any:
        array = self._expr(method.value)
        if not is_array(array) or array.layout != "C":
            raise text.Unknown(node)
        if method.attr == "copy" and not node.args:
            return array.copy(readonly=False)
        shape = text.shape_given(node)
        if method.attr != "reshape" or not shape or not all(self._is_signed(dim) and (text.integer(dim) or 0) >= 0 for dim in shape):
            raise text.Unknown(node)
        return array.copy(ndim=len(shape))

    def _operation(self, node: ast.AST, function: Any, operands: Sequence[ast.expr]) -> Any:
        """The type of a Python function's result."""
        args = tuple([self._expr(one) for one in operands])
        key = function, args
        if key not in self._resolved:
            try:
                callee = self.context.resolve_value_type(function)
                found = self.context.resolve_function_type(callee, args, {})
            except NUMBA.NumbaError as error:
                raise text.Unknown(error) from error
            if found is None:
                raise text.Unknown(f"{function} of {args}")
            self._resolved[key] = callee, found
        self.signatures[node] = self._resolved[key]
        self.of[node] = self._resolved[key][1].return_type
        return self.of[node]

    # what is known

    def is_known(self, node: ast.expr) -> bool:
        """True for a name of the module, or an attribute of one, such as `np.inf`: no local is part of it."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id not in self.locals

    def object_at(self, node: ast.expr) -> Any:
        """The Python object of a name, or of an attribute."""
        if isinstance(node, ast.Attribute):
            return getattr(self.object_at(node.value), node.attr)
        if isinstance(node, ast.Name):
            builtins = self.names["__builtins__"]
            for known in (self.names, builtins if isinstance(builtins, dict) else vars(builtins)):
                if node.id in known:
                    return known[node.id]
        raise text.Unknown(node)

    def is_natural(self, node: ast.expr) -> bool:
        """True if an integer is never negative."""
        number = text.integer(node)
        if number is not None:
            return number >= 0
        if isinstance(node, ast.Name):
            return node.id in self._natural
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult):
            return self.is_natural(node.left) and self.is_natural(node.right)
        return isinstance(node, ast.Subscript) and text.is_shape(node.value)

    def _find_natural(self, function: ast.FunctionDef) -> None:
        """Finds loop counters that are never negative: nothing else assigns to them, and all their loops count up from such a number."""
        loops = [(next(iter(text.names(one.target))), *text.bounds(one)) for one in ast.walk(function) if isinstance(one, ast.For)]
        targets = [one.targets[0] for one in ast.walk(function) if isinstance(one, ast.Assign)]
        targets += [one.target for one in ast.walk(function) if isinstance(one, ast.AugAssign)]
        self._natural = {name for name, *_ in loops} - {one.id for one in targets if isinstance(one, ast.Name)} - self.locals.keys()
        while wrong := {
            name for name, start, _, step in loops if name in self._natural and not (self.is_natural(start) and self.is_natural(step))
        }:
            self._natural -= wrong
