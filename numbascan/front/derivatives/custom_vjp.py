"""`ns.custom_vjp`: a function whose derivative the user writes.

A call becomes a node that holds the graph of the function and a rule. The rule runs when a derivative is asked for, on the operands that
the node then has. These may belong to another graph, such as that of a loop closed in the meantime. So everything that the function and
its rule read from outside must be an operand of the node. The rule is run once at the call to find out what it reads.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import NullGradientError
from ...ir.graph import close, free_inputs, substitute
from ...ir.node import Node, new_input, next_serial, outputs_of
from ...ops.algebra import cast, dims_of, is_float, zeros_like
from ...ops.card import at_line, user_line
from ...ops.control import custom_vjp_node
from ...ops.of_shape import of_shape
from ...tracebacks import entry, with_entries
from ..draw_scopes import no_draws
from ..tracing import close_over, describe, name_in_module, parameter_names, trace
from ..tree import LEAF, NONE, Structure, alike, fields_of, flatten, flattened, is_record, n_leaves, paths, unflatten
from ..tree import describe as describe_structure
from ..variable import CAPTURE, Variable, as_variable


@entry
def custom_vjp(f: Callable[..., Any]) -> CustomVjp:
    """`f` with a derivative of its own for reverse mode: a decorator, in the form that JAX has.

    `f.defvjp(fwd, bwd)` gives the rule: `fwd(*args)` returns (what f returns, residuals), where residuals are whatever bwd needs;
    bwd(residuals, cotangent) returns a tuple with one cotangent per argument, None for zero. The cotangent is nested as the results of
    f, cotangents as the arguments. An integer argument has the cotangent None.

    Called on arrays it is `f` itself; with variables, or traced, what it returns has this derivative. Further derivatives are those of
    what bwd computes. Variables that `f` reads besides its arguments have no derivative: pass them as arguments. Forward mode (ns.jvp,
    ns.Rop) raises NullGradientError, and so does a derivative without `defvjp`.

    >>> import numbascan as ns, numpy as np
    >>> @ns.custom_vjp
    ... def softplus(x):
    ...     return np.log(1 + np.exp(x))
    >>> softplus.defvjp(lambda x: (softplus(x), x), lambda x, g: (g / (1 + np.exp(-x)),))
    >>> ns.grad(softplus)(0.0)
    array(0.5)
    """
    if not callable(f):
        raise TypeError(f"ns.custom_vjp takes a function, not {f!r} ({type(f).__name__})")
    return CustomVjp(f)


@with_entries(("__call__",))
class CustomVjp:
    """A function with a derivative of its own. `__wrapped__` is the function, `fwd` and `bwd` are its rule."""

    def __init__(self, f: Callable[..., Any], fwd: Any = None, bwd: Any = None) -> None:
        functools.update_wrapper(self, f, updated=())
        self.__name__ = getattr(f, "__name__", "function")
        self.__wrapped__ = f
        self.fwd, self.bwd = fwd, bwd  # None, None: there is no rule yet
        self.jvp: Callable[..., Any] | None = None  # of arguments, then their tangents: a rule for forward mode, which ns.external may have

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Sets the rule: see ns.custom_vjp."""
        for name, rule in (("fwd", fwd), ("bwd", bwd)):
            if not callable(rule):
                raise TypeError(f"{self.__name__}.defvjp: {name} must be a function, not {rule!r} ({type(rule).__name__})")
        self.fwd, self.bwd = fwd, bwd

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args = self._positional(args, kwargs)
        leaves, structure = flattened(args)
        if not any(map(_is_symbolic, leaves)):
            value = self.__wrapped__(*args)
            results, _ = flattened(value)
            if not any(map(_is_symbolic, results)):  # symbolic results: `f` reads variables from outside
                return value
        return self._node(structure, [as_variable(leaf).node for leaf in leaves])

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, defaults included: fwd and bwd take positional arguments only."""
        if isinstance(self.__wrapped__, np.ufunc) and not kwargs:
            return args
        bound = inspect.signature(self.__wrapped__).bind(*args, **kwargs)
        if bound.kwargs:
            names = ", ".join(bound.kwargs)
            raise TypeError(f"ns.custom_vjp: {describe(self)} takes {names} by keyword only, which fwd and bwd cannot; make it positional")
        bound.apply_defaults()
        return bound.args

    def _node(self, structure: Structure, operands: list[Node]) -> Any:
        names = self.names(structure)
        inputs = [new_input(node.type, node.name or name) for node, name in zip(operands, names, strict=True)]
        with no_draws("a function of ns.custom_vjp"):
            traced = trace(self.__wrapped__, unflatten(structure, map(Variable, inputs)), placeholders=inputs)
        leaves, returned = flattened(traced.value)
        results = [as_variable(leaf).node for leaf in leaves]
        read = close_over(inputs, results, traced.mark)
        rule = _Rule(self, structure, returned, tuple(read))
        more = [node for node in rule.reads([node.type for node in inputs], results) if node not in read]
        rule = _Rule(self, structure, returned, tuple(read), tuple(more))
        node = custom_vjp_node([*operands, *read, *more], close([*inputs, *read, *more], results), rule)
        node.origin = node.origin or user_line()
        return unflatten(returned, map(Variable, outputs_of(node)))

    def names(self, structure: Structure) -> list[str]:
        """A name for each leaf of the arguments."""
        assert not isinstance(structure, str)
        roots = parameter_names(self.__wrapped__, len(structure[2]))
        return [path for root, child in zip(roots, structure[2], strict=True) for path in paths(child, root)]

    def __reduce__(self) -> Any:
        return name_in_module(self) or (CustomVjp, (self.__wrapped__, self.fwd, self.bwd))


def _is_symbolic(leaf: Any) -> bool:
    return isinstance(leaf, Variable) or (isinstance(leaf, np.ndarray) and leaf.dtype == object)


class _Running(threading.local):
    """The functions whose rules are running only to find what they read. A rule may call its function: that call must not look again."""

    def __init__(self) -> None:
        self.functions: list[CustomVjp] = []


_RUNNING = _Running()


@dataclass(frozen=True)
class _Rule:
    """The derivative rule for one kind of call of `f`, held by the node of the call.

    structure, returned: the nests of arguments and results.
    read: the nodes that `f` reads from outside; more: those that only the rule reads. Both are nodes of the graph around the call, and
    follow the arguments among the operands of its node.
    """

    f: CustomVjp
    structure: Structure
    returned: Structure
    read: tuple[Node, ...]
    more: tuple[Node, ...] = ()

    def __repr__(self) -> str:
        return self.f.__name__

    @property
    def goes_forward(self) -> bool:
        """True if there is a rule for tangents."""
        return self.f.jvp is not None

    def __call__(self, node: Node, cotangents: Sequence[Node | None], needed: Collection[int]) -> list[Node | None]:
        """The cotangents of the node's operands."""
        count = n_leaves(self.structure)
        self._check(node, needed, count)
        inputs = [new_input(operand.type, operand.name) for operand in node.inputs[:count]]
        above = [new_input(type_.strong()) for type_ in node.types]
        results = list(self._cotangents(self._run(inputs, above, outputs_of(node)), inputs))
        outside = [*inputs, *self.read, *self.more]
        strays = free_inputs([value for value in results if value is not None], [*outside, *above])
        if strays:
            names = ", ".join(stray.name or str(stray.type) for stray in strays)
            raise TypeError(
                f"{self._words('bwd')} uses {names}, which was not so when {self.f.__name__} was called; pass it as an argument"
            )
        back = dict(zip(outside, node.inputs, strict=True))
        for fresh, value, result in zip(above, cotangents, outputs_of(node), strict=True):
            back[fresh] = zeros_like(result) if value is None else value
        plain = [None if value is None else substitute([value], back)[0] for value in results]
        return plain + [None] * (len(node.inputs) - count)

    def tangents(self, node: Node, moves: Sequence[Node | None]) -> list[Node]:
        """The tangents of the node's results by the forward rule, from those of its operands (None for zero)."""
        rule, count = self.f.jvp, n_leaves(self.structure)
        assert rule is not None
        self._check_moves(node, moves, count)
        inputs = [new_input(operand.type, operand.name) for operand in node.inputs[:count]]
        along = [new_input(operand.type.strong() if is_float(operand.type) else operand.type.with_dtype("float64")) for operand in inputs]
        values = self._leaves(self.returned, self._pushed(inputs, along), "the results")
        results = [self._tangent(value, result) for value, result in zip(values, outputs_of(node), strict=True)]
        outside = [*inputs, *self.read, *self.more]
        strays = free_inputs(results, [*outside, *along])
        if strays:
            names = ", ".join(stray.name or str(stray.type) for stray in strays)
            raise TypeError(
                f"{self._words('jvp')} uses {names}, which was not so when {self.f.__name__} was called; pass it as an argument"
            )
        back = dict(zip(outside, node.inputs, strict=True))
        for fresh, move, operand in zip(along, moves, node.inputs, strict=False):
            back[fresh] = cast(zeros_like(operand), fresh.type.dtype) if move is None else move
        return list(substitute(results, back))

    def _check_moves(self, node: Node, moves: Sequence[Node | None], count: int) -> None:
        captured = [operand for operand, move in zip(node.inputs[count:], moves[count:], strict=True) if move is not None]
        if captured:
            names = ", ".join(operand.name or str(operand.type) for operand in captured)
            raise NullGradientError(
                f"{self.f.__name__} has no derivative with respect to {names}{at_line()}: its rule speaks of its arguments only"
            )

    @no_draws("a rule of ns.external")
    def _pushed(self, inputs: Sequence[Node], along: Sequence[Node]) -> Any:
        """The result of the rule jvp for arguments `inputs` and their tangents `along`."""
        outer, CAPTURE.is_rule = CAPTURE.is_rule, True
        try:
            given = [*map(Variable, inputs), *map(Variable, along)]
            assert self.f.jvp is not None
            return trace(self.f.jvp, given, placeholders=[*inputs, *along]).value
        finally:
            CAPTURE.is_rule = outer

    def _tangent(self, value: Any, result: Node) -> Node:
        """A tangent in the dtype and shape of its result."""
        if value is None or not is_float(result.type):
            return zeros_like(result)
        node = as_variable(value).node
        what = f"{self._words('jvp')} gives a tangent that"
        if not (is_float(node.type) or node.type.weak) or (node.type.kind == "c" and result.type.kind != "c"):
            raise TypeError(f"{what} is {node.type}, but the result is {result.type}{at_line()}; a tangent has the dtype of its result")
        return of_shape(cast(node, result.type.dtype), dims_of(result), what)

    def _check(self, node: Node, needed: Collection[int], count: int) -> None:
        """NullGradientError if there is no reverse rule, or if a derivative with respect to something read from outside is needed."""
        name = self.f.__name__
        line = f" ({node.origin[0]}, line {node.origin[1]})" if node.origin else at_line()
        if self.f.fwd is None:
            how = f"ns.custom_vjp was given no rule; write {name}.defvjp(fwd, bwd)"
            how = how if self.f.jvp is None else "ns.external was given a jvp alone, which ns.jvp and ns.Rop use; give it a vjp, too"
            raise NullGradientError(f"{name} has no derivative{line}: {how}")
        captured = [node.inputs[k] for k in needed if count <= k < count + len(self.read)]
        if captured:
            names = ", ".join(operand.name or str(operand.type) for operand in captured)
            raise NullGradientError(
                f"{name} has no derivative with respect to {names}{line}: it reads that from outside, and its rule speaks of its "
                "arguments only; pass it as an argument, or let it read nt.disconnected_grad of that, made outside"
            )

    def reads(self, types: Sequence[Any], results: Sequence[Node]) -> list[Node]:
        """The nodes that the rule reads from outside. Empty if the rule raises: nobody may ever ask for a derivative."""
        if (self.f.fwd is None and self.f.jvp is None) or self.f in _RUNNING.functions:
            return []
        inputs = [new_input(type_) for type_ in types]
        above = [new_input(result.type.strong()) for result in results]
        mark = next_serial()
        _RUNNING.functions.append(self.f)
        along = [new_input(type_.strong() if is_float(type_) else type_.with_dtype("float64")) for type_ in types]
        leaves: list[Any] = []
        try:
            if self.f.fwd is not None:
                flatten(self._run(inputs, above, results), leaves)
            if self.f.jvp is not None:
                flatten(self._pushed(inputs, along), leaves)
        except Exception:  # nobody has asked for a derivative yet; where one is asked for, this is raised again
            return []
        finally:
            _RUNNING.functions.pop()
        return close_over([*inputs, *above, *along], [as_variable(leaf).node for leaf in leaves], mark)

    @no_draws("a rule of ns.custom_vjp")
    def _run(self, inputs: Sequence[Node], above: Sequence[Node], results: Sequence[Node]) -> Any:
        """The result of bwd for the cotangents `above` of the results, after fwd on `inputs`."""
        outer, CAPTURE.is_rule = CAPTURE.is_rule, True
        try:
            return self._traced(inputs, above, results)
        finally:
            CAPTURE.is_rule = outer

    def _traced(self, inputs: Sequence[Node], above: Sequence[Node], results: Sequence[Node]) -> Any:
        own = [*inputs, *above]
        pair = trace(self.f.fwd, unflatten(self.structure, map(Variable, inputs)), placeholders=own).value
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"{self._words('fwd')} must return a pair (result, residuals), not {pair!r}")
        self._check_result(pair[0], results)
        cotangent = unflatten(self.returned, map(Variable, above))
        return trace(self.f.bwd, (pair[1], cotangent), placeholders=own).value

    def _check_result(self, value: Any, results: Sequence[Node]) -> None:
        leaves, structure = flattened(value)
        if not alike(structure, self.returned):
            seen, expected = describe_structure(structure), describe_structure(self.returned)
            raise TypeError(f"{self._words('fwd')} gives {seen} as the result, but {self.f.__name__} itself gives {expected}")
        for leaf, result in zip(leaves, results, strict=True):
            type_ = as_variable(leaf).type
            if (type_.dtype, type_.rank) != (result.type.dtype, result.type.rank):
                raise TypeError(f"{self._words('fwd')} gives {type_} as the result, but {self.f.__name__} itself gives {result.type}")

    def _words(self, part: str) -> str:
        return f"the {part} of {self.f.__name__}, {describe(getattr(self.f, part))},"

    def _cotangents(self, value: Any, inputs: Sequence[Node]) -> Iterator[Node | None]:
        """The checked result of bwd: a node for each leaf of the arguments, None for zero."""
        assert not isinstance(self.structure, str)
        count = len(self.structure[2])
        if not isinstance(value, (tuple, list)) or len(value) != count:
            seen = f"{len(value)}" if isinstance(value, (tuple, list)) else repr(value)
            raise TypeError(f"{self._words('bwd')} must return a tuple of {count} cotangents, one for each argument, not {seen}")
        values = self._leaves(self.structure, tuple(value), "the arguments")
        for leaf, operand, name in zip(values, inputs, self.f.names(self.structure), strict=True):
            yield None if leaf is None else self._fitted(as_variable(leaf).node, operand, name)

    def _leaves(self, structure: Structure, value: Any, name: str) -> Iterator[Any]:
        """The leaves of a cotangent or tangent nested as `structure`. None for any part of the nest means None for each of its leaves."""
        if value is None or structure == NONE:
            yield from [None] * n_leaves(structure)
            return
        if structure == LEAF:
            yield value
            return
        assert not isinstance(structure, str)
        cls, keys, children = structure
        if is_record(cls) and isinstance(value, cls):
            value = tuple(fields_of(value).values())
        is_nest = isinstance(value, dict) if cls is dict else isinstance(value, (tuple, list))
        if not is_nest or (set(value) != set(keys) if cls is dict else len(value) != len(children)):
            expected = describe_structure(structure)
            raise TypeError(f"{self._words('bwd')} gives {value!r} for a part of {name} that is {expected}; nest it in the same way")
        for part, child in zip([value[key] for key in keys] if cls is dict else value, children, strict=True):
            yield from self._leaves(child, part, name)

    def _fitted(self, value: Node, operand: Node, name: str) -> Node:
        """A cotangent in the dtype of its argument. Shapes must be equal; the cotangent of a real argument must be real."""
        what = f"{self._words('bwd')} gives a cotangent for {name} that"
        if not is_float(operand.type):
            raise TypeError(f"{what} is {value.type}, but {name} is {operand.type} and has no derivative{at_line()}; return None for it")
        is_complex_for_real = value.type.kind == "c" and operand.type.kind != "c"
        if is_complex_for_real or not (is_float(value.type) or value.type.weak):
            raise TypeError(f"{what} is {value.type}, but {name} is {operand.type}{at_line()}; a cotangent has the dtype of its argument")
        return of_shape(cast(value, operand.type.dtype), dims_of(operand), what)
