"""The texts of functions that generated code calls, with all that they call, for standalone modules.

A name is looked up in `runtime/portable.py` first, which defines it with public functions, then in its own module. Whole top-level
statements are taken, unchanged but for annotations. Functions that reach private parts of Numba, or machine code of LAPACK, NumPy or SciPy,
are refused.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from ...ops import draw_methods, rejection
from ...ops.elementwise import HELPERS

EMIT, OPS = __package__.rpartition(".")[0], draw_methods.__name__.rpartition(".")[0]
PORTABLE = f"{EMIT}.runtime.portable"
PUBLIC = ("fractions", "math", "numba", "numpy", "scipy", "sys", "zlib")  # modules that a text may import; SciPy only if it can do without
PORTABLE_SPECIAL = ("polygamma", "_power_sum")  # in runtime/special.py; the rest there is SciPy's
STACK_MEMORY = re.compile(r"numba\.carray\(stack_memory\((\w+)\), \(SMALL, SMALL\)\)")


class NotPortable(Exception):
    """A function that cannot be written into a standalone module."""


@dataclass(frozen=True)
class Module:
    """A file, with its statements by the names that they define."""

    name: str
    text: str
    defined: dict[str, ast.stmt]
    imported: dict[str, tuple[str, str]]  # module, and the name there; "" for the module itself

    @cached_property
    def lines(self) -> list[int]:
        """The offset at which each line begins."""
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """The offsets at which the text of a node begins and ends."""
        ends = (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
        start, end = (self.lines[line - 1] + len(self._line(line).encode()[:column].decode()) for line, column in ends)
        return start, end

    def _line(self, line: int) -> str:
        return self.text[self.lines[line - 1] :].partition("\n")[0]


class Sources:
    """Texts of functions, each after those that it needs, and what they import."""

    def __init__(self) -> None:
        self.imports: set[tuple[str, str, str]] = set()  # module, name there ("": the module), name here
        self._texts: dict[str, str] = {}
        self._modules: dict[str, str] = {}  # the module that defines a name

    def text(self) -> list[str]:
        """The lines, with two blank ones between functions."""
        lines: list[str] = []
        for text in dict.fromkeys(self._texts.values()):
            is_long = "\n" in text
            lines += ["", ""] * (is_long or (len(lines) > 1 and lines[-1].startswith(" ")))
            lines += text.split("\n")
        return lines

    @property
    def names(self) -> set[str]:
        """The names that the texts define."""
        return set(self._texts)

    def helper(self, name: str) -> str:
        """Takes a function of numbers, one of HELPERS; returns its name."""
        function = getattr(HELPERS.get(name), "function", None)
        return self.take("" if function is None else function.__module__, name if function is None else function.__name__)

    def routine(self, name: str) -> str:
        """Takes a routine on whole arrays, such as `linalg.solve_into_3`; returns its name in the module."""
        module, _, routine = name.partition(".")
        return self.take(f"{EMIT}.runtime.routines.{module}", "dot_into" if name == "np.dot" else routine)

    def take(self, module: str, name: str) -> str:
        """Takes the statement that defines a name, as `module` sees it, after those that it needs; returns the name there."""
        module, name = _defining(module, name)
        if self._modules.setdefault(name, module) != module:
            raise NotPortable(f"{name} means two things, in {self._modules[name]} and in {module}")
        if name in self._texts:
            return name
        if name in rejection.SAMPLERS:
            text, needed = _sampler(name, rejection.SAMPLERS[name])
            module = rejection.__name__
        else:
            home = _module(module)
            if name not in home.defined:
                raise NotPortable(f"{name} of {module} is made while the program runs")
            statement = home.defined[name]
            text, needed = _text(home, statement), _names_in(statement)
            if isinstance(statement, ast.FunctionDef) and module.startswith(OPS):  # others without a decorator make functions
                text, needed = f"@helper\n{text}", [*needed, "helper"]
        self._texts[name] = ""  # known from here on: it may call itself
        for other in needed:
            self._need(module, other)
        del self._texts[name]
        self._texts[name] = text
        return name

    def _need(self, module: str, name: str) -> None:
        """Takes what a statement reads: a function or constant of numbascan, or a public import. Python's builtins need nothing."""
        home = _module(module)
        if name in _module(PORTABLE).defined:
            self.take(PORTABLE, name)
        elif name in home.imported:
            source, original = home.imported[name]
            if source.startswith("numbascan") or name in HELPERS:
                self.take(source, original)
            else:
                self._import(source, original, name)
        elif name in home.defined or name in _RANDOM or name in HELPERS:
            self.take(module, name)

    def _import(self, module: str, name: str, known_as: str) -> None:
        if module == "typing" or module.startswith("collections"):
            return
        if module.split(".")[0] not in PUBLIC or (module.startswith("numba.") and name != "overload"):
            raise NotPortable(f"{known_as} of {module} is no public part of Numba or NumPy")
        self.imports.add((module, name, known_as))


_RANDOM = {*draw_methods.METHODS, *rejection.METHODS, *rejection.SAMPLERS}


def _defining(module: str, name: str) -> tuple[str, str]:
    """The module that defines what `module` knows under a name, and its name there."""
    while True:
        base = name if name in _module(PORTABLE).defined else re.sub(r"_\d+$", "", name)  # solve_into_3: for three rows
        if base in _module(PORTABLE).defined:
            return PORTABLE, base
        if name in draw_methods.METHODS:
            return draw_methods.__name__, name
        if name in _RANDOM:
            return rejection.__name__, name
        if name in PORTABLE_SPECIAL:
            return f"{EMIT}.runtime.special", name
        if name in HELPERS and (HELPERS[name].module == "special" or not module):
            raise NotPortable(f"{name} is machine code of SciPy")
        if module.startswith(f"{EMIT}.inside"):
            whose = {"lapack": "LAPACK's routine", "numpy_fft": "machine code of NumPy:"}
            what = whose.get(f"{module}.{name}".split(".inside.")[1].partition(".")[0], "a private part of Numba:")
            raise NotPortable(f"it calls {what} {name}")
        home = _module(module)
        if name in home.defined:
            return module, name
        if base in home.defined:
            return module, base
        if name not in home.imported:
            return module, name
        module, name = home.imported[name]


@cache
def _module(name: str) -> Module:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    text = Path(spec.origin).read_text(encoding="utf-8")
    statements = ast.parse(text).body
    defined = {bound: statement for statement in statements for bound in _bound(statement)}
    package = name if spec.submodule_search_locations else name.rpartition(".")[0]
    imported = {known: place for statement in statements for known, place in _imported(statement, package)}
    return Module(name, text, defined, imported)


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement defines."""
    if isinstance(statement, ast.FunctionDef):
        yield statement.name
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from (node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))
    elif isinstance(statement, ast.If | ast.Try):
        for inner in [*statement.body, *statement.orelse]:
            yield from _bound(inner)


def _imported(statement: ast.stmt, package: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """The imports of a statement in a package: the name here, with the module and the name there."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            yield alias.asname or alias.name.split(".")[0], (alias.name if alias.asname else alias.name.split(".")[0], "")
    elif isinstance(statement, ast.ImportFrom):
        source = importlib.util.resolve_name("." * statement.level + (statement.module or ""), package)
        for alias in statement.names:
            yield alias.asname or alias.name, (source, alias.name)


def _names_in(statement: ast.stmt) -> list[str]:
    """The names from outside that a statement reads, without those in annotations."""
    nodes, annotated = list(ast.walk(statement)), {id(node) for part in _annotations(statement) for node in ast.walk(part)}
    names = [node for node in nodes if isinstance(node, ast.Name) and id(node) not in annotated]
    own = {node.id for node in names if isinstance(node.ctx, ast.Store)} | {node.arg for node in nodes if isinstance(node, ast.arg)}
    own |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)} | {"stack_memory"}
    calls = (_dot(node) for node in nodes if isinstance(node, ast.Call) and _is_dot(node))
    return [name for name in dict.fromkeys([*(node.id for node in names), *calls]) if name not in own]


def _annotations(statement: ast.stmt) -> Iterator[ast.expr]:
    for node in ast.walk(statement):
        annotation = node.returns if isinstance(node, ast.FunctionDef) else getattr(node, "annotation", None)
        if annotation is not None:
            yield annotation


def _is_dot(node: ast.Call) -> bool:
    return ast.unparse(node.func) == "np.dot"


def _dot(node: ast.Call) -> str:
    """The function called instead of `np.dot`, for which Numba needs SciPy."""
    return "dot" if len(node.args) == 2 else "dot_into"


def _text(module: Module, statement: ast.stmt) -> str:
    """The text of a statement, with its decorators and without annotations."""
    line = min(node.lineno for node in (statement, *getattr(statement, "decorator_list", [])))
    start, (_, end) = module.lines[line - 1], module.span(statement)
    text = module.text[start:end]
    for first, last, instead in sorted(_changes(module, statement), reverse=True):
        text = text[: first - start] + instead + text[last - start :]
    return STACK_MEMORY.sub(r"np.empty((n, n), \1.dtype)", text)


def _changes(module: Module, statement: ast.stmt) -> Iterator[tuple[int, int, str]]:
    """The replacements in the text of a statement: start, end, new text."""
    for annotation in _annotations(statement):
        start, end = module.span(annotation)
        mark = max(module.text.rfind(":", 0, start), module.text.rfind("->", 0, start))
        yield len(module.text[:mark].rstrip()), end, ""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and _is_dot(node) and module.name != PORTABLE:  # whose own dot is NumPy's
            yield *module.span(node.func), _dot(node)


def _sampler(name: str, sampler: rejection.Sampler) -> tuple[str, Iterable[str]]:
    """The text of a function that draws one number by rejection, and the names that it needs."""
    parameters = "abc"[: sampler.parameters]
    nothing = "np.nan" if sampler.dtype == "float64" else f"np.{sampler.dtype}(0)"
    words, search = "x0, x1, x2, x3, prepared", sampler.search
    lines = [
        f"@helper\ndef {name}{'_accepted' * (search is not None)}(k0, k1, number, position, {', '.join(parameters)}):",
        '    """The first number that is accepted."""',
        f"    prepared = {sampler.setup}(({', '.join(parameters)},))",
        "    for k in range(1, ATTEMPTS):",
        "        x0, x1, x2, x3 = philox(k0, k1, np.uint64(k), position + np.uint64(1), number, np.uint64(0))",
        f"        at_once, proposed = {sampler.proposal}({words})",
        f"        if at_once or {sampler.test}({words}, proposed):",
        f"            return {sampler.value}({words}, proposed)",
        f"    return {nothing}",
    ]
    needed = ["helper", "np", "ATTEMPTS", "philox", sampler.setup, sampler.proposal, sampler.test, sampler.value]
    if search is None:
        return "\n".join(lines), needed
    lines += [
        "",
        "",
        f"@helper\ndef {name}(k0, k1, number, position, {', '.join(parameters)}):",
        '    """A number by search where numbers are small, else the first that is accepted."""',
        f"    parameters = ({', '.join(parameters)},)",
        f"    if not {search.is_small}(parameters):",
        f"        return {search.end}({name}_accepted(k0, k1, number, position, {', '.join(parameters)}), parameters)",
        "    word, _, _, _ = philox(k0, k1, np.uint64(1), position + np.uint64(1), number, np.uint64(0))",
        f"    u, probability, k = uniform_of(word), {search.start}(parameters), 0.0",
        "    while u >= probability and probability > FEWEST:",
        "        u -= probability",
        "        k += 1.0",
        f"        probability = {search.following}(k, probability, parameters)",
        f"    return {search.end}(k, parameters)",
    ]
    return "\n".join(lines), [*needed, "FEWEST", "uniform_of", search.is_small, search.start, search.following, search.end]
