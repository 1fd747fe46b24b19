"""Functions that a compiled module holds once, however often its code calls them: the less text for LLVM, the shorter a first call.

Those that can fail return the code of an error, 0 for none, and their caller raises it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

CODE = ir.IntType(32)


def called(builder: Any, name: str, returned: Any, args: Sequence[Any], write: Callable[[Any], None], is_one: bool = False) -> Any:
    """The result of a call of the module's function `name`. `write` gets a builder, and writes that function if the module lacks it.

    is_one: all modules hold the same function under this name, and linking them keeps one.
    """
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(returned, [one.type for one in args]), name)
        function.linkage = "linkonce_odr" if is_one else "internal"
        function.attributes.add("noinline")
        write(ir.IRBuilder(function.append_basic_block()))
    return builder.call(function, args)


def raise_where(context: Any, builder: Any, code: Any, errors: Sequence[tuple[type[Exception], str]]) -> None:
    """Raises the error that a code stands for: the first for 1."""
    with builder.if_then(builder.icmp_signed("!=", code, CODE(0)), likely=False):
        for number, (error, text) in enumerate(errors, 1):
            with builder.if_then(builder.icmp_signed("==", code, CODE(number))):
                context.call_conv.return_user_exc(builder, error, (text,))
