"""One self-contained HTML page about a compiled object or a variable."""

from __future__ import annotations

import html
import tempfile
from pathlib import Path
from typing import Any

from .show import draw, show

_STYLE = "body { font-family: sans-serif; margin: 2em } pre { background: #f4f4f4; padding: 1em; overflow-x: auto }"


def page(title: str, x: Any, compiled: Any) -> str:
    """The page: the graph as text and, with Graphviz, as a picture; the generated code; for a compiled object the bytes stored.

    x: the owner of the graph. compiled: the owner of the code; for a variable, a function of it. Letters beyond ASCII are written as
    references, so any encoding will do.
    """
    parts = {
        "Graph": _text(show(x)),
        "Picture": _picture(x),
        "Generated code": _text(compiled.source()),
        "Memory": _text(compiled.memory()) if compiled is x else "",  # for a variable, sizes are not known
    }
    sections = "\n".join(f"<h2>{name}</h2>\n{part}" for name, part in parts.items() if part)
    name = html.escape(title)
    text = (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{name}</title><style>{_STYLE}</style></head>\n'
        f"<body>\n<h1>{name}</h1>\n{sections}\n</body>\n</html>"
    )
    return text.encode("ascii", "xmlcharrefreplace").decode()


def _text(value: Any) -> str:
    return f"<pre>{html.escape(str(value))}</pre>"


def _picture(x: Any) -> str:
    """The graph as SVG, without the lines that only a file needs; "" without Graphviz."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            svg = draw(x, Path(folder) / "graph.svg").read_text(encoding="utf-8")
        except RuntimeError:
            return ""
    return svg[svg.index("<svg") :].strip()
