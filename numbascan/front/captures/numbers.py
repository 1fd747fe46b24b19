"""Numbers that a traced function computes with: which of them are inputs of the run, and which are constants of the code.

Inputs are numbers from outside that elementwise work in floats or complex numbers meets. So are numbers that Python or NumPy made of such a
number (`-k`, `1 - k`, `np.exp(k)`): at the same place of the next trace they have another value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...ir.node import Node, constant_value

LARGEST, LARGEST_INTEGER = 1e38, 2**24  # that float32 holds


@dataclass
class Numbers:
    """The constants that elementwise work met in a trace, in this order, and the places of those that became inputs.

    before: the same of an earlier trace; it is not needed any more when this one is over.
    """

    before: Numbers | None
    met: list[Node] = field(default_factory=list)
    places: set[int] = field(default_factory=set)

    def is_input(self, number: Node, is_read: bool, is_rule: bool) -> bool:
        """Whether the constant that is met now becomes an input. `is_read`: it is a number from outside itself.

        is_rule: it stands in a derivative rule. Rules run several times in a trace, so that places say nothing.
        """
        is_of_run = is_read and not _is_simple(number)
        if is_rule:
            return is_of_run and _is_usual(number)
        place = len(self.met)
        self.met.append(number)
        if (is_of_run or self._was_input(place) or self._has_changed(place, number)) and _is_usual(number):
            self.places.add(place)
        return place in self.places

    def _was_input(self, place: int) -> bool:
        return self.before is not None and place in self.before.places

    def _has_changed(self, place: int, number: Node) -> bool:
        earlier = self.before.met[place] if self.before is not None and place < len(self.before.met) else number
        return earlier is not number and earlier.type == number.type


def _is_simple(number: Node) -> bool:
    """Whether it is a whole or half number, up to 4 in size. Rewrites know such numbers: x * 1, x + 0."""
    value = complex(_value(number))
    return all(abs(part) <= 4 and (2 * part).is_integer() for part in (value.real, value.imag))


def _is_usual(number: Node) -> bool:
    """Whether float32 holds it, if it is an integer exactly. NaN and infinity are no such numbers."""
    size: Any = abs(_value(number))
    return bool(size <= LARGEST_INTEGER if number.type.kind in "iu" else size < LARGEST)


def _value(number: Node) -> Any:
    value = constant_value(number)
    assert value is not None
    return value.item()
