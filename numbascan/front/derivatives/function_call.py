"""One call of a function, with fresh inputs for the arguments that derivatives are taken with respect to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...errors import ArgumentNumberError
from ...ir.graph import free_inputs, substitute
from ...ir.node import Node, new_input
from ...ops.algebra import is_float
from ...ops.gradient_identities import derivative_of
from ..draw_scopes import put_outside
from ..scan.updates import WHERE_OUTPUTS_ARE
from ..seeded import STAND_INS, as_parts
from ..shared import SharedVariable
from ..tracing import called, is_tracing, parameter_names
from ..tree import NONE, Static, Structure, describe, flattened, n_leaves, paths, unflatten
from ..variable import Variable, as_variable
from .of_variables import check_cost, check_wrt


@dataclass
class FunctionCall:
    """A function called with fresh inputs in place of the arguments that derivatives are taken with respect to.

    arguments: the nest of each such argument, with an input per leaf, None for a leaf that is not replaced. back: inputs -> the nodes
    given. returned, leaves: structure and nodes of the results. aux: the same of what is returned besides the value.
    """

    arguments: list[tuple[Structure, list[Node | None]]]
    back: dict[Node, Node]
    returned: Structure
    leaves: list[Node]
    aux: tuple[Structure, list[Node]] = NONE, []

    def with_aux(self, what: str) -> FunctionCall:
        """The call of a function that returns (value, aux), with `aux` apart and the value as its only result."""
        if isinstance(self.returned, str) or self.returned[1] is not None or len(self.returned[2]) != 2:
            raise TypeError(f"{what}: has_aux=True is for a function that returns (value, aux), not {describe(self.returned)}")
        value, aux = self.returned[2]
        count = n_leaves(value)
        return replace(self, returned=value, leaves=self.leaves[:count], aux=(aux, self.leaves[count:]))

    @property
    def wrt(self) -> list[Node]:
        return [node for _, group in self.arguments for node in group if node is not None]

    @property
    def dependencies(self) -> list[Node]:
        """The free inputs of the results with respect to which a later derivative may be asked: the real and complex ones."""
        return [node for node in free_inputs(self.leaves) if is_float(node.type)]

    def outside(self, nodes: Sequence[Node]) -> list[Variable]:
        """Variables for `nodes`, with the inputs replaced by what was given."""
        return [Variable(node) for node in substitute(nodes, self.back)]

    def aux_outside(self) -> Any:
        """The aux that the function returned, as `outside`."""
        structure, leaves = self.aux
        return unflatten(structure, self.outside(leaves))

    def derivatives_outside(self, nodes: Sequence[Node]) -> list[Variable]:
        """Derivatives of the results, as `outside`."""
        if is_tracing():
            return self.outside(nodes)
        costs = substitute(self.leaves, self.back)
        return [Variable(derivative_of(costs, node)) for node in substitute(nodes, self.back)]

    def nests(self, nodes: Sequence[Node]) -> list[Any]:
        """A nest per argument, from one node per input."""
        values = iter(self.derivatives_outside(nodes))
        return [unflatten(nest, [None if node is None else next(values) for node in group]) for nest, group in self.arguments]


def call_on_inputs(
    f: Callable[..., Any], places: Sequence[int], args: Sequence[Any], kwargs: Mapping[str, Any], what: str, mixed: bool = False
) -> FunctionCall:
    """The call of `f` with fresh inputs for the arguments number `places`. ArgumentNumberError for a number that is not there.

    mixed: integer leaves are not replaced; otherwise they raise NullGradientError.
    """
    name = f"{what}({getattr(f, '__name__', 'function')})"
    for place in places:
        if not -len(args) <= place < len(args):
            was = "1 positional argument was" if len(args) == 1 else f"{len(args)} positional arguments were"
            raise ArgumentNumberError(f"{name}: argument number {place} is asked for, but {was} given")
    labels = parameter_names(f, len(args))
    values, back = list(args), {}
    arguments: dict[int, tuple[Structure, list[Node | None]]] = {}
    for place in dict.fromkeys(place % len(args) for place in places):
        leaves, structure = flattened(as_parts(args[place]))
        group: list[Node | None] = []
        for leaf, label in zip(leaves, paths(structure, labels[place]), strict=True):
            node = as_variable(leaf).node
            fresh = new_input(node.type, label)
            if mixed and not is_float(node.type):
                group.append(None)
                continue
            check_wrt(fresh, name)
            back[fresh] = node
            group.append(fresh)
        arguments[place] = without_static(structure), group
        values[place] = unflatten(
            structure, [leaf if node is None else _argument(leaf, node, name) for leaf, node in zip(leaves, group, strict=True)]
        )
    results, returned = flattened(called(f, values, kwargs))
    put_outside(back)
    return FunctionCall([arguments[place % len(args)] for place in places], back, returned, [as_variable(leaf).node for leaf in results])


def _argument(given: Any, node: Node, name: str) -> Variable:
    """An argument of the differentiated function, which the function may not write."""
    argument = Variable(node)
    argument.is_0d = given.is_0d if isinstance(given, Variable) else False
    argument.home = f"an argument of {name}"
    return argument


def without_static(structure: Structure) -> Structure:
    """The structure of a derivative with respect to an argument: None for a static one, and for a generator."""
    if isinstance(structure, str):
        return structure
    cls, keys, children = structure
    if isinstance(cls, Static) or cls in STAND_INS:
        return NONE
    return cls, keys, tuple([without_static(child) for child in children])


def has_updates(structure: Structure) -> bool:
    """True if a scan may have returned this: its updates, or a pair that ends with them."""
    if isinstance(structure, str):
        return False
    cls, keys, children = structure
    if cls is dict:
        return all(isinstance(key, SharedVariable) for key in keys)
    return cls is tuple and len(children) == 2 and not isinstance(children[1], str) and children[1][0] is dict and has_updates(children[1])


def cost_of(call: FunctionCall, what: str) -> Node:
    """The real scalar that the function returned. TypeError or NullGradientError for anything else."""
    if call.returned != "*":
        instead = WHERE_OUTPUTS_ARE if has_updates(call.returned) else "ns.jacobian takes any nest of arrays"
        raise TypeError(f"{what}: the function must return one scalar, not {describe(call.returned)}; {instead}")
    check_cost(call.leaves[0], what)
    return call.leaves[0]
