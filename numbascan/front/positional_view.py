"""Loops by position, for users who look inside: `variable.owner`, its `op`, and `ns.ScanArgs`.

Everything is derived from one list, `port_rows`: a row is a port with its outer and inner values. The orders below say where each kind
of port stands among the inputs and outputs; the values of one kind keep the order in which the scan was given them.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..ir.graph import toposort
from ..ir.loop_node import SCAN, loop_spec
from ..ir.node import ARG, CONSTANT, INPUT, ITEM, Node, Op, outputs_of
from ..tracebacks import entry, with_entries
from .shared import is_shared, variable_of
from .variable import Variable

OUTER_INPUTS = ("n_steps", "seqs", "mit_mot", "mit_sot", "sit_sot", "shared", "nit_sot", "other_shared", "non_seqs")
INNER_INPUTS = ("seqs", "mit_mot", "mit_sot", "sit_sot", "shared", "other_shared", "non_seqs")
KINDS = ("seqs", "mit_mot", "mit_sot", "sit_sot", "nit_sot", "shared", "non_seqs")
OUTPUTS = ("mit_mot", "mit_sot", "sit_sot", "nit_sot", "shared")


@dataclass(frozen=True, slots=True)
class PortRow:
    """A port: its kind, its taps, and the values that belong to it on each side."""

    kind: str
    outer_in: Node
    inner_in: tuple[Node, ...] = ()
    inner_out: tuple[Node, ...] = ()
    outer_out: Node | None = None
    taps: tuple[int, ...] = ()
    out_taps: tuple[int, ...] = ()


def port_rows(node: Node) -> list[PortRow]:
    """The ports of a Scan node, n_steps first."""
    spec = loop_spec(node)
    results = iter(outputs_of(node))
    rows = [PortRow("n_steps", spec.n_steps)]
    rows += [PortRow("seqs", seq.outer, seq.reads, taps=seq.taps) for seq in spec.seqs]
    for port in spec.mit_mots:
        rows.append(PortRow("mit_mot", port.outer, port.reads, port.writes, next(results), port.in_taps, port.out_taps))
    for state in spec.states:
        kind = "sit_sot" if state.taps == (-1,) else "mit_sot"
        rows.append(PortRow(kind, state.initial, state.reads, (state.write,), next(results), state.taps))
    rows += [PortRow("nit_sot", spec.n_steps, (), (trace.write,), next(results)) for trace in spec.traces]
    rows += [PortRow("shared", carry.shared, (carry.read,), (carry.write,), next(results)) for carry in spec.carries]
    for fixed in spec.non_seqs:
        rows.append(PortRow("other_shared" if is_shared(fixed.outer) else "non_seqs", fixed.outer, (fixed.read,)))
    return rows


def _ordered(rows: Sequence[PortRow], kinds: Sequence[str]) -> list[PortRow]:
    return [row for kind in kinds for row in rows if row.kind == kind]


class ScanOp:
    """The op of a loop, as `variable.owner.op` shows it."""

    name = "scan"

    def __init__(self, node: Node) -> None:
        self._node = node
        self.rows = port_rows(node)
        self.outer_input_rows = _ordered(self.rows, OUTER_INPUTS)
        self.output_rows = _ordered(self.rows, OUTPUTS)

    def __reduce__(self) -> tuple[Any, ...]:
        return ScanOp, (self._node,)

    def get_oinp_iinp_iout_oout_mappings(self) -> dict[str, dict[int, Any]]:
        """The values that belong to one port: twelve dictionaries "X_from_Y", X and Y of outer_inp, inner_inp, inner_out, outer_out.

        Keys are positions of Y. Values are positions of X: for outer values a number, -1 where there is none, for inner values a list.
        The condition of `until` belongs to no port.
        """
        places = self._places()
        sides = ("outer_inp", "inner_inp", "inner_out", "outer_out")
        mappings: dict[str, dict[int, Any]] = {f"{to}_from_{origin}": {} for origin in sides for to in sides if to != origin}
        for row in self.rows:
            of_row = places[id(row)]
            for origin in sides:
                for position in of_row[origin]:
                    for to in sides:
                        if to != origin:
                            mappings[f"{to}_from_{origin}"][position] = _outer_or_list(to, of_row[to])
        return {name: dict(sorted(mapping.items())) for name, mapping in mappings.items()}

    def _places(self) -> dict[int, dict[str, list[int]]]:
        """For each row, the positions of its values on the four sides."""
        places = {
            id(row): {"outer_inp": [k], "inner_inp": [], "inner_out": [], "outer_out": []} for k, row in enumerate(self.outer_input_rows)
        }
        count = 0
        for row in _ordered(self.rows, INNER_INPUTS):
            places[id(row)]["inner_inp"] = list(range(count, count := count + len(row.inner_in)))
        count = 0
        for k, row in enumerate(self.output_rows):
            places[id(row)]["inner_out"] = list(range(count, count := count + len(row.inner_out)))
            places[id(row)]["outer_out"] = [k]
        return places

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """For each outer input a list: for each outer output, whether the input's values are used to compute it, over any number of steps.

        The numbers of steps (n_steps, and one for each nit-sot) are used by the loop, not by a step: they are connected to nothing.
        """
        behind = [frozenset(toposort(row.inner_out)) for row in self.output_rows]
        reach = [[not used.isdisjoint(row.inner_in) for used in behind] for row in self.output_rows]  # in one step
        for via in range(len(reach)):  # Warshall's closure over steps: a state carries on what reached it a step before
            for source in range(len(reach)):
                if reach[source][via]:
                    reach[source] = [a or b for a, b in zip(reach[source], reach[via], strict=True)]
        pattern = []
        for row in self.outer_input_rows:
            first = [not used.isdisjoint(row.inner_in) for used in behind]
            pattern.append([hit or any(a and then[k] for a, then in zip(first, reach, strict=True)) for k, hit in enumerate(first)])
        return pattern

    def __repr__(self) -> str:
        return f"Scan({loop_spec(self._node).name!r})"


def _outer_or_list(side: str, positions: list[int]) -> Any:
    if side.startswith("inner"):
        return positions
    return positions[0] if positions else -1


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Apply:
    """An op with its inputs and outputs as variables: what `variable.owner` gives. Outputs of one op have one owner."""

    op: Op | ScanOp
    inputs: list[Variable]
    outputs: list[Variable]
    node: Node

    def __reduce__(self) -> tuple[Any, ...]:
        return owner_of, (self.node,)

    def __repr__(self) -> str:
        return f"{self.op.name}({', '.join(map(repr, self.inputs))})"


_OWNERS: weakref.WeakValueDictionary[Node, Apply] = weakref.WeakValueDictionary()
_MAKING = threading.Lock()  # without it, two threads could make two owners of one node


def owner_of(node: Node) -> Apply | None:
    """The op that computes `node`; None for inputs, shared variables and constants."""
    if node.op is ITEM:
        node = node.inputs[0]
    if node.op in (INPUT, ARG, CONSTANT):
        return None
    with _MAKING:
        owner = _OWNERS.get(node)
        if owner is None:
            owner = _OWNERS[node] = _made(node)
    return owner


def _made(node: Node) -> Apply:
    if node.op is not SCAN:
        return Apply(node.op, _variables(node.inputs), _variables(outputs_of(node)), node)
    op = ScanOp(node)
    inputs = [row.outer_in for row in op.outer_input_rows]
    outputs = [row.outer_out for row in op.output_rows if row.outer_out is not None]
    return Apply(op, _variables(inputs), _variables(outputs), node)


def _owner(variable: Variable) -> Apply | None:
    """The op that computes this variable, with its inputs and outputs; None for inputs, shared variables and constants."""
    return owner_of(variable.node)


Variable.owner = property(entry(_owner))  # type: ignore[attr-defined]  # set here: variables know nothing of loops


def _variables(nodes: Sequence[Node]) -> list[Variable]:
    return [variable_of(node) for node in nodes]


@with_entries()
class ScanArgs:
    """The inputs and outputs of a loop by kind, as lists of variables.

    Argument: a result of a scan, or its `owner`.

    For each KIND of seqs, mit_mot, mit_sot, sit_sot, nit_sot, shared, non_seqs there are `outer_in_KIND`, `inner_in_KIND`, `inner_out_KIND`
    and `outer_out_KIND`, as far as they exist; `KIND` alone is `outer_in_KIND`. The inner inputs of mit_mot and mit_sot are lists of
    lists, their taps in `mit_mot_in_slices`, `mit_mot_out_slices` and `mit_sot_in_slices`. Shared variables that are read but not updated
    stand first in non_seqs. `cond` holds the condition of `until`, if there is one.

    Raises TypeError for what no scan made.
    """

    def __init__(self, node: Apply | Variable) -> None:
        owner = node if isinstance(node, Apply) else getattr(node, "owner", None)
        if owner is None or not isinstance(owner.op, ScanOp):
            raise TypeError(f"ns.ScanArgs needs the result of a scan or its owner, not {node!r}")
        self._owner, self._rows = owner, owner.op.rows
        spec = loop_spec(owner.node)
        self.name = spec.name
        self.n_steps = variable_of(spec.n_steps)
        self.outer_inputs, self.outer_outputs = owner.inputs, owner.outputs
        self.cond = [] if spec.until is None else [variable_of(spec.until)]
        self.inner_inputs = _variables([inner for row in _ordered(self._rows, INNER_INPUTS) for inner in row.inner_in])
        self.inner_outputs = _variables([inner for row in owner.op.output_rows for inner in row.inner_out]) + self.cond

        for kind in KINDS:
            rows = _ordered(self._rows, ("other_shared", kind) if kind == "non_seqs" else (kind,))
            setattr(self, kind, _variables([row.outer_in for row in rows]))
            setattr(self, f"outer_in_{kind}", getattr(self, kind))
            if kind != "nit_sot":
                self._set_inner(f"inner_in_{kind}", [row.inner_in for row in rows], kind in ("mit_mot", "mit_sot"))
            if kind in OUTPUTS:
                self._set_inner(f"inner_out_{kind}", [row.inner_out for row in rows], kind == "mit_mot")
                setattr(self, f"outer_out_{kind}", _variables([row.outer_out for row in rows if row.outer_out is not None]))
        for kind, name in (("seqs", "seq"), ("mit_mot", "mit_mot"), ("mit_sot", "mit_sot"), ("sit_sot", "sit_sot")):
            setattr(self, f"{name}_in_slices", [row.taps for row in _ordered(self._rows, (kind,))])
        self.mit_mot_out_slices = [row.out_taps for row in _ordered(self._rows, ("mit_mot",))]

    def _set_inner(self, name: str, ports: Sequence[Sequence[Node]], is_nested: bool) -> None:
        """Values of the step: a list for each port, or one list of all."""
        nested = [_variables(port) for port in ports]
        setattr(self, name, nested if is_nested else [variable for variables in nested for variable in variables])

    def __reduce__(self) -> tuple[Any, ...]:
        return ScanArgs, (self._owner,)

    def __repr__(self) -> str:
        counts = ", ".join(f"{kind}: {len(getattr(self, kind))}" for kind in ("seqs", *OUTPUTS, "non_seqs"))
        return f"<ScanArgs of {self.name!r}: {counts}>"
