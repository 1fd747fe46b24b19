"""A plan as a Python module with CUDA kernels, and a function of the host that launches them.

    def vmap_lorenz(y, r):                                   # on the host: sizes, memory, checks of sizes
        …
        on_grid(vmap_lorenz_1, 0, n, (y, r, step))           # a kernel: one thread for each lane

The host computes whatever reads no element of an array. The rest goes into kernels: a loop in threads is a kernel of its own, statements
between two such loops run in a single thread. A scalar that a kernel makes and something else reads comes back in an array of one number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...ir import loops as ir
from ...ir.mentions import memory_of, mentioned, mentions_in
from ...ir.names import WORD
from ..messages import named_messages, without_location
from ..names import HELPERS, has_gpu_code
from ..runtime.external_names import EXTERNALS, function_of
from ..runtime.gpu_names import LARGE_PRODUCT, MOST_NUMBERS, OF_GPU
from ..text import expression, statement
from .grid import SHARED, Unfit, in_all_threads, is_checked, is_wide, nest_of
from .products import OperandPlace, product_of, products_in

_CALLED = re.compile(rf"(?<![\w.])({WORD})\(")
FUNCTIONS_OF_MATH = re.compile(r"(?<![\w.])(?:math|np)\.(\w+)\(")
"""Calls of functions; casts such as `np.float64(x)` match too, and are excluded by name."""
CASTS = {
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    "float32",
    "float64",
    "complex64",
    "complex128",
    "bool_",
}
OF_CUBLAS = ("by_cublas", "takes_cublas")
OF_HOST = ("BLOCK", "NONE", "alone", "array", "as_number", "at_once", "cuda", "host", "in_one_grid", "kernel", "number", "on_grid", "parts")
OF_CARDS = frozenset(name for names in HELPERS.values() for name in names)
OF_CHECKS = ("error", "seen", "own", "turn", *(f"seen_{k}" for k in range(MOST_NUMBERS)))
RESERVED = (*OF_HOST, *OF_CUBLAS, *OF_CHECKS, "first", "last", "grid", "place")
"""The names that the text uses besides those of helpers."""


def module_text(function: ir.Function, fastmath: bool = False) -> str:
    """The whole module: imports, errors, kernels, and the function of the host."""
    return _Module(function, fastmath).text()


def kernel_types(function: ir.Function) -> dict[str, list[tuple[str, int]]]:
    """The dtype and rank of each argument, by kernel of a function's module; a number has rank 0."""
    module = _Module(function, False)
    module.text()
    return {kernel.name: kernel.types for kernel in module.kernels}


def called_routines(function: ir.Function) -> list[str]:
    """The functions of `ns.external` that a function calls, by the names that kernels have for them."""
    return list(dict.fromkeys(stmt.routine.removeprefix(EXTERNALS) for stmt in ir.walk(function.body) if isinstance(stmt, ir.Call)))


@dataclass
class _Kernel:
    """Statements that run on the GPU. `loop`: the loop whose passes are shared out to threads, if there is one."""

    name: str
    stmts: list[ir.Stmt]
    loop: ir.For | None
    parts: dict[str, str]  # by sum of a loop that is shared out in one grid: the array for the blocks' parts
    scratch: dict[str, str]  # by dtype of these sums: the array in which a block adds up, one sum after the other, because memory is short
    is_grid: bool
    reads: list[str]
    types: list[tuple[str, int]]  # dtype and rank of each argument
    results: dict[str, str]  # by local that something else reads: the array that brings it back
    fails: list[ir.Fail]


class _Module:
    """The text of a module, under construction."""

    def __init__(self, function: ir.Function, fastmath: bool) -> None:
        function = replace(function, body=ir.with_expressions(function.body, _rounded))
        self.function, self.options = function, "fastmath=True" * fastmath
        self.messages = named_messages(function)
        self.names = function.names.copy()
        every = list(ir.walk(function.body))
        self.dtypes = {stmt.name: _dtype(stmt.value) for stmt in every if isinstance(stmt, ir.Let)}
        self.types = {argument.name: (argument.dtype, argument.rank) for argument in function.arguments}
        for stmt in every:
            if isinstance(stmt, ir.Let | ir.For):
                self.types.setdefault(stmt.name, (self.dtypes.get(stmt.name, "int64"), 0))
            elif isinstance(stmt, ir.Alloc):
                self.types[stmt.name] = stmt.dtype, len(stmt.shape)
            elif isinstance(stmt, ir.Alias):
                dtype, rank = self.types[stmt.array]
                self.types[stmt.name] = dtype, _rank(stmt, rank)
        self.memory, self.mentions = memory_of(function.body), mentions_in(every)
        self.views = {stmt.name for stmt in every if isinstance(stmt, ir.Alias)}
        self.kernels: list[_Kernel] = []
        self.lines: list[str] = []  # the host function's body

    def text(self) -> str:
        arguments = [argument.name for argument in self.function.arguments]
        self._host(self.function.body, {*arguments}, [], "    ")
        kernels = [line for kernel in self.kernels for line in (*self._kernel(kernel), "", "")]
        host = [f"def {self.function.name}({', '.join(arguments)}):", *self.lines]
        body = "\n".join([*kernels, *host])
        lines = [
            *_imports(body, "\n".join(kernels)),
            "",
            *(f"{name} = {name + ': ' + without_location(message)!r}" for message, name in self.messages.items()),
            "",
            "",
            *kernels,
            *host,
            "",
        ]
        return "\n".join(lines)

    # host -------------------------------------------------------------------------------------------------------------

    def _host(self, stmts: Sequence[ir.Stmt], known: set[str], after: Sequence[ir.Stmt], pad: str) -> None:
        """Writes a block of the host. `known`: names whose values the host has; `after`: what runs after the block."""
        pending: list[ir.Stmt] = []
        for k, stmt in enumerate(stmts):
            rest = [*stmts[k:], *after]
            is_block = isinstance(stmt, ir.For | ir.If) and self._is_around_kernels(stmt)
            sizes = [] if is_block else self._sizes_of_products(stmt, known)
            is_block |= bool(sizes)
            if not is_block and (not self._is_of_host(stmt) or (_reads(stmt) & _defined(pending) and _is_scalar_work(stmt))):
                pending.append(stmt)
                continue
            if is_block or _leaves(stmt) or _reads(stmt) & _defined(pending) or _makes(stmt) & mentioned(pending):
                self._flush(pending, rest, known, pad)
                pending = []
            if isinstance(stmt, ir.For | ir.If) and sizes:
                self._in_two_ways(stmt, sizes, known, rest[1:], pad)
            elif isinstance(stmt, ir.For | ir.If) and is_block:
                self._host_block(stmt, known, rest[1:], pad)
            else:
                self._host_statement(stmt, known, pad)
        self._flush(pending, after, known, pad)

    def _is_of_host(self, stmt: ir.Stmt) -> bool:
        """True if a statement reads no element of an array, so that the host can run it."""
        if isinstance(stmt, ir.Note | ir.Return | ir.Fail | ir.Break):
            return True
        if isinstance(stmt, ir.Alloc):
            return not stmt.on_stack
        if isinstance(stmt, ir.If):
            return not _reads_elements(stmt) and all(map(self._is_of_host, (*stmt.then, *stmt.otherwise)))
        return isinstance(stmt, ir.Let | ir.Alias) and not _reads_elements(stmt)

    def _host_statement(self, stmt: ir.Stmt, known: set[str], pad: str) -> None:
        """Writes a statement that the host runs."""
        if isinstance(stmt, ir.Note):
            return
        if isinstance(stmt, ir.If):
            self.lines.append(f"{pad}if {_on_host(expression(stmt.condition))}:")
            for side in (stmt.then, stmt.otherwise):
                if side is stmt.otherwise and side:
                    self.lines.append(f"{pad}else:")
                for inner in side:
                    self._host_statement(inner, known, pad + "    ")
            return
        if isinstance(stmt, ir.Alloc):
            shape = ", ".join(_on_host(expression(dim)) for dim in stmt.shape)
            self.lines.append(f"{pad}{stmt.name} = array(({shape}{',' * (len(stmt.shape) == 1)}), {_numpy(stmt.dtype)})")
        elif isinstance(stmt, ir.Alias):
            self.lines.append(f"{pad}{_on_host(statement(stmt, self.messages)).removesuffix('.copy()')}")
        else:
            self.lines.append(pad + _on_host(statement(stmt, self.messages)))
        if isinstance(stmt, ir.Let | ir.Alloc | ir.Alias):
            known.add(stmt.name)

    def _is_around_kernels(self, stmt: ir.For | ir.If) -> bool:
        """True if the host runs a loop or a choice, with kernels inside it."""
        if isinstance(stmt, ir.For) and stmt.kind in ("threads", "chunks"):
            return stmt.kind == "chunks"
        if isinstance(stmt, ir.If) and ir.may_end([stmt]):  # it ends a loop of the host
            return True
        takes_memory = any(isinstance(one, ir.Alloc) and not one.on_stack for one in ir.walk([stmt]))
        return takes_memory or (is_wide(stmt) and self._in_one_grid([stmt]) is None)

    def _in_one_grid(self, stmts: Sequence[ir.Stmt]) -> list[ir.Stmt] | None:
        """The statements as all threads of a grid run them; None if they cannot."""
        try:
            return in_all_threads(stmts, self.memory, self.views, self.mentions)
        except Unfit:
            return None

    def _host_block(self, stmt: ir.For | ir.If, known: set[str], rest: Sequence[ir.Stmt], pad: str) -> None:
        """Writes a loop or a choice of the host, with kernels inside."""
        if isinstance(stmt, ir.If):
            condition = self._condition(stmt.condition, known, rest, pad)
            self.lines.append(f"{pad}if {condition}:")
            self._side(stmt.then, known, rest, pad)
            if stmt.otherwise:
                self.lines.append(f"{pad}else:")
                self._side(stmt.otherwise, known, rest, pad)
            return
        start, stop = (self._condition(bound, known, rest, pad) for bound in (stmt.start, stmt.stop))
        self.lines.append(f"{pad}for {stmt.name} in range({start}, {stop}{f', {stmt.step}' * (stmt.step != 1)}):")
        self._side(stmt.body, known | {stmt.name}, [stmt, *rest], pad)
        known |= _defined([stmt])

    def _sizes_of_products(self, stmt: ir.Stmt, known: set[str]) -> list[str]:
        """The sizes of products inside a statement that cuBLAS may compute if the host runs the loop or choice around them."""
        if not isinstance(stmt, ir.For | ir.If) or product_of(stmt) is not None:
            return []
        sizes = [product.size for product in products_in([stmt]) if product.is_sized(known)]
        return list(dict.fromkeys(_on_host(expression(size)) for size in sizes if not isinstance(size, int) or size >= LARGE_PRODUCT))

    def _in_two_ways(self, stmt: ir.For | ir.If, sizes: Sequence[str], known: set[str], rest: Sequence[ir.Stmt], pad: str) -> None:
        """Writes a loop or a choice with products inside twice: run by the host if a product is large, else by one kernel."""
        largest = sizes[0] if len(sizes) == 1 else f"max({', '.join(sizes)})"
        self.lines.append(f"{pad}if takes_cublas({largest}):")
        self._host_block(stmt, {*known}, rest, pad + "    ")
        self.lines.append(f"{pad}else:")
        self._flush([stmt], rest, known, pad + "    ")

    def _side(self, stmts: Sequence[ir.Stmt], known: set[str], rest: Sequence[ir.Stmt], pad: str) -> None:
        """Writes the block inside a loop or a choice of the host."""
        before = len(self.lines)
        self._host(stmts, known, rest, pad + "    ")
        if len(self.lines) == before:
            self.lines.append(f"{pad}    pass")

    def _condition(self, expr: ir.Index, known: set[str], rest: Sequence[ir.Stmt], pad: str) -> str:
        """The text of an expression on the host; one that reads elements is computed by a kernel."""
        if not any(isinstance(part, ir.Load) for part in ir.parts(expr)):
            return _on_host(expression(expr))
        name = self.names.fresh("condition")
        self.dtypes[name] = _dtype(expr)
        self._flush([ir.Let(name, expr)], [ir.Let("", ir.Name(self.dtypes[name], name)), *rest], known, pad)
        return name

    # kernels ----------------------------------------------------------------------------------------------------------

    def _flush(self, pending: Sequence[ir.Stmt], rest: Sequence[ir.Stmt], known: set[str], pad: str) -> None:
        """Writes the launches of the kernels that statements need; `rest`: what runs after them."""
        groups: list[list[ir.Stmt]] = []
        for stmt in pending:
            is_alone = isinstance(stmt, ir.For) and stmt.kind == "threads"
            if is_alone or not groups or (isinstance(groups[-1][-1], ir.For) and groups[-1][-1].kind == "threads"):
                groups.append([])
            groups[-1].append(stmt)
        for k, group in enumerate(groups):
            behind = [*(stmt for other in groups[k + 1 :] for stmt in other), *rest]
            self._launch(group, behind, known, pad)

    def _launch(self, stmts: list[ir.Stmt], behind: Sequence[ir.Stmt], known: set[str], pad: str) -> None:
        self._refuse(stmts)
        loop = stmts[0] if isinstance(stmts[0], ir.For) and stmts[0].kind == "threads" else None
        results = sorted(_defined(stmts) & _needed(behind)) if loop is None else []
        fails = [stmt for stmt in ir.walk(stmts) if isinstance(stmt, ir.Fail)]
        is_grid = loop is None and any(map(is_wide, stmts))
        sums = dict.fromkeys(
            name for one in ir.walk(stmts) if is_grid and isinstance(one, ir.For) and one.kind == "sums" for name in _sums(one)
        )
        name = self.names.fresh(f"{self.function.name}_kernel_{len(self.kernels) + 1}")
        names = mentioned(stmts) if loop is None else _read_in_passes(nest_of(loop))
        reads = sorted(names & known)
        types = (
            [("int64", 0)] * (2 if loop else 0) + [self.types[one] for one in reads] + [(self.dtypes[one], 1) for one in (*results, *sums)]
        )
        types += [("int64", 1), ("float64", 1)] * bool(fails)
        there = {one: self.names.fresh(f"{one}_there") for one in results}
        parts_of = {one: self.names.fresh(f"{one}_parts") for one in sums}
        scratch = {dtype: self.names.fresh(f"{dtype}_of_block") for dtype in dict.fromkeys(self.dtypes[one] for one in sums)}
        self.kernels.append(_Kernel(name, stmts, loop, parts_of, scratch, is_grid, reads, types, there, fails))
        self.lines += [f"{pad}{array} = number({_numpy(self.dtypes[one])})" for one, array in there.items()]
        self.lines += [f"{pad}{array} = parts({_numpy(self.dtypes[one])})" for one, array in parts_of.items()]
        arrays = [*reads, *there.values(), *parts_of.values()]
        operands = f"({', '.join(arrays)}{',' * (len(arrays) == 1)})"
        errors = f", ERRORS_OF_{name}" * bool(fails)
        if loop is not None:
            first, last = self._range(loop)
            product = product_of(loop)
            if product is not None and product.can_be_found(known):
                lengths = ", ".join(f'"{letter}": {_on_host(expression(length))}' for letter, length in product.lengths.items())
                places = ", ".join(map(_place, (product.left, product.right, product.result)))
                self.lines.append(f'{pad}if not by_cublas("{product.labels}", {{{lengths}}}, {places}):')
                pad += "    "
            self.lines.append(f"{pad}on_grid({name}, {_on_host(expression(first))}, {_on_host(expression(last))}, {operands}{errors})")
        elif is_grid:
            self.lines.append(f"{pad}in_one_grid({name}, {self._most_passes(stmts, known)}, {operands}{errors})")
        else:
            self.lines.append(f"{pad}alone({name}, {operands}{errors})")
        self.lines += [f"{pad}{one} = as_number({array})" for one, array in there.items()]
        known.update(results)

    def _most_passes(self, stmts: Sequence[ir.Stmt], known: set[str]) -> str:
        """The text of the number of threads that have work in a loop inside; "None" if the host cannot know."""
        totals = [self._range(one)[1] for one in ir.walk(stmts) if isinstance(one, ir.For) and one.kind in SHARED]
        names = {name for total in totals for name, _ in ir.names_in(total)}
        reads = any(isinstance(part, ir.Load) for total in totals for part in ir.parts(total))
        if reads or not names <= known:
            return "None"
        texts = list(dict.fromkeys(_on_host(expression(total)) for total in totals))
        return texts[0] if len(texts) == 1 else f"max({', '.join(texts)})"

    def _refuse(self, stmts: Sequence[ir.Stmt]) -> None:
        """Raises NotImplementedError for whatever has no code for a GPU."""
        called = [stmt.routine for stmt in ir.walk(stmts) if isinstance(stmt, ir.Call)]
        missing = [f"the routine {routine}" for routine in called if not function_of(routine)]
        for routine in called:
            if (function := function_of(routine)) and (reason := _unfit(function, routine)):
                raise NotImplementedError(f"{self.function.name}: mode='cuda': {reason}, or use mode=None for this function")
        for part in (
            part for stmt in ir.walk(stmts) for expr in ir.expressions(stmt) for part in ir.parts(expr) if isinstance(part, ir.Apply)
        ):
            missing += [f"the function {name}" for name in _CALLED.findall(part.template.text) if not has_gpu_code(name)]
            of_complex = any(isinstance(arg, ir.Expr) and arg.dtype.startswith("complex") for arg in part.args)
            for name in set(FUNCTIONS_OF_MATH.findall(part.template.text)) - CASTS:
                if name not in OF_GPU or (of_complex and name != "conj"):
                    missing.append(f"np.{name}{' of complex numbers' * of_complex}")
        if missing:
            raise NotImplementedError(f"{self.function.name}: mode='cuda': {missing[0]} has no CUDA code; use mode=None for this function")

    def _range(self, loop: ir.For) -> tuple[ir.Index, ir.Index]:
        """The range of a nest's passes, counted as one loop: start and stop."""
        nest = nest_of(loop)
        if len(nest) == 1:
            return loop.start, loop.stop
        total: ir.Index = 1
        for one in nest:
            total = ir.mul(total, ir.greatest(ir.sub(one.stop, one.start), 0))
        return 0, total

    def _kernel(self, kernel: _Kernel) -> list[str]:
        """The lines of a kernel's definition."""
        if kernel.fails:
            errors = ", ".join(f"({fail.error}, {self.messages[fail.message]}, {_types(fail)})" for fail in kernel.fails)
            yielded = [f"ERRORS_OF_{kernel.name} = ({errors},)", "", ""]
        else:
            yielded = []
        arguments = [*(["first", "last"] if kernel.loop else []), *kernel.reads, *kernel.results.values()]
        arguments += [*kernel.parts.values(), *(["error", "seen"] if kernel.fails else [])]
        yielded += [f"@kernel({self.options})", f"def {kernel.name}({', '.join(arguments)}):"]
        if kernel.loop is not None:
            nest = nest_of(kernel.loop)
            number = nest[0].name if len(nest) == 1 else "number"
            return [*yielded, *self._strided(kernel.loop, kernel, "first", "last", number, "    ")]
        stmts = kernel.stmts
        if kernel.is_grid:
            stmts = self._in_one_grid(stmts) or []
            yielded.append("    grid = cuda.cg.this_grid()")
            yielded += [f"    {array} = cuda.shared.array(BLOCK, {_numpy(dtype)})" for dtype, array in kernel.scratch.items()]
            if any(map(is_checked, ir.walk(stmts))):
                yielded += ["    own = np.int64(NONE)", "    turn = 0", *(f"    seen_{k} = 0.0" for k in range(_most_numbers(kernel)))]
        yielded += self._lines(stmts, kernel, "0", "    ")
        writes = [f"{array}[0] = {name}" for name, array in kernel.results.items()]
        if writes and kernel.is_grid:
            return [*yielded, "    if cuda.grid(1) == 0:", *(f"        {line}" for line in writes)]
        return [*yielded, *(f"    {line}" for line in writes)]

    def _strided(self, loop: ir.For, kernel: _Kernel, first: str, last: str, number: str, pad: str) -> Iterator[str]:
        """A grid-stride loop: each thread makes every gridsize-th pass."""
        nest = nest_of(loop)
        counter = nest[0].name if len(nest) == 1 else self.names.fresh("place")
        start = "cuda.grid(1)" if first == "0" else f"{first} + cuda.grid(1)"
        yield f"{pad}{counter} = {start}"
        yield f"{pad}while {counter} < {last}:"
        if len(nest) > 1:
            yield from (f"{pad}    {line}" for line in _indices(nest, counter))
        yield from self._lines(nest[-1].body, kernel, counter if number else "0", f"{pad}    ")
        yield f"{pad}    {counter} += cuda.gridsize(1)"

    def _summed(self, loop: ir.For, kernel: _Kernel, pad: str) -> Iterator[str]:
        """A loop of sums: each thread adds up its passes, a block its threads, then each block all blocks' parts. The order is fixed."""
        sums = _sums(loop)
        part_of = {name: self.names.fresh(f"{name}_part") for name in sums}
        renamed = ir.rebuilt(
            loop.body, lambda stmt: [_with_part(stmt, part_of)] if isinstance(stmt, ir.Let) and stmt.name in sums else None
        )
        for name, value in sums.items():
            yield f"{pad}{part_of[name]} = {_identity(name, value)}"
        first, last = self._range(loop)
        bound = self.names.fresh("stop")
        yield f"{pad}{bound} = {_on_device(expression(last))}"
        yield from self._strided(replace(loop, body=renamed), kernel, expression(first), bound, "", pad)
        yield from self._in_block(sums, part_of, kernel, pad)
        yield f"{pad}if cuda.threadIdx.x == 0:"
        for name in sums:
            yield f"{pad}    {kernel.parts[name]}[cuda.blockIdx.x] = {part_of[name]}"
        yield f"{pad}grid.sync()"
        for name, value in sums.items():
            yield f"{pad}{part_of[name]} = {_identity(name, value)}"
        block = self.names.fresh("block")
        yield f"{pad}{block} = cuda.threadIdx.x"
        yield f"{pad}while {block} < cuda.gridDim.x:"
        for name, value in sums.items():
            yield f"{pad}    {part_of[name]} = {_joined(part_of[name], f'{kernel.parts[name]}[{block}]', value)}"
        yield f"{pad}    {block} += BLOCK"
        yield from self._in_block(sums, part_of, kernel, pad)
        for name, value in sums.items():
            yield f"{pad}{name} = {_joined(name, part_of[name], value)}"

    def _in_block(self, sums: Mapping[str, ir.Apply], part_of: Mapping[str, str], kernel: _Kernel, pad: str) -> Iterator[str]:
        """Adds up the parts of a block's threads in a tree, one sum after the other; then every thread has the sums as its parts."""
        width = self.names.fresh("width")
        for name, value in sums.items():
            shared = kernel.scratch[self.dtypes[name]]
            both = _joined(f"{shared}[cuda.threadIdx.x]", f"{shared}[cuda.threadIdx.x + {width}]", value)
            lines = (
                f"{shared}[cuda.threadIdx.x] = {part_of[name]}",
                "cuda.syncthreads()",
                f"{width} = BLOCK // 2",
                f"while {width} > 0:",
                f"    if cuda.threadIdx.x < {width}:",
                f"        {shared}[cuda.threadIdx.x] = {both}",
                "    cuda.syncthreads()",
                f"    {width} //= 2",
                f"{part_of[name]} = {shared}[0]",
                "cuda.syncthreads()",  # all threads have read it before the next sum overwrites it
            )
            yield from (f"{pad}{line}" for line in lines)

    def _lines(self, stmts: Iterable[ir.Stmt], kernel: _Kernel, number: str, pad: str) -> Iterator[str]:
        """The lines of statements in a kernel; `number`: the text of the pass's number."""
        for stmt in stmts:
            if isinstance(stmt, ir.For) and kernel.is_grid and stmt.kind == "sums":
                yield from self._summed(stmt, kernel, pad)
            elif isinstance(stmt, ir.For) and kernel.is_grid and stmt.kind == "threads":
                first, last = self._range(stmt)
                bound = self.names.fresh("stop")
                yield f"{pad}{bound} = {_on_device(expression(last))}"
                yield from self._strided(stmt, kernel, _on_device(expression(first)), bound, "number" if is_checked(stmt) else "", pad)
                yield from _looked_at(kernel, pad) if is_checked(stmt) else ()
            elif isinstance(stmt, ir.Barrier):
                yield f"{pad}grid.sync()"
            elif isinstance(stmt, ir.For):
                yield from self._loop_lines(stmt, kernel, number, pad)
            elif isinstance(stmt, ir.If):
                yield f"{pad}if {_on_device(expression(stmt.condition))}:"
                yield from list(self._lines(stmt.then, kernel, number, pad + "    ")) or [f"{pad}    pass"]
                if stmt.otherwise:
                    yield f"{pad}else:"
                    yield from self._lines(stmt.otherwise, kernel, number, pad + "    ")
            elif isinstance(stmt, ir.Fail) and kernel.is_grid and number != "0":
                for k, seen in enumerate(stmt.numbers):
                    yield f"{pad}seen_{k} = np.float64({_on_device(expression(seen))})"
                code = next(k for k, fail in enumerate(kernel.fails) if fail is stmt)
                yield f"{pad}own = {len(kernel.fails)} * {number} + {code}"
                yield f"{pad}cuda.atomic.min(error, turn, own)"
                yield f"{pad}break"
            elif isinstance(stmt, ir.Fail):
                for k, seen in enumerate(stmt.numbers):
                    yield f"{pad}seen[{k}] = np.float64({_on_device(expression(seen))})"
                code = next(k for k, fail in enumerate(kernel.fails) if fail is stmt)
                yield f"{pad}cuda.atomic.min(error, 0, {len(kernel.fails)} * {number} + {code})"
                yield f"{pad}return"
            elif isinstance(stmt, ir.Alloc):
                dims = [expression(dim) for dim in stmt.shape]
                shape = dims[0] if len(dims) == 1 else f"({', '.join(dims)})"
                yield f"{pad}{stmt.name} = cuda.local.array({shape}, {_numpy(stmt.dtype)})"
            elif not isinstance(stmt, ir.Note):
                yield pad + _on_device(statement(stmt, self.messages)).removeprefix(EXTERNALS)

    def _loop_lines(self, loop: ir.For, kernel: _Kernel, number: str, pad: str) -> Iterator[str]:
        """A loop of one thread: a `while` if it is over time or of unknown length, because that makes less code."""
        start, stop = _on_device(expression(loop.start)), _on_device(expression(loop.stop))
        if isinstance(loop.start, int) and isinstance(loop.stop, int) and loop.kind != "time":
            bounds = stop if start == "0" and loop.step == 1 else f"{start}, {stop}{f', {loop.step}' * (loop.step != 1)}"
            yield f"{pad}for {loop.name} in range({bounds}):"
            yield from self._lines(loop.body, kernel, number, pad + "    ")
            return
        bound = loop.stop
        if any(
            is_element or name in _defined(loop.body) for name, is_element in ir.names_in(bound)
        ):  # a pass may change it: keep the first
            bound = ir.Name("int64", self.names.fresh("stop"))
            yield f"{pad}{bound.name} = {stop}"
        yield f"{pad}{loop.name} = {start}"
        step = loop.step
        assert isinstance(step, int), "no pass for a GPU makes other steps"
        yield f"{pad}while {_on_device(expression(ir.compare('<' if step > 0 else '>', ir.Name('int64', loop.name), bound)))}:"
        yield from self._lines(loop.body, kernel, number, pad + "    ")
        yield f"{pad}    {loop.name} {'+' if step > 0 else '-'}= {abs(step)}"


def _looked_at(kernel: _Kernel, pad: str) -> Iterator[str]:
    """The lines after a loop whose passes may fail: all threads end if one has failed, and the first failing pass tells its numbers.

    Two places take turns, so that neither is written before all threads have looked at it.
    """
    yield f"{pad}grid.sync()"
    yield f"{pad}if error[turn] != NONE:"
    if _most_numbers(kernel):
        yield f"{pad}    if error[turn] == own:"
        yield from (f"{pad}        seen[{k}] = seen_{k}" for k in range(_most_numbers(kernel)))
    yield f"{pad}    return"
    yield f"{pad}turn = 1 - turn"


def _most_numbers(kernel: _Kernel) -> int:
    """The most numbers that an error of a kernel tells."""
    return max((len(fail.numbers) for fail in kernel.fails), default=0)


def _sums(loop: ir.For) -> dict[str, ir.Apply]:
    """The sums of a loop: the locals, and the values that they get in a pass."""
    made = {stmt.name for stmt in ir.walk(loop.body) if isinstance(stmt, ir.Let) and stmt.is_new}
    lets = [stmt for stmt in ir.walk(loop.body) if isinstance(stmt, ir.Let) and stmt.name not in made]
    return {stmt.name: stmt.value for stmt in lets if isinstance(stmt.value, ir.Apply)}


def _joined(a: str, b: str, value: ir.Apply) -> str:
    """The text that joins two parts of a reduction by the operation of `value`."""
    return _on_device(expression(ir.Apply(value.dtype, value.template, (ir.Name(value.dtype, a), ir.Name(value.dtype, b)))))


def _identity(name: str, value: ir.Apply) -> str:
    """The text of the start of a reduction's part: 0 for a sum, 1 for a product, else the first state.

    An extreme, all or any of a state is the same however often the state is taken.
    """
    if value.template not in (ir.ACCUMULATE, ir.IN_ORDER, ir.PRODUCT):
        return name
    return expression(ir.Literal(value.dtype, int(value.template == ir.PRODUCT)))


def _with_part(stmt: ir.Let, part_of: Mapping[str, str]) -> ir.Let:
    """The statement with the part of a sum in place of the sum."""
    value, part = stmt.value, part_of[stmt.name]
    assert isinstance(value, ir.Apply)
    args = tuple(ir.Name(value.dtype, part) if arg == ir.Name(value.dtype, stmt.name) else arg for arg in value.args)
    return ir.Let(part, replace(value, args=args), is_new=False)


def _indices(nest: Sequence[ir.For], number: str) -> Iterator[str]:
    """The lines that compute a nest's indices from one count, the last index fastest."""
    rest: ir.Index = ir.Name("int64", number)
    lengths = [ir.sub(one.stop, one.start) for one in nest]
    for k, one in enumerate(nest):
        behind: ir.Index = 1
        for length in lengths[k + 1 :]:
            behind = ir.mul(behind, length)
        index = ir.floor_div(rest, behind)
        yield f"{one.name} = {expression(ir.add(ir.mod(index, lengths[k]) if k else index, one.start))}"


def _rank(view: ir.Alias, rank: int) -> int:
    """The rank of a view of an array."""
    if view.is_in_shape:
        return len(view.args)
    return rank - sum(":" not in part for part in view.text.text.partition("]")[0].split(","))


def _place(place: OperandPlace) -> str:
    """The text of an operand of a product."""
    start = ", ".join(_on_host(expression(one)) for one in place.start)
    return f"({place.array}, ({start}{',' * (len(place.start) == 1)}))"


def _read_in_passes(nest: Sequence[ir.For]) -> set[str]:
    """The names that the passes of a nest read; of several loops also those of the bounds that split a count into indices."""
    lengths = [bound for one in nest[1:] for bound in (one.start, one.stop)] + [nest[0].start] * (len(nest) > 1)
    return mentioned(nest[-1].body) | {name for bound in lengths for name, _ in ir.names_in(bound)}


def _types(fail: ir.Fail) -> str:
    """The types of the numbers that an error tells."""
    names = ["float" if isinstance(one, ir.Expr) and one.dtype.startswith("float") else "int" for one in fail.numbers]
    return f"({', '.join(names)}{',' * (len(names) == 1)})"


def _dtype(value: ir.Index) -> str:
    return "int64" if isinstance(value, int) else value.dtype


def _numpy(dtype: str) -> str:
    return f"np.{'bool_' if dtype == 'bool' else dtype}"


def _reads_elements(stmt: ir.Stmt) -> bool:
    return any(isinstance(part, ir.Load) for expr in ir.expressions(stmt) for part in ir.parts(expr))


def _reads(stmt: ir.Stmt) -> set[str]:
    """The names that a statement and those inside it read."""
    names = {name for one in ir.walk([stmt]) for name in _read_by(one)}
    return names | {name for one in ir.walk([stmt]) if isinstance(one, ir.Return) for name in one.names}


def _read_by(stmt: ir.Stmt) -> set[str]:
    """The names that a statement reads by itself; a call, all that it is given."""
    return {name for expr in ir.expressions(stmt) for name, _ in ir.names_in(expr)} | (
        mentioned([stmt]) if isinstance(stmt, ir.Call) else set()
    )


def _makes(stmt: ir.Stmt) -> set[str]:
    """The names that a statement and those inside it define."""
    return {one.name for one in ir.walk([stmt]) if isinstance(one, ir.Let | ir.Alloc | ir.Alias)}


def _defined(stmts: Iterable[ir.Stmt]) -> set[str]:
    """The scalars that statements assign."""
    return {stmt.name for stmt in ir.walk(stmts) if isinstance(stmt, ir.Let)}


def _needed(stmts: Sequence[ir.Stmt]) -> set[str]:
    """The names that statements read before they assign them."""
    return _needed_and_made(stmts)[0]


def _needed_and_made(stmts: Sequence[ir.Stmt]) -> tuple[set[str], set[str]]:
    """The same, and the names that they assign on every path."""
    needed: set[str] = set()
    made: set[str] = set()
    for stmt in stmts:
        own = _read_by(stmt)
        needed |= (own | set(stmt.names if isinstance(stmt, ir.Return) else ())) - made
        if isinstance(stmt, ir.For):
            needed |= _needed(stmt.body) - made - {stmt.name}
        elif isinstance(stmt, ir.If):
            then, otherwise = _needed_and_made(stmt.then), _needed_and_made(stmt.otherwise)
            needed |= (then[0] | otherwise[0]) - made
            made |= then[1] & otherwise[1]
        elif isinstance(stmt, ir.Let):
            made.add(stmt.name)
    return needed, made


def _leaves(stmt: ir.Stmt) -> bool:
    """True if a statement may end a loop, or the function."""
    return any(isinstance(one, ir.Break | ir.Return) for one in ir.walk([stmt]))


def _is_scalar_work(stmt: ir.Stmt) -> bool:
    """True if a kernel may run a statement as well as the host."""
    return not _leaves(stmt) and not any(isinstance(one, ir.Alloc | ir.Alias) for one in ir.walk([stmt]))


def _rounded(expr: ir.Index) -> ir.Index:
    """The expression with calls of a function that rounds for products that must be rounded by themselves."""

    def call(part: ir.Expr) -> ir.Index | None:
        if not isinstance(part, ir.Apply) or not part.template.rounds or not part.dtype.startswith("float"):
            return None
        name = f"rounded_product{'_single' * (part.dtype == 'float32')}"
        return ir.Apply(part.dtype, ir.Template(f"math.{name}({{0}}, {{1}})"), tuple(map(_rounded, part.args)))

    return ir.mapped(expr, call)


def _on_device(text: str) -> str:
    """The text with functions of numbers taken from a `math` that GPUs have."""
    return FUNCTIONS_OF_MATH.sub(lambda match: match[0] if match[1] in CASTS else f"math.{match[1]}(", text)


def _on_host(text: str) -> str:
    """The text with functions that the host has."""
    text = _CALLED.sub(lambda match: f"host.{match[0]}" if match[1] in OF_CARDS else match[0], text)
    return FUNCTIONS_OF_MATH.sub(lambda match: match[0] if match[1] in CASTS else f"host.gpu_math.{match[1]}(", text)


def _unfit(function: str, routine: str) -> str:
    """Why kernels cannot call a function of `ns.external`; "" if they can."""
    from ..runtime.routines import externals  # imports Numba

    reason = externals.known(routine.removeprefix(EXTERNALS)).unfit_for_gpu
    return reason and f"{function}, a function of ns.external, {reason}"


def _imports(body: str, kernels: str) -> list[str]:
    """The lines that import what the text uses."""
    own = [name for name in OF_HOST if re.search(rf"(?<![\w.]){name}\b", body)]
    functions = sorted(set(_CALLED.findall(kernels)) & OF_CARDS)
    functions += ["gpu_math as math"] if re.search(r"(?<![\w.])math\.", kernels) else []
    lines = ["import numpy as np", ""]
    products = [name for name in OF_CUBLAS if re.search(rf"(?<![\w.]){name}\b", body)]
    lines += [f"from numbascan.emit.runtime.cublas import {', '.join(products)}"] if products else []
    lines += [f"from numbascan.emit.runtime.cuda import {', '.join(own)}"] if own else []
    external = sorted(name for name in set(_CALLED.findall(kernels)) if function_of(EXTERNALS + name))
    lines += [f"from numbascan.emit.runtime.cuda_externals import {', '.join(external)}"] if external else []
    return [*lines, f"from numbascan.emit.runtime.cuda_functions import {', '.join(functions)}"] if functions else lines
