"""Graphs to look at: as text, and as a picture."""

from __future__ import annotations

import shutil
from inspect import isfunction
from pathlib import Path
from typing import Any

from ..grad.mit_mots import plain_graphs
from ..ir.dot import dot
from ..ir.graph import Graph, free_inputs
from ..ir.show import GraphText
from ..ir.show import show as graph_text
from ..rewrite.pipeline import rewritten as rewritten_graph
from ..tracebacks import entry
from .tree import flattened
from .variable import Variable


def graph_of(x: Any) -> Graph:
    """The graph of a variable, of a nest of variables, or of anything compiled. Raises TypeError for what has none."""
    if isinstance(x, Graph):
        return x
    if not isinstance(x, (Variable, list, tuple, dict)):
        graph = getattr(x, "graph", None)
        if isinstance(graph, Graph):
            return graph
    leaves, _ = flattened(x)
    if not leaves or not all(isinstance(leaf, Variable) for leaf in leaves):
        advice = "; a Python function has one under @ns.jit, once it has been called" if isfunction(x) else ""
        raise TypeError(f"{x!r} ({type(x).__name__}) has no graph; give a variable, several of them, or a compiled function{advice}")
    outputs = tuple(leaf.node for leaf in leaves)
    return Graph(tuple(free_inputs(outputs)), outputs)


@entry
def show(x: Any, rewritten: bool = False) -> GraphText:
    """The graph of a variable, of several, or of a compiled function as text: one line per value, the steps of loops indented.

    The text shows itself at a prompt; elsewhere print it. Raises TypeError for what has no graph. `rewritten`: as it is when loops are made
    of it, for dimensions as the graph declares them: after all rewrites, and with states in the place of buffers of cotangents.

    >>> import numbascan as ns, numbascan.tensor as nt
    >>> x = nt.dvector("x")
    >>> ns.show(x * 2 + 1)
    input x: float64[?]
    v0: float64[?] = multiply(x, 2)
    v1: float64[?] = add(v0, 1)
    return v1
    """
    return graph_text(_rewritten(x) if rewritten else graph_of(x))


def _rewritten(x: Any) -> Graph:
    graph = graph_of(x)
    return rewritten_graph(Graph(graph.inputs, plain_graphs(graph.outputs)))


@entry
def draw(x: Any, path: str | Path, rewritten: bool = False) -> Path:
    """The graph as a picture in `path`, in the format of its suffix: svg, png, pdf, …; dot and gv give the text that Graphviz reads.

    Blue is what goes in, green what a loop gives. What a loop does at each step is in a box, what it reads at step t is yellow there; a
    dashed arrow leads to what the next step reads. Small constants stand in the nodes that read them. `rewritten`: as for `ns.show`;
    derivatives are much shorter so. The loops of this picture are those that run.

    Raises RuntimeError where Graphviz is needed and missing, or refuses the format; ValueError for a path without a suffix;
    TypeError for what has no graph.

    >>> import numbascan as ns, numbascan.tensor as nt, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     picture = ns.draw(nt.dvector("x") + 1, f"{folder}/graph.dot")
    ...     picture.read_text().splitlines()[0]
    'digraph {'
    """
    target = Path(path)
    text = dot(_rewritten(x) if rewritten else graph_of(x))
    suffix = target.suffix[1:].lower()
    if not suffix:
        raise ValueError(f"ns.draw: {str(path)!r} has no suffix to tell the format; write {str(path) + '.svg'!r}")
    if suffix in ("dot", "gv"):
        target.write_text(text + "\n", encoding="utf-8")
        return target
    program = shutil.which("dot")
    if program is None:
        raise RuntimeError(
            f"ns.draw needs Graphviz's program dot for .{suffix} files, and it is not on the path; "
            f"install graphviz, or draw to {str(target.with_suffix('.dot'))!r}"
        )
    import subprocess  # slow to import

    done = subprocess.run(
        [program, f"-T{suffix}", "-o", str(target)], input=text, text=True, encoding="utf-8", capture_output=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"ns.draw: dot could not write {str(target)!r}: {done.stderr.strip()}")
    return target
