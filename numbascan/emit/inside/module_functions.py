"""Functions that a compiled module holds once, however often its code calls them: the text of LLVM is what a first call waits for.

They return a code of what is wrong, 0 for nothing, and whoever calls them raises its error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

CODE = ir.IntType(32)


def called(builder: Any, name: str, returned: Any, args: Sequence[Any], write: Callable[[Any], None], is_one: bool = False) -> Any:
    """What a function of the module gives. `write` gets a builder, and writes the function where the module does not hold it yet.

    is_one: it is the same in all modules of that name, and stays one where they are linked.
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
