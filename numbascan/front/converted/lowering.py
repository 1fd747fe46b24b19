"""Lowers a function's syntax tree: choices, loops and calls go through functions that ask whether a value is traced.

    if c: A                              def then(): nonlocal y; A
    else: B               becomes        def other(): nonlocal y; B
                                         _ns_.choose(c, then, other, ("y",))

Branches and bodies are functions within the function, so the variables that they share are cells. Whoever runs them can read a cell, bind
it to a traced value, and unbind it again. `return`, `break` and `continue` become flags (`_ns_returned`, `_ns_broke_1`, `_ns_skipped_1`);
what follows a statement that may set one stands under a choice of its own. Every new node has the place of the user's code that it stands
for, so that tracebacks and debuggers show that.

Not handled, and left as it is:

- choices and loops in a `try` with handlers: Python runs them;
- class bodies, but for their methods;
- `match` on anything but numbers;
- boolean operators, `a if c else b`, chained comparisons, comprehensions and text that hold a walrus.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import TypeVar

RUNTIME = "_ns_"  # ir.node.HIDDEN: the variable through which converted code reaches the functions that it calls
Names = tuple[str, ...]
Syntax = TypeVar("Syntax", bound=ast.AST)
Function = ast.FunctionDef | ast.Lambda
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
PART, PASS, ITEM = "_ns_part_", "_ns_pass_", "_ns_item_"  # prefixes of names: of branches, of bodies, of hidden values
ITEMS, EACH = "_ns_items", "_ns_each"  # in comprehensions: what they run over, and what takes their elements
SEEN = "_ns_seen"  # in text: tells which values stand there
_UNTOUCHED = frozenset({"super", "locals", "globals", "vars", "eval", "exec", "dir"})  # they look at the frame that calls them


class NotConvertible(Exception):
    """Why a function stays as it is."""


def lowered(function: Function) -> Function:
    """The function with its choices, loops and calls lowered, and those of the functions within it. NotConvertible for generators."""
    if isinstance(function, ast.Lambda):
        return ast.copy_location(ast.Lambda(function.args, _Expressions(None, _parameters(function.args)).visit(function.body)), function)
    if _is_generator(function):
        raise NotConvertible("it is a generator")
    return _Lowering(function).function()


# what a piece of code does with names ---------------------------------------------------------------------------------


def _own_nodes(node: ast.AST) -> list[ast.AST]:
    """The nodes below `node`, not those in functions and classes within it."""
    found, stack = [], list(ast.iter_child_nodes(node))
    while stack:
        child = stack.pop()
        found.append(child)
        if not isinstance(child, _SCOPES):
            stack.extend(ast.iter_child_nodes(child))
    return found


def assigned(statements: Sequence[ast.AST]) -> Names:
    """The names that statements bind, also in the branches and bodies among them, in the order in which they are met."""
    names: dict[str, None] = {}
    for statement in statements:
        _bind(statement, names, False)
    return tuple(name for name in names if not name.startswith(ITEM))


class _Part(ast.FunctionDef):
    """A branch or a body that was lowered. bound: the names that it binds."""

    bound: Names


def _bind(node: ast.AST, names: dict[str, None], in_comprehension: bool) -> None:
    if isinstance(node, _Part):
        names.update(dict.fromkeys(node.bound))
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del) and not in_comprehension:
        names[node.id] = None
    elif isinstance(node, ast.NamedExpr) and isinstance(node.target, ast.Name):
        names[node.target.id] = None
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        names[node.name] = None
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        names.update(dict.fromkeys((one.asname or one.name).split(".")[0] for one in node.names))
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        names[node.name] = None
    elif isinstance(node, ast.MatchMapping) and node.rest:
        names[node.rest] = None
    if isinstance(node, _SCOPES):
        return
    for child in ast.iter_child_nodes(node):
        _bind(child, names, in_comprehension or isinstance(node, _COMPREHENSIONS))


def _jumps(statements: Sequence[ast.AST], kinds: tuple[type, ...]) -> bool:
    """Whether one of these jumps leaves the statements: `break` and `continue` of loops within them do not."""
    for statement in statements:
        if isinstance(statement, kinds):
            return True
        if isinstance(statement, _SCOPES):
            continue
        inner = kinds
        if isinstance(statement, (ast.For, ast.While)):
            if _jumps(statement.orelse, kinds):
                return True
            inner = tuple(kind for kind in kinds if kind is ast.Return)
            if inner and _jumps(statement.body, inner):
                return True
            continue
        if _jumps([child for child in ast.iter_child_nodes(statement) if isinstance(child, _CONTAINERS)], inner):
            return True
    return False


_CONTAINERS = (ast.stmt, ast.ExceptHandler, ast.match_case)


def _leaves(statements: Sequence[ast.stmt]) -> bool:
    """Whether every way through the statements ends in a jump or an error."""
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, ast.If):
        return _leaves(last.body) and _leaves(last.orelse)
    if isinstance(last, ast.While):  # `while True` without `break` ends in a `return` or an error
        return isinstance(last.test, ast.Constant) and bool(last.test.value) and not _jumps(last.body, (ast.Break,))
    return isinstance(last, (ast.Return, ast.Break, ast.Continue, ast.Raise))


_ALL = (ast.Return, ast.Break, ast.Continue)


def _reached(statements: Sequence[Syntax]) -> list[Syntax]:
    """Statements without those behind a jump. A loop asks the flags of all jumps in it, and only a jump that is written sets its flag."""
    kept: list[Syntax] = []
    for statement in statements:
        one = statement
        if not isinstance(statement, _SCOPES):
            one = copy(statement)
            for name in ("body", "orelse", "handlers", "cases", "finalbody"):
                if isinstance(part := getattr(statement, name, None), list):
                    setattr(one, name, _reached(part))
        kept.append(one)
        if isinstance(statement, ast.stmt) and _leaves([statement]):
            break
    return kept


class _Failure(ast.Raise):
    """What an `assert` raises. msg: its message."""

    _fields = ("exc", "cause", "msg")
    msg: ast.expr | None


def _as_choice(node: ast.Assert) -> ast.If:
    """`assert test, msg` as an `if` whose branch raises."""
    fields: list[ast.expr | None] = [None, None, node.msg]  # all of them: Python 3.13 warns of one that is missing
    failure = _at(_Failure(*fields), node)
    return _at(ast.If(_at(ast.UnaryOp(ast.Not(), node.test), node), [failure], []), node)


def _splits(statements: Sequence[ast.stmt]) -> bool:
    """Whether statements follow an `assert`, or an `if` that may raise: they become the other branch."""
    return any(isinstance(one, ast.Assert) or (isinstance(one, ast.If) and _jumps([one], (ast.Raise,))) for one in statements[:-1])


# statements -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Loop:
    """The flags of a loop that is being lowered: set by `break`, set by `continue`; whether passes break, and whether they return."""

    broke: str
    skipped: str
    breaks: bool
    returns: bool

    @property
    def exits(self) -> Names:
        """The flags that end the loop."""
        return (*([self.broke] if self.breaks else []), *(["_ns_returned"] if self.returns else []))

    def start(self, node: ast.AST) -> list[ast.stmt]:
        """What stands before the loop."""
        return [_assign(self.broke, ast.Constant(False), node)] if self.breaks else []

    def run(self, body: ast.FunctionDef) -> tuple[ast.expr, ast.expr, ast.expr]:
        """The pass, the names that it may bind, and the flags that end the loop."""
        return _load(body.name), _names(assigned([body])), _names(self.exits)


@dataclass(slots=True)
class _Lowering:
    """Lowers one function."""

    node: ast.FunctionDef
    loops: list[_Loop] = field(default_factory=list)
    n_loops: int = 0
    n_parts: int = 0
    is_tried: bool = False  # within a `try` with handlers
    made: dict[str, None] = field(default_factory=dict)  # names of our own that branches share
    declared: dict[str, str] = field(default_factory=dict)  # "global" or "nonlocal", as the user wrote
    expressions: _Expressions = field(init=False)

    def function(self) -> ast.FunctionDef:
        """The function itself."""
        node = self.node
        first = (node.args.posonlyargs + node.args.args)[:1]
        self.expressions = _Expressions(first[0].arg if first else None, {*assigned(node.body), *_parameters(node.args)})
        for one in _own_nodes(node):
            if isinstance(one, ast.Global | ast.Nonlocal):
                self.declared.update(dict.fromkeys(one.names, "global" if isinstance(one, ast.Global) else "nonlocal"))
        body = _reached(node.body)
        is_simple = not any(_jumps([one], (ast.Return,)) for one in body if not isinstance(one, ast.Return)) and not _splits(body)
        start = [one for one in body[:1] if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)]  # the docstring
        if is_simple:
            lines = self.block(body[len(start) :], returns=True)
        else:
            self.made["_ns_returned"] = self.made["_ns_result"] = None
            last = [] if _leaves(body) else [_at(ast.Return(None), body[-1])]
            lines = [
                _assign("_ns_returned", ast.Constant(False), node),
                _assign("_ns_result", ast.Attribute(_load(RUNTIME), "unset", ast.Load()), node),
            ]
            lines += self.block([*body[len(start) :], *last])
            lines.append(_at(ast.Return(_call("handed", _load("_ns_result"))), body[-1]))
        result = ast.FunctionDef(
            name=node.name,
            args=self.expressions.visit(node.args),
            body=[*start, *self._declarations(node.body, lines), *lines] or [ast.Pass()],
            decorator_list=[self.expressions.visit(one) for one in node.decorator_list],
            returns=node.returns,
            type_comment=None,
        )
        vars(result)["type_params"] = getattr(node, "type_params", [])
        return ast.copy_location(result, node)

    def _declarations(self, body: Sequence[ast.stmt], lowered: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The first lines: `global` and `nonlocal`, then what makes names this function's own: those that branches share, and those that
        the user's `body` binds behind a jump alone, since `lowered` has none of it.

        That is an assignment that never runs.
        """
        lines: list[ast.stmt] = []
        for kind, cls in (("global", ast.Global), ("nonlocal", ast.Nonlocal)):
            names = [name for name, declared in self.declared.items() if declared == kind]
            lines += [cls(names)] if names else []
        if self.declared:  # what becomes of other functions' variables is noted where this one is called
            lines.append(ast.Expr(_call("rebinds", *[_lambda(_load(name)) for name in self.declared])))
        bound = () if self.n_parts else assigned(lowered)
        names = [name for name in (*assigned(body), *self.made) if name not in (*self.declared, *bound)]
        if names:
            targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in dict.fromkeys(names)]
            lines.append(ast.If(ast.Constant(False), [ast.Assign(targets, ast.Constant(None))], []))
        return [_at(line, self.node) for line in lines]

    # blocks -----------------------------------------------------------------------------------------------------------

    def block(self, statements: Sequence[ast.stmt], returns: bool = False) -> list[ast.stmt]:
        """Lowered statements. `returns`: a `return` among them stays one."""
        lines: list[ast.stmt] = []
        for k, statement in enumerate(statements):
            rest = list(statements[k + 1 :])
            if isinstance(statement, ast.Global | ast.Nonlocal):
                continue
            if isinstance(statement, _ALL):
                return lines + self._jump(statement, returns)
            if isinstance(statement, ast.Assert):
                statement = _as_choice(statement)
            if isinstance(statement, ast.If) and rest and _jumps([statement], (*_ALL, ast.Raise)):
                if _leaves(statement.body):  # `if c: return a` and more: the rest is the other branch
                    return lines + self._choice(statement, statement.body, [*statement.orelse, *rest])
                if _leaves(statement.orelse):
                    return lines + self._choice(statement, [*statement.body, *rest], statement.orelse)
            lines += self._statement(statement)
            if rest and _jumps([statement], _ALL):
                return lines + self._guarded(statement, rest)
        return lines

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.If):
            return self._choice(node, node.body, node.orelse)
        if isinstance(node, ast.For):
            return self._for(node)
        if isinstance(node, ast.While):
            return self._while(node)
        if isinstance(node, ast.With):
            items = [ast.withitem(_call("context", self._value(one.context_expr)), one.optional_vars) for one in node.items]
            return [_at(ast.With(items, self.block(node.body) or [ast.Pass()]), node)]
        if isinstance(node, ast.Try):
            return self._try(node)
        if isinstance(node, ast.Match):
            return self._match(node)
        if isinstance(node, ast.FunctionDef):
            return [_Lowering(node).function() if not _is_generator(node) else node]
        if isinstance(node, ast.ClassDef):
            return [_Methods().visit(node)]
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            return self._assignment(node)
        if isinstance(node, ast.Delete):
            return [self._deletion(one, node) for one in node.targets]
        if isinstance(node, _Failure):
            message = ast.Tuple([self._value(node.msg)] if node.msg is not None else [], ast.Load())
            return [_at(ast.Raise(_call("failed", message), None), node)]
        if isinstance(node, ast.Raise) and node.exc is not None:
            cause = [self._value(node.cause)] if node.cause is not None else []
            return [_at(ast.Raise(_call("raised", self._value(node.exc), *cause), cause[0] if cause else None), node)]
        return [self.expressions.visit(node)]

    def _deletion(self, target: ast.expr, node: ast.AST) -> ast.stmt:
        if isinstance(target, ast.Subscript):
            return _at(ast.Expr(_call("del_item", self._value(target.value), self._value(_index(target.slice)))), node)
        if isinstance(target, ast.Attribute):
            return _at(ast.Expr(_call("del_attribute", self._value(target.value), ast.Constant(target.attr))), node)
        return _at(ast.Delete([target]), node)

    def _value(self, node: ast.expr) -> ast.expr:
        lowered: ast.expr = self.expressions.visit(node)
        return lowered

    # jumps ------------------------------------------------------------------------------------------------------------

    def _jump(self, node: ast.stmt, returns: bool) -> list[ast.stmt]:
        if isinstance(node, ast.Return):
            value = self._value(node.value) if node.value is not None else ast.Constant(None)
            if returns:
                return [_at(ast.Return(value), node)]
            return [_assign("_ns_result", _call("kept", value), node), _assign("_ns_returned", ast.Constant(True), node)]
        loop = self.loops[-1]
        return [_assign(loop.broke if isinstance(node, ast.Break) else loop.skipped, ast.Constant(True), node)]

    def _flags(self, statement: ast.stmt) -> list[ast.expr]:
        """The flags that a statement may set."""
        flags = ["_ns_returned"] if _jumps([statement], (ast.Return,)) else []
        if self.loops:
            flags += [self.loops[-1].broke] if _jumps([statement], (ast.Break,)) else []
            flags += [self.loops[-1].skipped] if _jumps([statement], (ast.Continue,)) else []
        return [_load(flag) for flag in flags]

    def _guarded(self, statement: ast.stmt, rest: list[ast.stmt]) -> list[ast.stmt]:
        """The rest of a block, under a choice: the statement before may have left the block."""
        condition = _at(_call("either", *self._flags(statement)), statement)
        return self._choice_of(condition, [], rest, statement)

    # choices ----------------------------------------------------------------------------------------------------------

    def _choice(self, node: ast.If, then: Sequence[ast.stmt], other: Sequence[ast.stmt]) -> list[ast.stmt]:
        return self._choice_of(self._value(node.test), then, other, node)

    def _choice_of(self, test: ast.expr, then: Sequence[ast.stmt], other: Sequence[ast.stmt], node: ast.stmt) -> list[ast.stmt]:
        if self.is_tried:
            condition = _at(_call("plain", test), node)
            return [_at(ast.If(condition, self.block(then) or [ast.Pass()], self.block(other)), node)]
        sides = [self._part(side, node) for side in (then, other)]
        names = assigned([side for side in sides if side is not None])
        call = _call("choose", test, *[ast.Constant(None) if side is None else _load(side.name) for side in sides], _names(names))
        return [*[side for side in sides if side is not None], _at(ast.Expr(call), node)]

    def _part(self, statements: Sequence[ast.stmt], node: ast.AST) -> ast.FunctionDef | None:
        """Statements as a function that shares this one's names; None if there are none."""
        lines = self.block(statements)
        return self._function(PART, [], lines, statements[0]) if lines else None

    def _function(self, kind: str, parameters: list[str], lines: list[ast.stmt], at: ast.AST) -> ast.FunctionDef:
        self.n_parts += 1
        outer = assigned(lines)
        head: list[ast.stmt] = []
        for kind_, cls in (("global", ast.Global), ("nonlocal", ast.Nonlocal)):
            names = [name for name in outer if (self.declared.get(name, "nonlocal") == kind_)]
            head += [_at(cls(names), at)] if names else []
        node = _Part(f"{kind}{self.n_parts}_", _arguments(parameters), [*head, *lines], [], None, None)
        node.bound = outer
        vars(node)["type_params"] = []  # which Python 3.12 asks for
        return _at(node, at)

    # loops ------------------------------------------------------------------------------------------------------------

    def _for(self, node: ast.For) -> list[ast.stmt]:
        item = f"{ITEM}{self.n_loops + 1}_"
        source = self._value(node.iter)
        target = self._assignment(_at(ast.Assign([node.target], _load(item)), node.target))
        loop, body = self._body(node, [item], target)
        if self.is_tried:
            lines = self._plain_loop(ast.For(ast.Name(item, ast.Store()), _call("rows", source), [], []), body, loop, node)
        else:
            lines = [body, _at(ast.Expr(_call("for_each", source, *loop.run(body))), node)]
        return [*loop.start(node), *_unset(node), *lines, *self._loop_else(node, loop)]

    def _while(self, node: ast.While) -> list[ast.stmt]:
        if isinstance(node.test, ast.NamedExpr) or _has_walrus(node.test):
            return self._while_bound(node)
        test = self._value(node.test)
        loop, body = self._body(node, [], [])
        if self.is_tried:
            lines = self._plain_loop(ast.While(_call("plain", test), [], []), body, loop, node)
        else:
            lines = [body, _at(ast.Expr(_call("repeat", _lambda(test), *loop.run(body))), node)]
        return [*loop.start(node), *_unset(node), *lines, *self._loop_else(node, loop)]

    def _while_bound(self, node: ast.While) -> list[ast.stmt]:
        """A `while` whose test binds names: its parts are asked one after the other at the beginning of each pass."""
        if node.orelse and _jumps(node.body, (ast.Break, ast.Return)):
            raise NotConvertible("a walrus stands in the test of a while loop that has `else`, and a `break` or `return`")
        test = node.test
        tests = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
        ends = [_at(ast.If(_at(ast.UnaryOp(ast.Not(), one), one), [_at(ast.Break(), one)], []), one) for one in tests]
        loop = _at(ast.While(_at(ast.Constant(True), node.test), [*ends, *node.body], []), node)
        return [*self._while(loop), *self.block(node.orelse)]

    def _body(self, node: ast.For | ast.While, parameters: list[str], start: list[ast.stmt]) -> tuple[_Loop, ast.FunctionDef]:
        """The flags of a loop, and the function of one pass."""
        self.n_loops += 1
        breaks, skips, returns = (_jumps(node.body, (kind,)) for kind in (ast.Break, ast.Continue, ast.Return))
        loop = _Loop(f"_ns_broke_{self.n_loops}", f"_ns_skipped_{self.n_loops}", breaks, returns)
        self.loops.append(loop)
        lines = [*start, *([_assign(loop.skipped, ast.Constant(False), node)] if skips else []), *self.block(node.body)]
        self.loops.pop()
        self.made.update(dict.fromkeys([loop.broke] * breaks + [loop.skipped] * skips))
        return loop, self._function(PASS, parameters, lines, node.body[0])

    def _plain_loop(self, plain: ast.For | ast.While, body: ast.FunctionDef, loop: _Loop, node: ast.stmt) -> list[ast.stmt]:
        """A loop that Python itself runs, as it stands within a `try`."""
        plain.body = [one for one in body.body if not isinstance(one, ast.Global | ast.Nonlocal)]
        if loop.exits:
            plain.body.append(_at(ast.If(_call("plain", _call("either", *map(_load, loop.exits))), [ast.Break()], []), node))
        return [_at(plain, node)]

    def _loop_else(self, node: ast.For | ast.While, loop: _Loop) -> list[ast.stmt]:
        """What runs where a loop was not left by `break`."""
        if not node.orelse or not loop.exits:
            return self.block(node.orelse)
        return self._choice_of(_at(_call("either", *map(_load, loop.exits)), node), [], node.orelse, node)

    # the rest ---------------------------------------------------------------------------------------------------------

    def _try(self, node: ast.Try) -> list[ast.stmt]:
        before, self.is_tried = self.is_tried, self.is_tried or bool(node.handlers)
        if any(_catches_arithmetic(handler.type) for handler in node.handlers):
            node.body = [statement for one in node.body for statement in _MayFail().lines(one)]
        body = self.block(node.body)
        orelse = self.block(node.orelse)
        if node.orelse and _jumps(node.body, _ALL):
            flags = [flag for one in node.body for flag in self._flags(one)]
            orelse = [_at(ast.If(_call("plain", _call("either", *flags)), [ast.Pass()], orelse), node)]
        handlers = [_at(ast.ExceptHandler(one.type, one.name, self._caught(one)), one) for one in node.handlers]
        final = self.block(node.finalbody)
        self.is_tried = before
        return [_at(ast.Try(body or [ast.Pass()], handlers, orelse, final), node)]

    def _caught(self, handler: ast.ExceptHandler) -> list[ast.stmt]:
        """The body of an `except`. It first raises refusals again, which are not errors of the program."""
        return [_at(ast.Expr(_call("caught")), handler), *self.block(handler.body)]

    def _match(self, node: ast.Match) -> list[ast.stmt]:
        """`match` on numbers is a chain of choices; any other asks Python."""
        if self.is_tried or not all(_is_of_numbers(case.pattern) for case in node.cases):
            cases = [
                ast.match_case(one.pattern, self._value(one.guard) if one.guard else None, self.block(one.body) or [ast.Pass()])
                for one in node.cases
            ]
            asks_class = any(isinstance(one, ast.MatchClass) for case in node.cases for one in ast.walk(case.pattern))
            return [_at(ast.Match(_call("of_class" if asks_class else "subject", self._value(node.subject)), cases), node)]
        self.n_parts += 1
        subject = f"_ns_subject_{self.n_parts}"
        self.made[subject] = None
        chain: list[ast.stmt] = []
        for case in reversed(node.cases):
            chain = self._case(case, subject, chain)
        first = _at(ast.Assign([ast.Name(subject, ast.Store())], self._value(node.subject)), node)
        return [first, *self.block(chain)]

    def _case(self, case: ast.match_case, subject: str, rest: list[ast.stmt]) -> list[ast.stmt]:
        """One case as an `if`, in the user's own syntax; it is lowered with all else."""
        pattern = case.pattern
        captured = pattern.name if isinstance(pattern, ast.MatchAs) else None
        inner = pattern.pattern if isinstance(pattern, ast.MatchAs) else pattern
        tests = [_test(inner, subject)] if inner is not None else []
        bound: list[ast.stmt] = [ast.Assign([ast.Name(captured, ast.Store())], _load(subject))] if captured else []
        body = case.body
        if bound and tests and case.guard is None:  # bound where the case is taken
            bound, body = [], [*(_at(one, pattern) for one in bound), *body]
        elif bound and tests:
            bound = [ast.If(tests[0], bound, [])]
        tests += [case.guard] if case.guard is not None else []
        test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests) if tests else ast.Constant(True)
        return [_at(one, pattern) for one in (*bound, ast.If(test, body, rest))]

    def _assignment(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> list[ast.stmt]:
        """Lowers an assignment. Elements and attributes are written by functions that note what a branch changes."""
        if isinstance(node, ast.AugAssign):
            return [self._update(node)]
        if isinstance(node, ast.AnnAssign):
            if node.value is None:
                return [_at(ast.Pass(), node)]
            return self._assignment(_at(ast.Assign([node.target], node.value), node))  # Python computes no annotation of a local
        value = self._value(node.value)
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript | ast.Attribute):
            return [_at(ast.Expr(self._stored(node.targets[0], value)), node)]
        if not any(isinstance(one, ast.Subscript | ast.Attribute) for target in node.targets for one in ast.walk(target)):
            return [_at(ast.Assign(node.targets, value), node)]
        self.n_parts += 1
        item = f"{ITEM}{self.n_parts}_v"
        lines: list[ast.stmt] = [_at(ast.Assign([ast.Name(item, ast.Store())], value), node)]
        for target in node.targets:
            lines += self._unpacked(target, _load(item), node)
        return lines

    def _unpacked(self, target: ast.expr, value: ast.expr, node: ast.AST) -> list[ast.stmt]:
        if isinstance(target, ast.Subscript | ast.Attribute):
            return [_at(ast.Expr(self._stored(target, value)), node)]
        if not isinstance(target, ast.Tuple | ast.List):
            return [_at(ast.Assign([target], value), node)]
        self.n_parts += 1
        items = [f"{ITEM}{self.n_parts}_{k}" for k in range(len(target.elts))]
        parts: list[ast.expr] = [
            ast.Starred(ast.Name(item, ast.Store()), ast.Store()) if isinstance(one, ast.Starred) else ast.Name(item, ast.Store())
            for item, one in zip(items, target.elts, strict=True)
        ]
        lines: list[ast.stmt] = [_at(ast.Assign([ast.Tuple(parts, ast.Store())], value), node)]
        for item, one in zip(items, target.elts, strict=True):
            lines += self._unpacked(one.value if isinstance(one, ast.Starred) else one, _load(item), node)
        return lines

    def _stored(self, target: ast.Subscript | ast.Attribute, value: ast.expr) -> ast.expr:
        holder = self._value(target.value)
        if isinstance(target, ast.Subscript):
            return _call("set_item", value, holder, self._value(_index(target.slice)))
        return _call("set_attribute", value, holder, ast.Constant(target.attr))

    def _update(self, node: ast.AugAssign) -> ast.stmt:
        operator = ast.Constant(type(node.op).__name__)
        value, target = _deferred(self._value(node.value)), node.target
        if isinstance(target, ast.Name):
            return _at(ast.Assign([target], _call("update", _load(target.id), operator, value)), node)
        holder = self._value(target.value)
        if isinstance(target, ast.Subscript):
            return _at(ast.Expr(_call("update_item", holder, self._value(_index(target.slice)), operator, value)), node)
        return _at(ast.Expr(_call("update_attribute", holder, ast.Constant(target.attr), operator, value)), node)


# expressions ----------------------------------------------------------------------------------------------------------


class _Expressions(ast.NodeTransformer):
    """Lowers expressions.

    first: the function's first parameter, which `super()` means. local: names of values that the function has made or was given.
    """

    def __init__(self, first: str | None = None, local: Collection[str] = ()) -> None:
        self.first, self.local = first, set(local)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        if _has_walrus(node):
            return self.generic_visit(node)
        name = "both" if isinstance(node.op, ast.And) else "one_of"
        result: ast.expr = self.visit(node.values[-1])
        for value in reversed(node.values[:-1]):
            result = _call(name, self.visit(value), _lambda(result))
        return _at(result, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.op, ast.Not):
            return _at(_call("negation", self.visit(node.operand)), node)
        return self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        if _has_walrus(node):
            return self.generic_visit(node)
        sides = _lambda(self.visit(node.body)), _lambda(self.visit(node.orelse))
        return _at(_call("value_of", self.visit(node.test), *sides), node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        operators = [type(one).__name__ for one in node.ops]
        if len(operators) == 1 and operators[0] not in ("In", "NotIn", "Is", "IsNot"):
            if any(isinstance(one, ast.Constant) for one in (node.left, *node.comparators)) or _has_walrus(node):
                return self.generic_visit(node)
            sides = [self.visit(one) for one in (node.left, *node.comparators)]
            return _at(_call("compare", ast.Constant(operators[0]), *sides), node)
        if len(operators) > 1 and _has_walrus(node):
            return self.generic_visit(node)
        values = [self.visit(value) for value in node.comparators]
        pairs = [ast.Tuple([ast.Constant(name), _lambda(value)], ast.Load()) for name, value in zip(operators, values, strict=True)]
        return _at(_call("compared", self.visit(node.left), *pairs), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == RUNTIME:
            return self.generic_visit(node)
        if isinstance(function, ast.Name) and function.id in _UNTOUCHED:
            if function.id == "super" and not node.args and not node.keywords and self.first is not None:
                return _at(ast.Call(function, [_load("__class__"), _load(self.first)], []), node)
            return self.generic_visit(node)
        if isinstance(function, ast.Name):
            reached: ast.expr = function
        elif isinstance(function, ast.Attribute):
            reached = _at(ast.Attribute(self.visit(function.value), function.attr, ast.Load()), function)
        else:
            reached = self.visit(function)
        args = [self.visit(one) for one in node.args]
        keywords = [ast.keyword(one.arg, self.visit(one.value)) for one in node.keywords]
        return _at(ast.Call(_at(_call("callee", reached), function), args, keywords), node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if not isinstance(node.ctx, ast.Load) or node.id in self.local or node.id.startswith(RUNTIME):
            return node
        return _at(_call("outside", node), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        return _at(_call("class_of", node.value) if node.attr == "__class__" else _call("outside", node), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if not isinstance(node.ctx, ast.Load) or isinstance(node.slice, ast.Constant):
            return self.generic_visit(node)
        return _at(_call("item", self.visit(node.value), self.visit(_index(node.slice))), node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """Text is told whether a value in it is traced: `f"{x}"` becomes `text(lambda seen: f"{seen(x)}")`."""
        if _has_walrus(node):
            return self.generic_visit(node)
        for one in node.values:
            if isinstance(one, ast.FormattedValue):
                one.value = ast.Call(_load(SEEN), [self.visit(one.value)], [])
                if isinstance(one.format_spec, ast.JoinedStr):
                    self.generic_visit(one.format_spec)
        return _at(_call("text", ast.Lambda(_arguments([SEEN]), node)), node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            several = isinstance(node.right, ast.Tuple) and not any(isinstance(one, ast.Starred) for one in node.right.elts)
            parts = [
                ast.Call(_load(SEEN), [one], [])
                for one in (node.right.elts if isinstance(node.right, ast.Tuple) and several else [node.right])
            ]
            values: ast.expr = ast.Tuple(list(parts), ast.Load()) if several else parts[0]
            if not _has_walrus(node):
                return _at(_call("percent", node.left, ast.Lambda(_arguments([SEEN]), values)), node)
        return node

    def visit_Set(self, node: ast.Set) -> ast.AST:
        self.generic_visit(node)
        return _at(ast.Set([one if isinstance(one, ast.Constant) else _key(one) for one in node.elts]), node)

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        self.generic_visit(node)
        keys = [one if one is None or isinstance(one, ast.Constant) else _key(one) for one in node.keys]
        return _at(ast.Dict(keys, node.values), node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        return ast.comprehension(node.target, _call("rows", node.iter), [_call("plain", one) for one in node.ifs], node.is_async)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        outer, self.local = self.local, {*self.local, *_parameters(node.args)}
        body = self.visit(node.body)
        self.local = outer
        return _at(ast.Lambda(node.args, body), node)

    def visit_SetComp(self, node: ast.SetComp) -> ast.AST:
        with self._with_targets(node):
            self.generic_visit(node)
        node.elt = _key(node.elt)
        return node

    def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
        with self._with_targets(node):
            self.generic_visit(node)
        node.key = _key(node.key)
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        return self._elements(node, "listed")

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        return self._elements(node, "made")

    def _elements(self, node: ast.ListComp | ast.GeneratorExp, name: str) -> ast.AST:
        """`[f(v) for v in x if c]` becomes `listed(x, lambda items, each: [each.when(c, lambda: each(f(v))) for v in items])`."""
        if not _is_simple(node):
            with self._with_targets(node):
                return self.generic_visit(node)
        first: ast.expr = self.visit(node.generators[0].iter)
        with self._with_targets(node):
            return _at(_call(name, first, self._made(node.generators, node.elt)), node)

    def _made(self, loops: Sequence[ast.comprehension], element: ast.expr) -> ast.Lambda:
        """The function that makes the elements, from items of the first of the loops."""
        loop, *others = loops
        if others:
            result: ast.expr = _method(EACH, "over", self.visit(others[0].iter), self._made(others, element))
        else:
            result = ast.Call(_load(EACH), [self.visit(element)], [])
        for condition in reversed(loop.ifs):
            result = _method(EACH, "when", self.visit(condition), _lambda(_at(result, element)))
        one = ast.comprehension(loop.target, _load(ITEMS), [], 0)
        return _at(ast.Lambda(_arguments([ITEMS, EACH]), _at(ast.ListComp(_at(result, element), [one]), element)), element)

    @contextmanager
    def _with_targets(self, node: ast.AST) -> Iterator[None]:
        """Makes the names that a comprehension's loops bind local, while it is lowered."""
        targets = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        outer, self.local = self.local, {*self.local, *targets}
        yield
        self.local = outer


def _is_simple(node: ast.ListComp | ast.GeneratorExp) -> bool:
    """Whether a comprehension can be made of functions: it binds names of its own, and nothing in it looks at the frame."""
    targets = [part for loop in node.generators for part in ast.walk(loop.target)]
    is_plain = not any(isinstance(part, ast.Subscript | ast.Attribute) for part in targets) and not any(
        one.is_async for one in node.generators
    )
    frames = (one for one in ast.walk(node) if isinstance(one, ast.Name) and one.id in _UNTOUCHED)
    return is_plain and not _has_walrus(node) and not any(frames)


def _unset(node: ast.For | ast.While) -> list[ast.stmt]:
    """Gives a name a place before a loop that binds it in each way: before every `break`, and in its `else`. The loop does not read it."""
    bound = [name for one in node.orelse for name in _targets(one)]
    read = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    read |= {one.target.id for one in ast.walk(node) if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name)}
    names = [name for name in dict.fromkeys(bound) if name not in read and name in assigned(node.body)]
    return [
        _assign(name, ast.Attribute(_load(RUNTIME), "unset", ast.Load()), node) for name in names if _binds_before_breaks(node.body, name)
    ]


def _binds_before_breaks(statements: Sequence[ast.stmt], name: str, is_bound: bool = False) -> bool:
    """Whether each `break` of the loop around the statements stands behind one that binds the name."""
    for one in statements:
        if isinstance(one, ast.Break) and not is_bound:
            return False
        is_loop = isinstance(one, ast.For | ast.While)
        blocks = [value for part, value in ast.iter_fields(one) if isinstance(value, list) and (part == "orelse" or not is_loop)]
        inner = [part for block in blocks for part in block if isinstance(part, ast.ExceptHandler | ast.match_case)]
        for block in (*blocks, *(part.body for part in inner)):
            if not _binds_before_breaks([part for part in block if isinstance(part, ast.stmt)], name, is_bound):
                return False
        is_bound = is_bound or name in _targets(one)
    return True


def _targets(node: ast.stmt) -> list[str]:
    """The names that an assignment binds; none of another statement."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) and node.value else []
    parts = [part for one in targets for part in (one.elts if isinstance(one, ast.Tuple | ast.List) else [one])]
    return [part.id for part in parts if isinstance(part, ast.Name)]


class _MayFail(ast.NodeTransformer):
    """Passes what fails for some numbers, but only in Python, through a function that refuses traced numbers."""

    def lines(self, node: ast.stmt) -> list[ast.stmt]:
        """The statements that stand for one."""
        found = self.visit(node)
        return found if isinstance(found, list) else [found]

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return _at(_call("may_fail", node), node) if isinstance(node.op, _DIVISIONS) else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST | list[ast.AST]:
        self.generic_visit(node)
        if not isinstance(node.op, _DIVISIONS) or not isinstance(node.target, ast.Name):
            return node
        return [node, _at(ast.Expr(_call("may_fail", _load(node.target.id))), node)]

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = node.func
        is_of_math = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "math"
        is_number = isinstance(function, ast.Name) and function.id in _FAILING
        return _at(_call("may_fail", node), node) if is_of_math or is_number else node

    def _whole(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _whole


_DIVISIONS = (ast.Div, ast.FloorDiv, ast.Mod)
_FAILING = frozenset(("divmod", "pow", *(name for name in vars(math) if not name.startswith("_"))))
_ARITHMETIC = ("ArithmeticError", "ZeroDivisionError", "OverflowError", "FloatingPointError", "ValueError", "Exception", "BaseException")


def _catches_arithmetic(kind: ast.expr | None) -> bool:
    """Whether an `except` catches what arithmetic of Python's numbers raises."""
    if isinstance(kind, ast.Tuple):
        return any(map(_catches_arithmetic, kind.elts))
    return kind is None or (isinstance(kind, ast.Name) and kind.id in _ARITHMETIC)


class _Methods(ast.NodeTransformer):
    """Lowers the methods of a class, and nothing else of it."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node if _is_generator(node) else _Lowering(node).function()


_ASKED = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.TryStar)


def _is_generator(node: ast.FunctionDef) -> bool:
    """Whether a function stays as it is: a generator, or one that handles groups of exceptions."""
    return any(isinstance(one, _ASKED) for one in _own_nodes(node))


def _key(value: ast.expr) -> ast.expr:
    """A key of a dict or an element of a set, passed through the function that refuses traced ones."""
    return ast.Starred(_call("keys", value.value), ast.Load()) if isinstance(value, ast.Starred) else _call("key", value)


def _has_walrus(node: ast.AST) -> bool:
    return any(isinstance(one, ast.NamedExpr) for one in _own_nodes(node))


def _deferred(value: ast.expr) -> ast.expr:
    """A function that computes a value when it is called, after the target was read. One with a walrus is computed before."""
    return _call("known", value) if _has_walrus(value) or isinstance(value, ast.NamedExpr) else _lambda(value)


# small pieces of syntax -----------------------------------------------------------------------------------------------


def _parameters(args: ast.arguments) -> list[str]:
    several = [one for one in (args.vararg, args.kwarg) if one is not None]
    return [one.arg for one in (*args.posonlyargs, *args.args, *args.kwonlyargs, *several)]


def _at(node: Syntax, place: ast.AST) -> Syntax:
    """`node` at the place of the user's code that it stands for; what is new in it gets the same place at the end."""
    return ast.copy_location(node, place)


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _assign(name: str, value: ast.expr, place: ast.AST) -> ast.stmt:
    return _at(ast.Assign([ast.Name(name, ast.Store())], value), place)


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(_load(RUNTIME), name, ast.Load()), list(args), [])


def _method(holder: str, name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(_load(holder), name, ast.Load()), list(args), [])


def _lambda(body: ast.expr) -> ast.Lambda:
    return ast.copy_location(ast.Lambda(_arguments([]), body), body)


def _names(names: Names) -> ast.expr:
    return ast.Tuple([ast.Constant(name) for name in names], ast.Load())


def _arguments(names: list[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def _index(node: ast.expr) -> ast.expr:
    """What stands between brackets as a value of its own: `1:, k` is a tuple of a slice and k."""
    if isinstance(node, ast.Slice):
        return _call("slice", *[one or ast.Constant(None) for one in (node.lower, node.upper, node.step)])
    if isinstance(node, ast.Tuple):
        return ast.Tuple([_index(one) for one in node.elts], ast.Load())
    return node


def _is_of_numbers(pattern: ast.pattern) -> bool:
    if isinstance(pattern, ast.MatchAs):
        return pattern.pattern is None or _is_of_numbers(pattern.pattern)
    return isinstance(pattern, ast.MatchValue) or (isinstance(pattern, ast.MatchOr) and all(map(_is_of_numbers, pattern.patterns)))


def _test(pattern: ast.pattern, subject: str) -> ast.expr:
    if isinstance(pattern, ast.MatchOr):
        return ast.BoolOp(ast.Or(), [_test(one, subject) for one in pattern.patterns])
    assert isinstance(pattern, ast.MatchValue)
    return ast.Compare(_load(subject), [ast.Eq()], [pattern.value])
