"""A random program as data: a small tree that prints itself as Python source."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, eq=False)
class Expr:
    """An expression. `template` has {0}, {1}, … for `args`; `value` is what it gives on the first rows.

    exact: no rounding in it. traced: whether it depends on an argument of the step. body: an inner step that is defined before it.
    """

    template: str
    args: tuple[Expr, ...] = ()
    value: Any = None
    exact: bool = True
    traced: bool = True
    body: Body | None = None

    def text(self, noisy: bool = False) -> str:
        """The source; `noisy` puts rounding noise on every result that is not exact."""
        inner = [arg.text(noisy) for arg in self.args]
        text = self.template
        for k, part in enumerate(inner):
            text = text.replace(f"{{{k}}}", part if _is_atom(part) else f"({part})")
        return text if self.exact or not noisy else f"noisy({text})"

    def __len__(self) -> int:
        return 1 + sum(map(len, self.args))


_ATOM = re.compile(r"[A-Za-z_]\w*(\[[^\[\]]*\])?|[\d.]+")


def _is_atom(text: str) -> bool:
    return _ATOM.fullmatch(text) is not None


@dataclass(frozen=True, eq=False)
class Statement:
    """name = expression"""

    name: str
    expr: Expr


@dataclass(frozen=True, eq=False)
class Body:
    """A step: its parameters, statements, and what it returns.

    outputs, updates and until are kept apart, so that each may be dropped; `form` puts them together.
    """

    name: str
    params: tuple[str, ...]
    statements: tuple[Statement, ...]
    outputs: tuple[Expr | dict[str, Expr] | tuple[Expr, ...], ...]
    updates: tuple[tuple[str, Expr], ...] = ()
    until: Expr | None = None
    form: str = "list"  # list, tuple or bare outputs; "updates first"

    def lines(self, noisy: bool = False, indent: str = "") -> list[str]:
        pad = indent + "    "
        lines = [f"{indent}def {self.name}({', '.join(self.params)}):"]
        for statement in self.statements:
            if statement.expr.body is not None:
                lines += statement.expr.body.lines(noisy, pad)
            lines.append(f"{pad}{statement.name} = {statement.expr.text(noisy)}")
        return [*lines, f"{pad}return {self._returned(noisy)}"]

    def _returned(self, noisy: bool) -> str:
        outputs = [nest_text(output, noisy) for output in self.outputs]
        text = outputs[0] if self.form == "bare" and len(outputs) == 1 else f"[{', '.join(outputs)}]"
        if self.form == "tuple" and len(outputs) > 1 and not self.updates and self.until is None:
            text = ", ".join(outputs)
        parts = [text] if outputs else []
        if self.updates:
            pairs = ", ".join(f"({name}, {expr.text(noisy)})" for name, expr in self.updates)
            parts.insert(0 if self.form == "updates first" else len(parts), f"as_updates([{pairs}])")
        if self.until is not None:
            parts.append(f"ns.until({self.until.text(noisy)})")
        return ", ".join(parts)


def nest_text(nest: Any, noisy: bool = False) -> str:
    """The source of a nest of expressions."""
    if isinstance(nest, dict):
        return "{" + ", ".join(f"{key!r}: {nest_text(value, noisy)}" for key, value in nest.items()) + "}"
    if isinstance(nest, tuple):
        return "(" + ", ".join(nest_text(value, noisy) for value in nest) + ",)"
    return str(nest.text(noisy))


def nest_map(function: Callable[[Expr], Expr], nest: Any) -> Any:
    """The nest with each expression replaced."""
    if isinstance(nest, dict):
        return {key: nest_map(function, value) for key, value in nest.items()}
    if isinstance(nest, tuple):
        return tuple(nest_map(function, value) for value in nest)
    return function(nest)


@dataclass(frozen=True, eq=False)
class Port:
    """One sequence, initial value or non-sequence: its text as an item of the argument list, and how it is named."""

    text: str
    kind: str  # seq, state, trace, non_seq


@dataclass(frozen=True, eq=False)
class Program:
    """A scan: arrays made before it, the step, its arguments and options."""

    arrays: tuple[tuple[str, str], ...]
    step: Body
    ports: tuple[Port, ...]
    n_steps: int | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def setup(self, noisy: bool = False) -> str:
        """Source that makes the arrays, `step`, `arguments` and `options`."""
        return "".join(f"{name} = {text}\n" for name, text in self.arrays) + self.definition(noisy)

    def definition(self, noisy: bool = False) -> str:
        """The same, without the arrays."""
        lines = ["", *self.step.lines(noisy), ""]
        if any("srng." in line for line in lines):
            lines.insert(0, "srng = stream(7)")
        arguments = [f"{key}={self._items(kind)}" for key, kind in (("sequences", "seq"), ("non_sequences", "non_seq")) if self._has(kind)]
        if self._has("state"):
            arguments.append(f"outputs_info={self._items('state', 'trace')}")
        if self.n_steps is not None:
            arguments.append(f"n_steps={self.n_steps}")
        lines.append(f"arguments = dict({', '.join(arguments)})")
        lines.append(f"options = dict({', '.join(f'{key}={value!r}' for key, value in self.options.items())})")
        return "\n".join(lines) + "\n"

    def _has(self, kind: str) -> bool:
        return any(port.kind == kind for port in self.ports)

    def _items(self, *kinds: str) -> str:
        return "[" + ", ".join(port.text for port in self.ports if port.kind in kinds) + "]"

    def source(self) -> str:
        """A whole script that shows what the modes give."""
        return f"{PRELUDE}\n{self.setup()}{EPILOGUE}"

    def with_step(self, **changes: Any) -> Program:
        return replace(self, step=replace(self.step, **changes))


PRELUDE = """\
import numpy as np
import numbascan as ns
from random_programs.words import as_updates, ifelse, inc, numbers, put, stream
"""

EPILOGUE = """
for mode in ("python", None):
    if "srng" in globals():
        srng.seed(7)
    print(ns.scan(step, mode=mode, **options)(**arguments))
"""
