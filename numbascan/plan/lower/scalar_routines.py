"""Routines on matrices of few rows, and on short rows, written out as scalar statements: no call, no arrays, little to compile."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...ir.loops import Expr, Fail, If, Name
from ...ir.node import ITEM, Node
from ...ops.lowering import Library, ScalarCode, ScalarRoutine
from ..builder import Builder, Indices
from ..storage.stores import fixed_dims, in_locals, store
from ..storage.tensor_values import InLocals, InMemory, Value
from .scope import NodeOperands, Scope

Put = Callable[[int, Indices, Expr], None]  # takes one element of result k, at an index


def lower(scope: Scope, node: Node, kind: Library) -> list[Value] | None:
    """The values of a routine's results; None if it has to be called."""
    routine = kind.scalar
    if routine is None:
        return None
    n = node.inputs[0].type.shape[-1]
    if n is None or not 1 <= n <= (routine.rows if scope.target.calls_routines else routine.most_rows):
        return None
    types = [parent.type for parent in node.inputs]
    dtype = types[0].dtype if kind.dtypes is None else kind.dtypes(*types)[0]
    return _OneNode(scope, node, kind, routine, n, dtype).values() if np.dtype(dtype).kind in routine.kinds else None


class _OneNode:
    """One node as scalar statements, with its results in locals or in memory."""

    def __init__(self, scope: Scope, node: Node, kind: Library, routine: ScalarRoutine, n: int, dtype: str) -> None:
        self.scope, self.node, self.kind, self.routine, self.n, self.dtype = scope, node, kind, routine, n, dtype
        self.view = NodeOperands(scope, node)
        dims = kind.dims(self.view)
        self.dims = [fixed_dims(scope.builder, node, dims[0])] if len(dims) == 1 else list(dims)
        self.batch = self.dims[0][: len(self.dims[0]) - kind.core[1][0]]

    def values(self) -> list[Value]:
        if not self.batch and all(self._is_few(type_.size) for type_ in self.node.types):
            elements: list[dict[tuple[int, ...], Expr]] = [{} for _ in self.dims]
            self._run((), lambda k, index, expr: elements[k].__setitem__(_known(index), expr))
            return [self._local(k, exprs) for k, exprs in enumerate(elements)]
        places = self._places()

        def put(k: int, index: Indices, expr: Expr) -> None:
            element = expr if len(places[k]) == 1 else self.scope.builder.let(None, expr, hoist=False)
            for place in places[k]:
                self.scope.builder.emit(store(place, index, element))

        self.scope.builder.nest(self.batch, lambda index: self._run(index, put), letters="bcdefg")
        return [first for first, *_ in places]

    def _is_few(self, size: int | None) -> bool:
        return size is not None and size <= self.scope.target.locals_limit

    def _local(self, k: int, elements: dict[tuple[int, ...], Expr]) -> Value:
        if len(self.dims) == 1:
            return in_locals(self.scope.builder, self.node, elements)
        is_read = any(reader.attr("index") == k for reader in self.scope.readers[self.node] if reader.op is ITEM)
        type_, builder, hint = self.node.types[k], self.scope.builder, f"{self.node.op.name}_{k}"
        named = {index: builder.let(hint, expr) if is_read else expr for index, expr in elements.items()}
        return InLocals(type_, tuple(dim or 0 for dim in type_.shape), named, builder, builder.block, hint)

    def _places(self) -> list[list[InMemory]]:
        if len(self.dims) == 1:
            return [self.scope.destinations(self.node, self.dims[0])]
        name = self.node.name or self.node.op.name
        return [
            [InMemory(type_, dims, self.scope.builder.alloc(name, dims, type_.dtype))]
            for type_, dims in zip(self.node.types, self.dims, strict=True)
        ]

    # one matrix -----------------------------------------------------------------------------------------------------

    def _run(self, index: Indices, put: Put) -> None:
        """Makes the results of one matrix."""
        code, routine = self._prepared(index), self.routine
        if routine.results is not None:
            for k, elements in enumerate(routine.results(code, code.prepared)):
                for at, expr in elements.items():
                    put(k, (*index, *at), expr)
        elif self.kind.core[1][0] == 1:
            self._solve(code, index, [()], put)
        else:
            count = self.dims[0][-1]
            if isinstance(count, int) and self._is_few(self.n * count):
                self._solve(code, index, [(j,) for j in range(count)], put)
            else:
                self.scope.builder.nest([count], lambda column: self._solve(code, index, [column], put), letters="j")

    def _solve(self, code: _Locals, index: Indices, columns: Sequence[Indices], put: Put) -> None:
        assert self.routine.columns is not None
        right = [[self.view.at(1, (*index, i, *column), self.dtype) for i in range(self.n)] for column in columns]
        for column, solution in zip(columns, self.routine.columns(code, code.prepared, right), strict=True):
            for i, x in enumerate(solution):
                put(0, (*index, i, *column), x)

    def _prepared(self, index: Indices) -> _Locals:
        """The work that is done once per matrix, shared by all nodes that read it in the same block."""
        scope, routine = self.scope, self.routine
        key = (scope.builder.block, self.node.inputs[0], self.dtype, routine.prepared, self.kind.statics(self.view.attrs))
        code = None if index else scope.prepared.get(key)
        if not isinstance(code, _Locals):
            columns = [(j,) for j in range(self.n)] if self.kind.core[0][0] == 2 else [()]
            rows = [[self.view.at(0, (*index, i, *column), self.dtype) for column in columns] for i in range(self.n)]
            code = scope.prepared[key] = _Locals(scope.builder)
            code.prepared = routine.prepared(code, rows, self.view.attrs)
        if routine.refused is not None:
            code.refuse(routine.refused(code.prepared), self.kind.message)
        return code


def _known(index: Indices) -> tuple[int, ...]:
    return tuple(i for i in index if isinstance(i, int))


class _Locals(ScalarCode):
    """Statements in the builder's current block; one of these per matrix."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.prepared: object = None
        self.refused: set[Expr] = set()

    def let(self, hint: str, value: Expr) -> Expr:
        return self.builder.let(hint, value)

    def variable(self, hint: str, value: Expr) -> Name:
        return self.builder.variable(hint, value, value.dtype)

    def assign(self, name: Name, value: Expr) -> None:
        self.builder.assign(name, value)

    def exchange(self, condition: Expr, pairs: Sequence[tuple[Name, Name]]) -> None:
        with self.builder.branch() as exchanged:
            for a, b in pairs:
                before = self.builder.variable("kept", a, a.dtype)
                self.builder.assign(a, b)
                self.builder.assign(b, before)
        self.builder.emit(If(condition, exchanged))

    def refuse(self, condition: Expr, message: str) -> None:
        """Writes a LinAlgError for the condition, once. It stands here, not before the loop, which may make no step."""
        if condition not in self.refused:
            self.refused.add(condition)
            self.builder.emit(If(condition, [Fail("np.linalg.LinAlgError", message)]))
