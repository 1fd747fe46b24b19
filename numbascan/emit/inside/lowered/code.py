"""LLVM's code of a generated function, written in one walk through its text. Importing this imports Numba.

A local lives in stack slots, which LLVM turns into registers: a number in one; an array in one for its address, one for its owner (the
reference count), one for its parent, and one for each dimension. The owners of arrays that are taken (allocated) are in one array, too, so
that one call gives all of them back.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from ..module_functions import called
from ..shortcuts import LOWERED as NUMBA
from . import text
from .apart import Apart
from .types import Types, is_array, plain

NUMBER, SHORT, BIT, NOTHING = ir.IntType(64), ir.IntType(32), ir.IntType(1), ir.VoidType()
POINTER = ir.IntType(8).as_pointer()
NOBODY = POINTER(None)
INCREF, DECREF = "NRT_incref", "NRT_decref"
MOST_POWER = 64  # exponent from which powers are calls of a function


@dataclass
class Array:
    """An array: the address of its first element, its dimensions, its owner, and its parent.

    owner: counts its references, null if nobody does. parent: the Python object of the array, null if there is none. memories: the arrays
    with memory of their own, or an argument's, whose memory it may have.
    """

    type: Any
    data: Any
    shape: list[Any]
    owner: Any
    memories: frozenset[str]
    parent: Any = NOBODY


class Code:
    """The code of one function, written where `builder` stands.

    An array that is taken is given back after the last statement of its block that mentions it or a view of it, and at the function's end
    at the latest. Views count no references: their array is an argument, or lives as long as they are mentioned. So an array that is taken
    again must not have older views (`_check_views`).
    """

    def __init__(self, context: Any, builder: Any, function: ast.FunctionDef, typed: Types, args: Sequence[Any]) -> None:
        self.context, self.builder, self.types = context, builder, typed
        self._slots: dict[str, list[Any]] = {}
        self._ends: list[Any] = []  # the blocks after the loops around, the innermost last
        self._assigned = text.assigned(function)
        self._mentions = text.names(*function.body)
        sources = text.sources(function, lambda name: is_array(typed.locals.get(name)))
        self._views = text.views(sources)
        self._memories = {name: text.memories(sources, name) for name in sources}
        self._apart: Apart | None = None  # of the innermost loop around
        self._loops = 0
        self._owned: dict[str, int] = {}  # by array that is taken: the index of its owner
        self._take(function)
        self._owners = self._slot(ir.ArrayType(POINTER, len(self._owned)), is_zero=True)
        self._result = None if typed.returned == types.none else self._slot(context.get_value_type(typed.returned))
        self._exit = builder.append_basic_block("exit")
        self._given: list[Array] = []  # arguments: Numba's function of one line has counted a reference to each
        for argument, value in zip(function.args.args, args, strict=True):
            type_ = typed.locals[argument.arg]
            if is_array(type_):
                self._given.append(value := self._unpacked(type_, value))
            self._store(argument.arg, value)
        self._block(function.body)
        if not builder.block.is_terminated:
            builder.branch(self._exit)
        builder.position_at_end(self._exit)
        self._release_all()

    def returned(self) -> Any:
        """The result of the function."""
        return self.context.get_dummy_value() if self._result is None else self.builder.load(self._result)

    # locals -----------------------------------------------------------------------------------------------------------

    def _slot(self, type_: Any, is_zero: bool = False) -> Any:
        with self.builder.goto_entry_block():
            slot = self.builder.alloca(type_)
            if is_zero:
                self.builder.store(type_(None), slot)
        return slot

    def _store(self, name: str, value: Any) -> None:
        parts = [value.data, value.owner, value.parent, *value.shape] if isinstance(value, Array) else [value]
        if name not in self._slots:
            self._slots[name] = [self._slot(part.type) for part in parts]
        for slot, part in zip(self._slots[name], parts, strict=True):
            self.builder.store(part, slot)

    def _load(self, name: str) -> Any:
        if name not in self._slots:
            raise text.Unknown(name)
        parts = [self.builder.load(slot) for slot in self._slots[name]]
        if not is_array(self.types.locals[name]):
            return parts[0]
        return Array(self.types.locals[name], parts[0], parts[3:], parts[1], self._memories[name], parts[2])

    def _unpacked(self, type_: Any, value: Any) -> Array:
        struct = NUMBA.make_array(type_)(self.context, self.builder, value)
        shape = NUMBA.unpack_tuple(self.builder, struct.shape, type_.ndim)
        return Array(type_, struct.data, shape, struct.meminfo, frozenset(), struct.parent)

    def _packed(self, value: Any) -> Any:
        """A value in Numba's form."""
        if not isinstance(value, Array):
            return value
        struct = NUMBA.make_array(value.type)(self.context, self.builder)
        is_c, strides = value.type.layout == "C", [self._itemsize(value.type)]
        for dim in value.shape[:0:-1] if is_c else value.shape[:-1]:
            strides.append(self.builder.mul(strides[-1], dim))
        NUMBA.populate_array(struct, value.data, value.shape, strides[::-1] if is_c else strides, strides[0], value.owner, value.parent)
        return struct._getvalue()

    def _itemsize(self, type_: Any) -> Any:
        return NUMBER(self.context.get_abi_sizeof(self.context.get_data_type(type_.dtype)))

    # memory -----------------------------------------------------------------------------------------------------------

    def _take(self, function: ast.FunctionDef) -> None:
        """Finds the arrays that the function takes. Raises Unknown for one without a name."""
        stmts = [one for one in ast.walk(function) if isinstance(one, ast.Assign | ast.Expr)]
        named = {stmt.value for stmt in stmts}
        if any(self._is_taken(one) and one not in named for one in ast.walk(function)):
            raise text.Unknown("an array without a name")
        taken = [stmt for stmt in stmts if isinstance(stmt, ast.Assign) and self._is_taken(stmt.value)]
        often = text.names(*(stmt.targets[0] for stmt in taken))
        for name in often:
            self._owned[name] = len(self._owned)
        self._once = {stmt for stmt in taken if stmt in function.body and often[text.named(stmt)] == 1}
        around, places = text.loops_around(function), text.places(function)
        for stmt in set(taken) - self._once:
            self._check_views(stmt, around[stmt], places)

    def _check_views(self, stmt: ast.Assign, loop: ast.AST, places: dict[ast.AST, int]) -> None:
        """Raises Unknown unless all mentions of the array's views come after the statement that takes it, in its loop: each view is made
        anew then, and none shows memory that was given back."""
        name = text.named(stmt)
        views = self._views[name] - {name}
        inside = [one for one in ast.walk(loop) if isinstance(one, ast.Name) and one.id in views and places[one] > places[stmt]]
        if len(inside) != sum(self._mentions[view] for view in views):
            raise text.Unknown(f"a view of {name}, which is taken again")

    def _is_taken(self, value: ast.AST) -> bool:
        """True if an expression is a new array, to be given back."""
        is_call = isinstance(value, ast.Call) and is_array(self.types.of.get(value))
        return is_call and not (isinstance(value.func, ast.Attribute) and value.func.attr == "reshape")  # type: ignore[attr-defined]

    def _last_mentions(self, stmts: Sequence[ast.stmt]) -> dict[int, list[str]]:
        """By statement of a block: the arrays taken in the block that are mentioned there for the last time."""
        taken = list(dict.fromkeys(name for stmt in stmts if (name := text.named(stmt)) in self._owned))
        mentions, inside = ([text.names(stmt) for stmt in stmts], text.names(*stmts)) if taken else ([], {})
        last: dict[int, list[str]] = {}
        for name in taken:
            views = self._views[name]
            if all(inside[view] == self._mentions[view] for view in views):  # else it lives until the end
                last.setdefault(max(k for k, names in enumerate(mentions) if names.keys() & views), []).append(name)
        return last

    def _owner(self, name: str) -> Any:
        return self.builder.gep(self._owners, [SHORT(0), SHORT(self._owned[name])])

    def _count(self, how: str, owner: Any, builder: Any = None) -> None:
        """One reference more, or less."""
        builder = builder or self.builder
        builder.call(NUMBA.get_or_insert_function(builder.module, ir.FunctionType(NOTHING, [POINTER]), how), [owner])

    def _release(self, name: str) -> None:
        owner = self._owner(name)
        self._count(DECREF, self.builder.load(owner))
        self.builder.store(NOBODY, owner)

    def _release_all(self) -> None:
        def write(inside: Any) -> None:
            owners, count = inside.function.args
            with NUMBA.for_range(inside, count) as loop:
                self._count(DECREF, inside.load(inside.gep(owners, [loop.index])), inside)
            inside.ret_void()

        if self._owned:
            first = self.builder.bitcast(self._owners, POINTER.as_pointer())
            called(self.builder, "numbascan_release", NOTHING, [first, NUMBER(len(self._owned))], write)

    # statements -------------------------------------------------------------------------------------------------------

    def _block(self, stmts: Sequence[ast.stmt]) -> None:
        last = self._last_mentions(stmts)
        for k, stmt in enumerate(stmts):
            getattr(self, f"_on_{type(stmt).__name__.lower()}")(stmt)
            if self.builder.block.is_terminated:
                return
            for name in last.get(k, ()):
                self._release(name)

    def _on_assign(self, stmt: Any) -> None:
        target, name = stmt.targets[0], text.named(stmt)
        if not name:
            array, place = self._place(target)
            self._put(array, self._cast(stmt.value, array.type.dtype), place)
        elif not is_array(self.types.locals[name]):
            self._store(name, self._cast(stmt.value, self.types.locals[name]))
        else:
            value = self._expr(stmt.value)
            if self._is_taken(stmt.value):
                if stmt not in self._once:
                    self._release(name)
                self.builder.store(value.owner, self._owner(name))
            self._store(name, value)

    def _on_augassign(self, stmt: Any) -> None:
        target, context, of = stmt.target, self.context, self.types.of
        value = self._expr(stmt.value), of[stmt.value]
        if isinstance(target, ast.Name):
            self._store(target.id, self._operation(stmt, [(self._load(target.id), of[target]), value]))
            return
        array, place = self._place(target)
        before = self._item(array, place), of[target]
        self._put(array, context.cast(self.builder, self._operation(stmt, [before, value]), of[stmt], array.type.dtype), place)

    def _item(self, array: Array, place: Any) -> Any:
        """An element."""
        before = len(self.builder.block.instructions)
        item = NUMBA.load_item(self.context, self.builder, array.type, place)
        self._tell(before, array)
        return item

    def _put(self, array: Array, value: Any, place: Any) -> None:
        """Writes an element."""
        before = len(self.builder.block.instructions)
        NUMBA.store_item(self.context, self.builder, array.type, value, place)
        self._tell(before, array)

    def _tell(self, before: int, array: Array) -> None:
        """Adds alias metadata to the instructions of the block from number `before` on."""
        if self._apart is not None and array.memories:
            self._apart.tell(self.builder.block.instructions[before:], array.memories)

    def _on_for(self, stmt: Any) -> None:
        builder, look = self.builder, text.rare_look(stmt)
        start, stop, step = (self._cast(bound, types.int64) for bound in text.bounds(stmt))
        counter = self._slot(NUMBER)
        builder.store(start, counter)
        again, strip, body, end = (builder.append_basic_block(f"{stmt.target.id}_{name}") for name in ("again", "strip", "body", "end"))
        is_endless = text.is_endless(stmt, self._assigned)
        if is_endless:
            builder.cbranch(self._is_before(start, stop, step), again, end)
        else:
            builder.branch(again)
        builder.position_at_end(again)
        now = builder.load(counter)
        if is_endless:
            builder.branch(strip)
        else:
            builder.cbranch(self._is_before(now, stop, step), strip, end)
        builder.position_at_end(strip)
        left = None if look is None else self._strip(None if is_endless else builder.sub(stop, now))
        builder.branch(body)
        builder.position_at_end(body)
        now = builder.load(counter)
        self._store(stmt.target.id, now)
        self._ends.append(end)
        around, self._apart = self._apart, self._apart_in(stmt)
        self._block(stmt.body if look is None else stmt.body[:-1])
        self._apart = around
        self._ends.pop()
        if not builder.block.is_terminated:
            builder.store(builder.add(now, step, flags=["nsw"]), counter)
            if look is not None:
                self._end_strip(left, body)
                self._block([look])
            builder.branch(again)
        builder.position_at_end(end)

    def _strip(self, passes: Any) -> Any:
        """A slot for the number of passes before the next look, of which `passes` are left: None if they never end.

        LLVM sees a loop whose passes are counted, and may unroll it: a look in each pass costs as much as a test of the loop itself.
        """
        left, longest = self._slot(NUMBER), NUMBER(text.STRIP)
        if passes is not None:
            longest = self.builder.select(self.builder.icmp_signed("<", passes, longest), passes, longest)
        self.builder.store(longest, left)
        return left

    def _end_strip(self, left: Any, body: Any) -> None:
        """Goes on in `body` while passes of a strip are left."""
        builder = self.builder
        fewer = builder.sub(builder.load(left), NUMBER(1))
        builder.store(fewer, left)
        look = builder.append_basic_block("look")
        builder.cbranch(builder.icmp_signed("==", fewer, NUMBER(0)), look, body)
        builder.position_at_end(look)

    def _apart_in(self, loop: ast.For) -> Apart | None:
        if text.has_loop(loop.body):
            return None
        self._loops += 1
        return Apart(self.builder.module, f"{self.builder.function.name} {self._loops}", loop, self._memories, self._owned)

    def _is_before(self, now: Any, stop: Any, step: Any) -> Any:
        """True if a counter has not reached the end of its range."""
        up, down = (self.builder.icmp_signed(how, now, stop) for how in ("<", ">"))
        if isinstance(step, ir.Constant):
            return up if step.constant > 0 else down
        down = self.builder.and_(down, self.builder.icmp_signed("<", step, NUMBER(0)))
        return self.builder.select(self.builder.icmp_signed(">", step, NUMBER(0)), up, down)

    def _on_break(self, stmt: ast.Break) -> None:
        self.builder.branch(self._ends[-1])

    def _on_if(self, stmt: Any) -> None:
        builder, condition = self.builder, self._expr(stmt.test)
        then, otherwise, end = (builder.append_basic_block(f"if_{name}") for name in ("then", "otherwise", "end"))
        builder.cbranch(condition, then, otherwise)
        is_reached = False
        for block, stmts in ((then, stmt.body), (otherwise, stmt.orelse)):
            builder.position_at_end(block)
            self._block(stmts)
            if not builder.block.is_terminated:
                builder.branch(end)
                is_reached = True
        builder.position_at_end(end)
        if not is_reached:
            builder.unreachable()

    def _on_expr(self, stmt: Any) -> None:
        value, type_ = self._expr(stmt.value), self.types.of[stmt.value]
        if self.context.data_model_manager[type_].contains_nrt_meminfo():
            self.context.nrt.decref(self.builder, type_, self._packed(value))

    def _on_return(self, stmt: Any) -> None:
        if stmt.value is not None:
            parts = stmt.value.elts if isinstance(stmt.value, ast.Tuple) else [stmt.value]
            values = [self._result_of(part) for part in parts]
            is_tuple = isinstance(stmt.value, ast.Tuple)
            self.builder.store(self.context.make_tuple(self.builder, self.types.returned, values) if is_tuple else values[0], self._result)
        self.builder.branch(self._exit)

    def _result_of(self, node: ast.expr) -> Any:
        type_ = plain(self.types.of[node])
        if not is_array(type_):
            return self._cast(node, type_)
        array = self._expr(node)
        self._count(INCREF, array.owner)
        return self._packed(array)

    # errors -----------------------------------------------------------------------------------------------------------

    def _on_raise(self, stmt: ast.Raise) -> None:
        error, args = text.error(stmt)
        known = [self.types.message(one) or text.integer(one) for one in args]
        kinds = [plain(self.types.of[one]) if value is None else None for one, value in zip(args, known, strict=True)]
        values = [self._cast(one, kind) if kind else value for one, kind, value in zip(args, kinds, known, strict=True)]
        self._fail(self.types.object_at(error), values, kinds)

    def _fail(self, error: type[Exception], values: Sequence[Any], kinds: Sequence[Any]) -> None:
        """Ends the call with an error. kinds: the types of values known at run time only, None for the others."""
        if any(kinds):
            self._tell_numbers(error, values, kinds)
        else:
            self.context.call_conv.set_static_user_exc(self.builder, error, tuple(values))
        self.builder.branch(self._failed)

    @cached_property
    def _failed(self) -> Any:
        """The block of a failed call: gives back all arrays, arguments included, which Numba's function does not do after an error."""
        block = self.builder.append_basic_block("failed")
        with self.builder.goto_block(block):
            self._release_all()
            for array in self._given:
                self._count(DECREF, array.owner)
            self.context.call_conv._return_errcode_raw(self.builder, NUMBA.RETCODE_USEREXC)
        return block

    def _tell_numbers(self, error: type[Exception], values: Sequence[Any], kinds: Sequence[Any]) -> None:
        """Sets an error with numbers known at run time only, by a function that the module holds once for these types of numbers."""
        context, builder, convention = self.context, self.builder, self.context.call_conv
        static = tuple([context.get_dummy_value() if kind else value for value, kind in zip(values, kinds, strict=True)])
        pickled = context.get_python_api(builder).serialize_object(convention.build_excinfo_struct(error, static, None, None))
        numbers = [value for value, kind in zip(values, kinds, strict=True) if kind]
        types_ = [kind for kind in kinds if kind]

        def write(inside: Any) -> None:
            _, place, pickled, *numbers = inside.function.args
            api, struct = context.get_python_api(inside), ir.LiteralStructType([one.type for one in numbers])
            held = convention.emit_wrap_args_insts(inside, api, struct, numbers)
            boxed = convention.emit_unwrap_dynamic_exception_fn(inside.module, struct, types_)
            size = api.py_ssize_t(context.get_abi_sizeof(NUMBA.excinfo_t))
            told = inside.bitcast(context.nrt.allocate(inside, size), NUMBA.excinfo_ptr_t)
            parts = [inside.extract_value(inside.load(pickled), k) for k in (NUMBA.PICKLE_BUF_IDX, NUMBA.PICKLE_BUFSZ_IDX)]
            parts += [inside.bitcast(held, POINTER), inside.bitcast(boxed, POINTER), SHORT(len(struct))]
            for k, one in enumerate(parts):
                inside.store(one, inside.gep(told, [SHORT(0), SHORT(k)]))
            inside.store(told, place)
            convention._return_errcode_raw(inside, NUMBA.RETCODE_USEREXC)

        # the first two operands are those of all functions of Numba: the result, unused, and the error
        operands = [POINTER(None), convention._get_excinfo_argument(builder.function), pickled, *numbers]
        called(builder, f"numbascan_error_{'_'.join(map(str, types_))}", NUMBA.errcode_t, operands, write)

    # expressions ------------------------------------------------------------------------------------------------------

    def _expr(self, node: ast.AST) -> Any:
        return getattr(self, f"_of_{type(node).__name__.lower()}")(node)

    def _cast(self, node: ast.expr, type_: Any) -> Any:
        """The value of an expression as a number of another type."""
        return self.context.cast(self.builder, self._expr(node), self.types.of[node], type_)

    def _of_constant(self, node: ast.Constant) -> Any:
        return self.context.get_constant(plain(self.types.of[node]), node.value)

    def _of_name(self, node: ast.Name) -> Any:
        return self._load(node.id) if node.id in self.types.locals else self._known(node)

    def _known(self, node: ast.expr) -> Any:
        return self.context.get_constant_generic(self.builder, self.types.of[node], self.types.object_at(node))

    def _of_attribute(self, node: ast.Attribute) -> Any:
        if self.types.is_known(node):
            return self._known(node)
        value = self._expr(node.value)
        if node.attr == "T":
            return Array(self.types.of[node], value.data, value.shape[::-1], value.owner, value.memories)
        return getattr(self.context.make_complex(self.builder, self.types.of[node.value], value=value), node.attr)

    def _of_subscript(self, node: Any) -> Any:
        if text.is_shape(node.value):
            return self._expr(node.value.value).shape[text.integer(node.slice)]
        if isinstance(node.slice, ast.Slice):
            return self._rows(self._expr(node.value), node.slice)
        (array, place), type_ = self._place(node), self.types.of[node]
        if is_array(type_):
            return Array(type_, place, array.shape[array.type.ndim - type_.ndim :], array.owner, array.memories)
        return self._item(array, place)

    def _place(self, node: ast.Subscript) -> tuple[Array, Any]:
        """An array, and the address of an element, or of the first element of a part."""
        array = self._expr(node.value)
        index = [self._index(one, dim) for one, dim in zip(text.entries(node.slice), array.shape, strict=False)]
        if self.context.enable_boundscheck:
            for axis, (one, dim) in enumerate(zip(index, array.shape, strict=False)):
                NUMBA.do_boundscheck(self.context, self.builder, one, dim, axis)
        return array, self._address(array, index)

    def _address(self, array: Array, index: Sequence[Any]) -> Any:
        place = index[0]
        for axis, dim in enumerate(array.shape[1:], 1):
            place = self.builder.mul(place, dim)
            place = self.builder.add(place, index[axis]) if axis < len(index) else place
        return self.builder.gep(array.data, [place])

    def _index(self, node: ast.expr, dim: Any) -> Any:
        """The place of an index: not negative, as no index of generated text is (`check_loops`), but one that is written out."""
        type_ = plain(self.types.of[node])
        if not type_.signed:
            return self._cast(node, types.uintp)
        index, number = self._cast(node, types.intp), text.integer(node)
        return index if number is None or number >= 0 else self.builder.add(index, dim)

    def _from_end(self, index: Any, dim: Any) -> Any:
        builder = self.builder
        return builder.select(builder.icmp_signed("<", index, NUMBER(0)), builder.add(index, dim), index)

    def _rows(self, array: Array, part: ast.Slice) -> Array:
        """A slice of an array's rows, clipped as Python's."""
        n = array.shape[0]

        def clipped(bound: ast.expr) -> Any:
            place = self._cast(bound, types.int64)
            if not self.types.is_natural(bound):
                place = self._greater(self._from_end(place, n), NUMBER(0))
            return self.builder.select(self.builder.icmp_signed(">", place, n), n, place)

        start = NUMBER(0) if part.lower is None else clipped(part.lower)
        stop = n if part.upper is None else clipped(part.upper)
        length = self._greater(self.builder.sub(stop, start), NUMBER(0))
        return Array(array.type, self._address(array, [start]), [length, *array.shape[1:]], array.owner, array.memories)

    def _greater(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.icmp_signed(">", a, b), a, b)

    def _of_binop(self, node: Any) -> Any:
        type_, power = self.types.of[node], text.integer(node.right)
        if isinstance(node.op, ast.Pow) and isinstance(type_, types.Float) and power and 0 < power < MOST_POWER:
            return self._power(self._cast(node.left, type_), power)
        return self._operation(node, self._operands([node.left, node.right]))

    def _power(self, base: Any, power: int) -> Any:
        """A power, by the products that Numba makes for it, in their order."""
        result = None
        while power:
            if power % 2:
                result = base if result is None else self.builder.fmul(result, base)
            power //= 2
            base = self.builder.fmul(base, base) if power else base
        return result

    def _of_unaryop(self, node: Any) -> Any:
        number = text.integer(node)
        return NUMBER(number) if number is not None else self._operation(node, self._operands([node.operand]))

    def _of_compare(self, node: Any) -> Any:
        return self._operation(node, self._operands([node.left, *node.comparators]))

    def _operands(self, nodes: Sequence[ast.expr]) -> list[tuple[Any, Any]]:
        return [(self._packed(self._expr(one)), self.types.of[one]) for one in nodes]

    def _of_boolop(self, node: Any) -> Any:
        builder, is_or = self.builder, isinstance(node.op, ast.Or)
        end, reached = builder.append_basic_block("known"), []
        for value in node.values[:-1]:
            condition, more = self._expr(value), builder.append_basic_block("more")
            reached.append((BIT(is_or), builder.block))
            builder.cbranch(condition, *((end, more) if is_or else (more, end)))
            builder.position_at_end(more)
        reached.append((self._expr(node.values[-1]), builder.block))
        builder.branch(end)
        return self._one_of(reached, end)

    def _one_of(self, reached: Sequence[tuple[Any, Any]], end: Any) -> Any:
        """In block `end`: the value of the block that it was reached from."""
        self.builder.position_at_end(end)
        value = self.builder.phi(reached[0][0].type)
        for pair in reached:
            value.add_incoming(*pair)
        return value

    def _of_ifexp(self, node: Any) -> Any:
        builder, condition = self.builder, self._expr(node.test)
        then, otherwise, end = (builder.append_basic_block(f"choice_{name}") for name in ("then", "otherwise", "end"))
        builder.cbranch(condition, then, otherwise)
        reached = []
        for block, side in ((then, node.body), (otherwise, node.orelse)):
            builder.position_at_end(block)
            reached.append((self._cast(side, self.types.of[node]), builder.block))
            builder.branch(end)
        return self._one_of(reached, end)

    def _of_tuple(self, node: Any) -> Any:
        return self.context.make_tuple(self.builder, self.types.of[node], [self._packed(self._expr(one)) for one in node.elts])

    # calls ------------------------------------------------------------------------------------------------------------

    def _of_call(self, node: Any) -> Any:
        if node not in self.types.signatures:
            return self._method(node)
        value, type_ = self._operation(node, self._operands(node.args)), self.types.of[node]
        return self._unpacked(type_, value) if is_array(type_) else value

    def _method(self, node: Any) -> Array:
        array, builder = self._expr(node.func.value), self.builder
        size = self._product(array.shape)
        if node.func.attr == "copy":
            return self._copied(array, size)
        shape = [self._cast(dim, types.int64) for dim in text.shape_given(node)]
        with builder.if_then(builder.icmp_signed("!=", self._product(shape), size), likely=False):
            self._fail(ValueError, ["total size of new array must be unchanged"], [None])
        return Array(self.types.of[node], array.data, shape, array.owner, array.memories)

    def _product(self, dims: Sequence[Any]) -> Any:
        product = dims[0]
        for dim in dims[1:]:
            product = self.builder.mul(product, dim)
        return product

    def _copied(self, array: Array, size: Any) -> Array:
        shape, dtype = types.UniTuple(types.int64, len(array.shape)), types.DType(array.type.dtype)
        callee = self.types.context.resolve_value_type(np.empty)
        signature = self.types.context.resolve_function_type(callee, (shape, dtype), {})
        operands = [(self.context.make_tuple(self.builder, shape, array.shape), shape), (self.context.get_dummy_value(), dtype)]
        copy = self._unpacked(signature.return_type, self._called(callee, signature, operands))
        NUMBA.raw_memcpy(self.builder, copy.data, array.data, size, self._itemsize(array.type))
        return copy

    def _operation(self, node: ast.AST, operands: Sequence[tuple[Any, Any]]) -> Any:
        return self._called(*self.types.signatures[node], operands)

    def _called(self, callee: Any, signature: Any, operands: Iterable[tuple[Any, Any]]) -> Any:
        """The result of a function for values and their types."""
        try:
            implementation = self.context.get_function(callee, signature)
        except NotImplementedError as error:  # a function that Numba has to put into its own code
            raise text.Unknown(error) from error
        self.context.add_linking_libs(getattr(implementation, "libs", ()))
        return implementation(self.builder, self._folded(signature, list(operands)))

    def _folded(self, signature: Any, operands: list[tuple[Any, Any]]) -> Any:
        """The operands in the types of a signature; those for `*args` as one tuple."""

        def cast(operand: tuple[Any, Any], wanted: Any) -> Any:
            return self.context.cast(self.builder, *operand, wanted)

        def one(index: int, parameter: Any, operand: tuple[Any, Any]) -> Any:
            return cast(operand, signature.args[index])

        def default(index: int, parameter: Any, value: Any) -> Any:
            if not isinstance(signature.args[index], types.Omitted):
                raise text.Unknown(parameter)
            return self.context.get_dummy_value()

        def several(index: int, parameter: Any, values: Any) -> Any:
            wanted = signature.args[index]
            return self.context.make_tuple(self.builder, wanted, [cast(*pair) for pair in zip(values, wanted, strict=True)])

        if signature.pysig is None:
            return [cast(*pair) for pair in zip(operands, signature.args, strict=True)]
        return NUMBA.fold_arguments(signature.pysig, operands, {}, one, default, several)
