"""Modules with CUDA kernels for Numba's simulator, where Python runs them.

Floats written in a kernel become NumPy's, which do not raise: Python's 1.0 / 0.0 does. NumPy's warnings are switched off in each kernel,
since each thread of the simulator is a new thread of Python.
"""

from __future__ import annotations

import ast
from types import CodeType

_QUIET = "np.errstate(all='ignore')"


def compiled(text: str, file: str) -> CodeType:
    """The code of a module in which kernels run as they do on a GPU."""
    tree = ast.parse(text)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            quiet = ast.parse(f"with {_QUIET}: pass").body[0]
            assert isinstance(quiet, ast.With)
            quiet.body = [_OfNumpy().visit(stmt) for stmt in node.body]
            node.body = [quiet]
    return compile(ast.fix_missing_locations(tree), file, "exec")


class _OfNumpy(ast.NodeTransformer):
    """Floating-point numbers become NumPy's."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if not isinstance(node.value, float):
            return node
        float64 = ast.Attribute(ast.Name("np", ast.Load()), "float64", ast.Load())
        return ast.Call(float64, [node], [])
