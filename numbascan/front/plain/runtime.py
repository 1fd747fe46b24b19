"""All that converted code may call, by the names that `front/converted/lowering.py` writes."""

from __future__ import annotations

import builtins
from typing import Any

from ..converted.source import runtime
from ..variable import at_line
from . import functions, growing, ordering, parts_of_numbers, several, writers
from .calls import callee
from .checks import caught, failed, raised
from .choices import both, choose, compared, one_of, value_of
from .elements import items_of
from .joining import UNSET, handed
from .lists import listed, made
from .loops import for_each, repeat
from .made import InPlaceOfAList
from .options import numbers_in
from .stores import (
    context,
    del_attribute,
    del_item,
    holds_traced,
    item,
    key,
    keys,
    outside,
    rebinds,
    set_attribute,
    set_item,
    update,
    update_attribute,
    update_item,
)
from .text import percent, text
from .truth import compare, either, may_fail, negation, plain


def rows(items: Any) -> Any:
    """What a comprehension of a dict or a set runs over."""
    return items_of(items)


def known(value: Any) -> Any:
    """A function that returns a value computed already."""
    return lambda: value


def of_class(value: Any) -> Any:
    """The subject of a `match` with class patterns. TypeError for a traced one."""
    if holds_traced(value):
        raise TypeError(f"a `match` asks for the class of a traced value{at_line()}; write isinstance, or match numbers")
    return value


def subject(value: Any) -> Any:
    """The subject of a `match` that Python itself runs. TypeError for what is in the place of a list."""
    if isinstance(value, InPlaceOfAList):
        raise TypeError(f"a `match` takes apart a list that is held as an array{at_line()}; write xs[0], xs[-1], len(xs)")
    return value


vars(runtime).update(
    both=both,
    callee=callee,
    caught=caught,
    choose=choose,
    class_of=functions.class_of,
    compare=compare,
    compared=compared,
    context=context,
    del_attribute=del_attribute,
    del_item=del_item,
    either=either,
    failed=failed,
    for_each=for_each,
    handed=handed,
    item=item,
    kept=numbers_in,
    known=known,
    key=key,
    keys=keys,
    listed=listed,
    made=made,
    may_fail=may_fail,
    negation=negation,
    of_class=of_class,
    one_of=one_of,
    outside=outside,
    percent=percent,
    plain=plain,
    raised=raised,
    rebinds=rebinds,
    repeat=repeat,
    rows=rows,
    set_attribute=set_attribute,
    set_item=set_item,
    slice=builtins.slice,
    subject=subject,
    text=text,
    unset=UNSET,
    update=update,
    update_attribute=update_attribute,
    update_item=update_item,
    value_of=value_of,
)

__all__ = ["functions", "growing", "ordering", "parts_of_numbers", "several", "writers"]
