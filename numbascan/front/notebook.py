"""The display of compiled objects in notebooks."""

from __future__ import annotations

import html
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from ..ir.show import show


def as_html(x: Any, function: Callable[..., Any] | None, kinds: Iterable[str]) -> str:
    """HTML that shows what `x` is and computes, the kinds of arguments it is compiled for, and its memory; folded, its graph and code.

    x: a ScanFunction, a function of `ns.jit` or of `ns.function`. function: the user's, whose docstring tells what it computes. Nothing is
    compiled for this.
    """
    purpose = (inspect.getdoc(function) or "").partition("\n\n")[0] if function is not None else ""
    listed = list(kinds)
    parts = [f"<code>{html.escape(repr(x))}</code>", html.escape(purpose)]
    if listed:
        parts.append(f"Compiled for: {', '.join(f'<code>{html.escape(kind)}</code>' for kind in listed)}")
        parts.append(_preformatted(_told(x.memory)))
        parts += [_folded("Graph", _told(lambda: show(x.graph))), _folded("Generated code", _told(x.source))]
    else:
        parts.append("Not compiled yet: it is at the first call.")
    return "".join(f"<div>{part}</div>" for part in parts if part)


def _told(question: Callable[[], Any]) -> str:
    """The answer as text; "" if there is none, as for the code of `mode="python"`."""
    try:
        return str(question())
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return ""


def _preformatted(text: str) -> str:
    return f"<pre>{html.escape(text)}</pre>" if text else ""


def _folded(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>{_preformatted(text)}</details>" if text else ""
