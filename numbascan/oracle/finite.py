"""`check_finite` where NumPy runs the steps: the first result of a step that is NaN or infinite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir import messages
from ..ir.graph import Graph
from .interpret import LoopRun, interpret


def finite_run(graph: Graph, arguments: Sequence[Any]) -> list[Any]:
    """The results of `graph` by NumPy. FloatingPointError, as of compiled code, at the first step whose result is not finite."""
    try:
        return interpret(graph, arguments, loop=_Checked)
    except _NotFiniteError as error:
        raise FloatingPointError(error.text.format(*error.numbers)) from None


class _NotFiniteError(FloatingPointError):
    """A text whose numbers are not filled in yet: enclosing loops add the lane."""

    def __init__(self, text: str, *numbers: int) -> None:
        super().__init__(text, *numbers)
        self.text, self.numbers = text, numbers


class _Checked(LoopRun):
    """A loop that checks the results of each step."""

    def step(self, t: int) -> bool:
        try:
            stop = super().step(t)
        except _NotFiniteError as error:
            if self.spec.waits:
                raise
            raise _NotFiniteError(messages.in_lane(error.text, len(error.numbers)), *error.numbers, t) from None
        self._check_finite(t)
        return stop

    def _check_finite(self, t: int) -> None:
        spec = self.spec
        writes = [*(port.write for port in spec.states), *(port.write for port in spec.traces), *(port.write for port in spec.carries)]
        latest = [*(rows[-1] for rows in (*self.histories, *self.traces)), *self.carried]
        for name, write, value in zip(messages.result_names(spec), writes, latest, strict=True):
            if write.type.kind in "fc" and not np.isfinite(value).all():
                raise _NotFiniteError(messages.not_finite(spec, name, write), t)
