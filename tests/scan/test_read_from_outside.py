"""What a function reads from outside is seen anew at the next call, wherever it comes from: the rows of the guide's table."""

import array
import collections
import contextvars
import copy
import ctypes
import dataclasses
import enum
import fractions
import functools
import gc
import operator
import os
import sys
import threading
import time
import types
import typing
import weakref

import numpy as np
import pytest

import numbascan as ns
from numbascan.front.captures.guards import WATCHED, Guards

CASES = {}
RATE = 2.0
RAISED_RATE = 2.0  # of one test, which leaves it raised


def case(make):
    """`make` gives a function, and what changes its result."""
    CASES[make.__name__] = make
    return make


def setting(holder, **values):
    return lambda: [setattr(holder, name, value) for name, value in values.items()]


def module_of(text, name):
    """A module of the user."""
    made = types.ModuleType(name)
    exec(text, vars(made))
    sys.modules[name] = made
    return made


class Plain:
    rate = 2.0

    def __init__(self, **values):
        for name, value in values.items():
            setattr(self, name, value)

    def scaled(self, x):
        return x * self.rate


def fresh(**members):
    """A class of its own for each case."""
    return type("Fresh", (Plain,), {"__module__": __name__, **members})


# names and numbers --------------------------------------------------------------------------------------------------


@case
def a_closure():
    k = 2.0

    def change():
        nonlocal k
        k = 3.0

    return lambda x: x * k, change


@case
def a_global():
    return lambda x: x * RAISED_RATE, lambda: globals().update(RAISED_RATE=RAISED_RATE + 1)


@case
def a_global_that_hides_a_builtin():
    names = {}
    exec("def f(x): return x * max(1.0, 2.0)", names)
    return names["f"], lambda: names.update(max=lambda *numbers: 5.0)


@case
def a_global_that_comes_to_exist():
    names = {}
    exec("def f(x):\n    try:\n        return x * later\n    except NameError:\n        return x", names)
    return names["f"], lambda: names.update(later=4.0)


@case
def a_global_read_by_its_text():
    names = {"names": ["a", "b"], "a": 2.0, "b": 3.0}
    exec("def f(x): return x * sum(globals()[name] for name in names)", names)
    return names["f"], lambda: names.update(b=4.0)


@case
def a_global_that_is_evaluated():
    names = {"rate": 2.0}
    exec("def f(x): return x * eval('rate + 1')", names)
    return names["f"], lambda: names.update(rate=4.0)


@case
def a_module_put_in_the_place_of_another():
    names = {"lib": np}
    exec("def f(x): return lib.float64(2.0) * x", names)
    return names["f"], lambda: names.update(lib=types.SimpleNamespace(float64=lambda number: 3 * number))


@case
def a_module_of_the_user():
    made = module_of("rate = 2.0", "module_of_a_test")
    return lambda x: x * made.rate, setting(made, rate=3.0)


@case
def a_module_imported_by_the_function():
    made = module_of("rate = 2.0", "imported_by_a_test")

    def f(x):
        from imported_by_a_test import rate

        return x * rate

    return f, setting(made, rate=3.0)


@case
def a_module_with_names_of_its_own_making():
    text = "table = {'rate': 2.0}\ndef __getattr__(name):\n    if name in table: return table[name]\n    raise AttributeError(name)"
    made = module_of(text, "lazy_module_of_a_test")
    return lambda x: x * made.rate, lambda: made.table.update(rate=3.0)


# functions ----------------------------------------------------------------------------------------------------------


@case
def defaults():
    def f(x, k=2.0):
        return x * k

    return f, setting(f, __defaults__=(3.0,))


@case
def defaults_of_a_helper():
    def helper(x, k=2.0):
        return x * k

    return lambda x: helper(x), setting(helper, __defaults__=(3.0,))


@case
def keyword_defaults_of_a_helper():
    def helper(x, *, k=2.0):
        return x * k

    return lambda x: helper(x), lambda: helper.__kwdefaults__.update(k=3.0)


@case
def the_code_of_a_helper():
    def helper(x):
        return x * 2

    return lambda x: helper(x), setting(helper, __code__=(lambda x: x * 3).__code__)


@case
def the_code_of_the_function_itself():
    def f(x):
        return x * 2

    return f, setting(f, __code__=(lambda x: x * 3).__code__)


@case
def attributes_of_a_function():
    def helper(x):
        return x * helper.rate

    helper.rate = 2.0
    return lambda x: helper(x), setting(helper, rate=3.0)


@case
def a_closure_of_a_helper():
    def make(k):
        def helper(x):
            return x * k

        def change(value):
            nonlocal k
            k = value

        return helper, change

    helper, change = make(2.0)
    return lambda x: helper(x), lambda: change(3.0)


@case
def a_function_in_a_function():
    k = [2.0]

    def f(x):
        def inner(y):
            return y * k[0]

        return inner(x)

    return f, lambda: k.__setitem__(0, 3.0)


@case
def keywords_of_a_partial():
    f = functools.partial(lambda x, k: x * k, k=2.0)
    return f, lambda: f.keywords.update(k=3.0)


@case
def a_function_taken_off_a_list_and_another_put_in():
    steps = [eval("lambda x: x * 2.0")]

    def change():
        steps.pop()
        gc.collect()
        steps.append(eval("lambda x: x * 3.0"))

    return lambda x: steps[0](x), change


@case
def functions_in_a_registry():
    registry = {"f": lambda x: x * 2}
    return lambda x: registry["f"](x), lambda: registry.update(f=lambda x: x * 3)


@case
def what_a_decorated_helper_reads():
    k = [2.0]

    def decorated(f):
        @functools.wraps(f)
        def wrapper(*args):
            return f(*args)

        return wrapper

    helper = decorated(lambda x: x * k[0])
    return lambda x: helper(x), lambda: k.__setitem__(0, 3.0)


@case
def a_captured_builtin_method():
    table = {"k": 2.0}
    get = table.get
    return lambda x: x * get("k"), lambda: table.update(k=3.0)


@case
def a_function_that_is_vectorized():
    k = [2.0]
    doubled = np.vectorize(lambda v: v * k[0])
    return lambda x: x * doubled(np.ones(2)).sum(), lambda: k.__setitem__(0, 3.0)


@case
def defaults_of_a_scan():
    table = np.ones(3)
    total = ns.scan(sequences=table, outputs_info=0.0, mode="python")(lambda w, s: s + w)
    return lambda x: x * total()[-1], lambda: table.__setitem__(0, 5.0)


@case
def what_a_jitted_helper_reads():
    k = [2.0]
    helper = ns.jit(lambda x: x * k[0])
    return lambda x: helper(x), lambda: k.__setitem__(0, 3.0)


# objects ------------------------------------------------------------------------------------------------------------


@case
def an_attribute():
    obj = Plain(rate=2.0)
    return lambda x: x * obj.rate, setting(obj, rate=3.0)


@case
def an_attribute_read_by_a_method():
    obj = Plain(rate=2.0)
    return obj.scaled, setting(obj, rate=3.0)


@case
def an_attribute_of_an_attribute():
    obj = Plain(inner=Plain(rate=2.0))
    return lambda x: x * obj.inner.rate, lambda: setattr(obj, "inner", Plain(rate=3.0))


@case
def an_attribute_read_by_getattr():
    obj, names = Plain(rate_1=2.0, rate_2=3.0), (1, 2)
    return lambda x: x * sum(getattr(obj, f"rate_{k}") for k in names), setting(obj, rate_2=4.0)


@case
def an_attribute_that_comes_to_exist():
    obj = Plain()
    return lambda x: x * (obj.extra if hasattr(obj, "extra") else 1.0), setting(obj, extra=3.0)


@case
def an_attribute_that_is_missed():
    obj = Plain()

    def f(x):
        try:
            return x * obj.extra
        except AttributeError:
            return x

    return f, setting(obj, extra=3.0)


@case
def an_attribute_read_by_vars():
    obj = Plain(rate=2.0)
    return lambda x: x * vars(obj)["rate"], setting(obj, rate=3.0)


@case
def an_attribute_read_from_the_dict():
    obj = Plain(rate=2.0)
    return lambda x: x * sum(obj.__dict__.values()), setting(obj, rate=3.0)


@case
def the_whole_dict_replaced():
    obj = Plain(rate=2.0)
    return lambda x: x * obj.rate, setting(obj, __dict__={"rate": 3.0})


@case
def an_attribute_read_by_attrgetter():
    obj, read = Plain(inner=Plain(rate=2.0)), operator.attrgetter("inner.rate")
    return lambda x: x * read(obj), setting(obj.inner, rate=3.0)


@case
def an_attribute_read_by_a_package():
    obj = Plain(rate=2.0)
    return lambda x: x * copy.copy(obj).rate, setting(obj, rate=3.0)


@case
def the_class_of_an_object():
    one, other = fresh(rate=2.0), fresh(rate=3.0)
    obj = one()
    return lambda x: x * obj.rate, setting(obj, __class__=other)


@case
def an_attribute_of_the_class():
    cls = fresh(rate=2.0)
    obj = cls()
    return lambda x: x * obj.rate, setting(cls, rate=3.0)


@case
def an_attribute_of_a_base():
    base = fresh(rate=2.0)
    obj = type("Derived", (base,), {"__module__": __name__})()
    return lambda x: x * obj.rate, setting(base, rate=3.0)


@case
def an_attribute_of_a_class_in_front_of_the_base():
    derived = type("Derived", (fresh(rate=2.0),), {"__module__": __name__})
    obj = derived()
    return lambda x: x * obj.rate, setting(derived, rate=3.0)


@case
def an_attribute_of_an_object_in_front_of_the_class():
    obj = fresh(rate=2.0)()
    return lambda x: x * obj.rate, setting(obj, rate=3.0)


@case
def an_attribute_of_a_class_itself():
    cls = fresh(rate=2.0)
    return lambda x: x * cls.rate, setting(cls, rate=3.0)


@case
def an_attribute_of_a_metaclass():
    meta = type("Meta", (type,), {"__module__": __name__, "rate": 2.0})
    cls = meta("Made", (), {"__module__": __name__})
    return lambda x: x * cls.rate, setting(meta, rate=3.0)


@case
def the_bases_of_a_class():
    one, other = (type(name, (Plain,), {"__module__": __name__, "rate": rate}) for name, rate in (("One", 2.0), ("Other", 3.0)))
    derived = type("Derived", (one,), {"__module__": __name__})
    obj = derived()
    return lambda x: x * obj.rate, setting(derived, __bases__=(other,))


@case
def a_method_replaced():
    cls = fresh()
    obj = cls(rate=2.0)
    return lambda x: obj.scaled(x), setting(cls, scaled=lambda self, x: x * self.rate * 2)


@case
def a_method_replaced_on_the_object():
    obj = Plain(rate=2.0)
    return lambda x: obj.scaled(x), setting(obj, scaled=lambda x: x * 7)


@case
def a_special_method_replaced():
    cls = fresh(__getitem__=lambda self, k: 2.0)
    obj = cls()
    return lambda x: x * obj[0], setting(cls, __getitem__=lambda self, k: 3.0)


@case
def a_special_method_that_comes_to_exist():
    cls = fresh()
    obj = cls()
    return lambda x: x * 2 if obj else x * 3, setting(cls, __bool__=lambda self: False)


@case
def items_of_a_class_of_the_user():
    obj = fresh(__getitem__=lambda self, k: self._rows[k])(_rows=[2.0])
    return lambda x: x * obj[0], lambda: obj._rows.__setitem__(0, 3.0)


@case
def attributes_of_its_own_making():
    obj = fresh(__getattr__=lambda self, name: self._table[name])(_table={"extra": 2.0})
    return lambda x: x * obj.extra, lambda: obj._table.update(extra=3.0)


@case
def a_property():
    obj = fresh(double=property(lambda self: 2 * self._rate))(_rate=2.0)
    return lambda x: x * obj.double, setting(obj, _rate=3.0)


@case
def the_setter_of_a_property():
    rates = [2.0]
    cls = fresh(scaled=property(lambda self: self.value, lambda self, value: setattr(self, "value", value * rates[0])))

    def f(x):
        made = cls()
        made.scaled = x
        return made.scaled

    return f, lambda: rates.__setitem__(0, 3.0)


@case
def a_cached_property():
    class Cached:
        rate = 2.0

        @functools.cached_property
        def double(self):
            return 2 * self.rate

    obj = Cached()

    def change():
        obj.rate = 3.0
        del obj.double

    return lambda x: x * obj.double, change


@case
def class_methods_and_static_methods():
    table = {"k": 2.0}
    cls = fresh(rate=2.0, one=classmethod(lambda cls: cls.rate), two=staticmethod(lambda: table["k"]))
    return lambda x: x * cls.one() * cls.two(), lambda: [setattr(cls, "rate", 3.0), table.update(k=5.0)]


@case
def a_descriptor_of_the_user():
    class Rate:
        def __get__(self, obj, cls=None):
            return self.value

    rate = Rate()
    rate.value = 2.0
    obj = fresh(rate=rate)()
    return lambda x: x * obj.rate, setting(rate, value=3.0)


@case
def slots():
    class Slotted:
        __slots__ = ("rate", "unset")

    obj = Slotted()
    obj.rate = 2.0
    return lambda x: x * obj.rate * getattr(obj, "unset", 1.0), setting(obj, rate=3.0, unset=4.0)


@case
def a_dataclass():
    @dataclasses.dataclass
    class Parameters:
        rate: float = 2.0

    obj = Parameters()
    return lambda x: x * obj.rate, setting(obj, rate=3.0)


@case
def a_dataclass_taken_apart():
    @dataclasses.dataclass
    class Parameters:
        rate: float = 2.0

    obj = Parameters()
    return lambda x: x * sum(dataclasses.astuple(obj)), setting(obj, rate=3.0)


@case
def a_dataclass_that_is_matched():
    @dataclasses.dataclass
    class Parameters:
        rate: float = 2.0

    obj = Parameters()

    def f(x):
        match obj:
            case Parameters(rate):
                return x * rate

    return f, setting(obj, rate=3.0)


@case
def members_of_an_enum():
    class Rates(enum.Enum):
        LOW = 2.0
        HIGH = 3.0

    obj = Plain(rate=Rates.LOW)
    return lambda x: x * obj.rate.value, setting(obj, rate=Rates.HIGH)


@case
def a_simple_namespace():
    obj = types.SimpleNamespace(rate=2.0)
    return lambda x: x * obj.rate, setting(obj, rate=3.0)


@case
def an_object_of_a_package():
    obj = threading.local()
    obj.rate = 2.0
    return lambda x: x * obj.rate, setting(obj, rate=3.0)


@case
def what_an_object_of_a_package_works_on():
    obj = collections.UserDict(rate=2.0)
    return lambda x: x * obj["rate"], lambda: obj.update(rate=3.0)


@case
def an_object_with_slots_of_a_package():
    obj = Plain(rate=fractions.Fraction(1, 2))
    return lambda x: x * float(obj.rate), setting(obj, rate=fractions.Fraction(1, 4))


@case
def a_polynomial():
    obj = np.poly1d([1.0, 2.0])
    return lambda x: x * obj(3.0), lambda: obj.coeffs.__setitem__(0, 4.0)


@case
def something_like_an_array():
    class Wrapped(collections.UserList):
        def __array__(self, dtype=None, copy=None):
            return np.array(self.data, dtype)

    obj = Wrapped([1.0, 2.0])
    return lambda x: x * np.sum(obj), lambda: obj.append(3.0)


@case
def a_subclass_of_float():
    class Rate(float):
        factor = 2.0

    rate = Rate(3.0)
    return lambda x: x * rate.factor, setting(Rate, factor=3.0)


# containers ---------------------------------------------------------------------------------------------------------


@case
def strings_in_a_dict():
    kinds = {"kind": "".join(["a", "b"])}

    def change():
        kinds.clear()
        gc.collect()
        kinds["kind"] = "".join(["b", "a"])

    return lambda x: x * (2 if kinds["kind"] == "ab" else 3), change


@case
def a_deque():
    rates = collections.deque([2.0, 3.0])
    return lambda x: x * rates[0], lambda: rates.rotate()


@case
def a_set():
    allowed = {"a"}
    return lambda x: x * 2 if "b" in allowed else x, lambda: allowed.add("b")


@case
def a_name_that_a_dict_misses():
    table = {}
    return lambda x: x * table.get("k", 2.0), lambda: table.update(k=3.0)


@case
def the_order_of_a_dict():
    table = {"a": 2.0, "b": 3.0}
    return lambda x: x * next(iter(table.values())), lambda: table.update(a=table.pop("a"))


@case
def the_type_of_a_key():
    table = {1: "a"}
    return lambda x: x * (2 if next(iter(table)) is True else 3), lambda: [table.clear(), table.update({True: "a"})]


@case
def a_dict_with_a_default():
    table = collections.defaultdict(lambda: 2.0)
    return lambda x: x * table["k"], lambda: [table.clear(), setattr(table, "default_factory", lambda: 3.0)]


@case
def a_default_that_is_called_by_itself():
    table = collections.defaultdict(lambda: 2.0)
    return lambda x: x * table.default_factory(), setting(table, default_factory=lambda: 3.0)


@case
def a_subclass_of_dict():
    class Table(dict):
        scale = 2.0

        def __getitem__(self, key):
            return self.scale * dict.__getitem__(self, key)

    table = Table(k=1.0)
    return lambda x: x * table["k"], lambda: table.update(k=3.0)


@case
def an_attribute_of_a_subclass_of_list():
    class Rates(list):
        pass

    rates = Rates([1.0])
    rates.scale = 2.0
    return lambda x: x * rates.scale, setting(rates, scale=3.0)


@case
def containers_in_containers():
    nest = {"a": [({"b": [2.0]},)]}
    return lambda x: x * nest["a"][0][0]["b"][0], lambda: nest["a"][0][0]["b"].__setitem__(0, 3.0)


@case
def a_view_of_a_dict():
    table = {"k": 2.0}
    values = table.values()
    return lambda x: x * sum(values), lambda: table.update(j=3.0)


@case
def a_proxy_of_a_dict():
    table = {"k": 2.0}
    proxy = types.MappingProxyType(table)
    return lambda x: x * proxy["k"], lambda: table.update(k=3.0)


@case
def a_chain_of_dicts():
    table = {"k": 2.0}
    chain = collections.ChainMap({}, table)
    return lambda x: x * chain["k"], lambda: table.update(k=3.0)


@case
def an_array_of_the_standard_library():
    rates = array.array("d", [2.0])
    return lambda x: x * rates[0], lambda: rates.__setitem__(0, 3.0)


@case
def bytes_that_change():
    rates = bytearray(b"\x02")
    return lambda x: x * rates[0], lambda: rates.__setitem__(0, 3)


@case
def a_context_variable():
    rate = contextvars.ContextVar("rate", default=2.0)
    return lambda x: x * rate.get(), lambda: rate.set(3.0)


@case
def what_a_context_variable_holds():
    rates = [2.0]
    rate = contextvars.ContextVar("rate", default=rates)
    return lambda x: x * rate.get()[0], lambda: rates.__setitem__(0, 3.0)


@case
def a_weak_reference():
    obj = Plain(rate=2.0)
    reference = weakref.ref(obj)
    return lambda x: x * reference().rate, setting(obj, rate=3.0)


# arrays -------------------------------------------------------------------------------------------------------------


@case
def the_content_of_an_array():
    table = np.ones(3)
    return lambda x: x * table.sum(), lambda: table.__setitem__(0, 5.0)


@case
def whether_an_array_may_be_written():
    table = np.ones(3)
    return lambda x: x + table.flags.writeable, setting(table.flags, writeable=False)


@case
def the_content_of_a_large_array():
    table = np.ones(WATCHED // 8 + 8)
    return lambda x: x * table[3], lambda: table.__setitem__(3, 5.0)


@case
def two_rows_of_a_large_array_that_change_places():
    table = np.ones((WATCHED // 64 + 1, 8))
    table[5] = 2.0
    return lambda x: x * table[5, 0], lambda: table.__setitem__([5, 6], table[[6, 5]])


@case
def the_shape_of_an_array():
    table = np.arange(6.0)
    return lambda x: x * table.shape[0] + table.reshape(-1)[1], setting(table, shape=(2, 3))


@case
def the_shape_of_an_array_that_is_an_operand():
    table = np.arange(6.0)
    return lambda x: x + (table[..., None] * np.ones(1)).sum(0), setting(table, shape=(2, 3))


@case
def the_dtype_of_an_array():
    table = np.arange(6.0)
    return lambda x: x + table, setting(table, dtype="int64")


@case
def objects_in_an_array():
    table = np.array([2.0, "a"], object)
    return lambda x: x * table[0], lambda: table.__setitem__(0, 3.0)


@case
def a_row_of_a_structured_array():
    table = np.zeros(2, [("rate", float)])
    row = table[0]
    return lambda x: x + row["rate"], lambda: table["rate"].__setitem__(0, 3.0)


@case
def the_value_of_a_shared_variable_read_while_tracing():
    rate = ns.shared(2.0)
    return lambda x: x * float(rate.get_value()), lambda: rate.set_value(3.0)


@case
def the_order_of_an_ordered_dict():
    table = collections.OrderedDict(a=2.0, b=3.0)
    return lambda x: x * next(iter(table.values())), lambda: table.move_to_end("a")


@case
def the_order_of_a_view_of_an_ordered_dict():
    table = collections.OrderedDict(a=2.0, b=3.0)
    values = table.values()
    return lambda x: x * next(iter(values)), lambda: table.move_to_end("a")


@case
def an_attribute_that_a_format_names():
    obj, shown = Plain(speed=2.0), "{.speed}"
    return lambda x: x * float(shown.format(obj)), setting(obj, speed=3.0)


@case
def an_attribute_that_a_bound_format_names():
    obj, shown = Plain(speed=2.0), "{.speed}".format
    return lambda x: x * float(shown(obj)), setting(obj, speed=3.0)


@case
def a_namespace_that_is_compared():
    one, other = types.SimpleNamespace(count=1), types.SimpleNamespace(count=1)
    return lambda x: x * 2 if one == other else x, setting(one, count=2)


@case
def a_namespace_that_is_shown():
    space = types.SimpleNamespace(count=1)
    return lambda x: x * len(repr(space)), setting(space, count=100)


HELD = []


def held_proxy(value):
    """A proxy of what is held elsewhere."""
    HELD.append(value)
    return weakref.proxy(value)


@case
def an_attribute_behind_a_proxy():
    obj = fresh(rate=2.0)()
    proxy = held_proxy(obj)
    return lambda x: x * proxy.rate, setting(type(obj), rate=3.0)


@case
def a_method_behind_a_proxy():
    rates = [2.0]
    obj = fresh(scaled=lambda self, x: x * rates[0])()
    proxy = held_proxy(obj)
    return lambda x: proxy.scaled(x), lambda: rates.append(rates.pop() + 1)


@case
def a_list_behind_a_proxy():
    values = type("Values", (list,), {})([2.0])
    proxy = held_proxy(values)
    return lambda x: x * proxy[0], lambda: values.append(values.pop() + 1)


@case
def a_function_behind_a_proxy():
    def scaled(x):
        return x * scaled.rate

    scaled.rate = 2.0
    proxy = held_proxy(scaled)
    return lambda x: proxy(x), setting(scaled, rate=3.0)


@case
def an_array_of_c():
    values = (ctypes.c_double * 2)(2.0, 3.0)
    return lambda x: x * values[0], lambda: values.__setitem__(0, 5.0)


@case
def an_array_of_c_that_numpy_reads():
    values = (ctypes.c_double * 2)(2.0, 3.0)
    return lambda x: x * np.ctypeslib.as_array(values).sum(), lambda: values.__setitem__(0, 5.0)


@case
def a_number_of_c():
    number = ctypes.c_double(2.0)
    return lambda x: x * number.value, setting(number, value=3.0)


@case
def a_struct_of_c():
    made = type("Made", (ctypes.Structure,), {"_fields_": [("rate", ctypes.c_double)]})(2.0)
    return lambda x: x * made.rate, setting(made, rate=3.0)


@case
def an_object_that_says_it_is_a_list():
    obj = fresh(rate=2.0, __class__=property(lambda self: list))()
    return lambda x: x * obj.rate, setting(type(obj), rate=3.0)


@case
def an_object_that_says_it_is_an_array():
    obj = fresh(rate=2.0, __class__=property(lambda self: np.ndarray))()
    return lambda x: x * obj.rate, setting(type(obj), rate=3.0)


def hidden_module(text):
    """A module that Python does not know by name."""
    made = types.ModuleType("made_by_hand")
    exec(text, vars(made))
    return made


@case
def an_attribute_of_a_module_made_by_hand():
    module = hidden_module("rate = 2.0")
    return lambda x: x * module.rate, setting(module, rate=3.0)


@case
def a_class_of_a_module_made_by_hand():
    obj = hidden_module("class Made:\n    rate = 2.0").Made()
    return lambda x: x * obj.rate, setting(type(obj), rate=3.0)


@case
def a_method_of_a_module_made_by_hand():
    module = hidden_module("rate = 2.0\nclass Made:\n    def scaled(self, x): return x * rate")
    obj = module.Made()
    return lambda x: obj.scaled(x), setting(module, rate=3.0)


@case
def the_class_of_a_module():
    rates = {"rate": 2.0}
    lazy = type("Lazy", (types.ModuleType,), {"__getattr__": lambda self, name: rates[name]})("lazy")
    return lambda x: x * lazy.rate, lambda: rates.update(rate=3.0)


class State(typing.NamedTuple):
    y: typing.Any

    def scaled(self):
        return State(self.y * state_rate())

    @property
    def moved(self):
        return self.y + self.shift


def state_rate():
    return RATE


State.shift = 1.0


def through(compiled, call):
    return lambda s: call(compiled, s)


ARGUMENT_FACES = {
    "jit": lambda f: ns.jit(lambda s: f(s), mode="python"),
    "nest": lambda f: through(ns.jit(lambda d: f(d["a"][1]), mode="python"), lambda g, s: g({"a": [1.0, s]})),
    "keyword": lambda f: through(ns.jit(lambda *, s: f(s), mode="python"), lambda g, s: g(s=s)),
    "grad": lambda f: through(ns.grad(lambda s: f(s)), lambda g, s: g(s).y),
    "vjp": lambda f: through(ns.jit(lambda s: f(s), mode="python"), lambda g, s: ns.vjp(g, s)[1](1.0)[0].y),
    "state": lambda f: through(ns.scan(lambda s: State(f(s))), lambda g, s: g(outputs_info=s, n_steps=2, mode="python").y),
    "scan now": lambda f: through(
        lambda s: State(f(s)), lambda g, s: ns.scan(g, outputs_info=s, n_steps=2, mode="python", return_updates=False).y
    ),
    "constant": lambda f: through(
        ns.scan(lambda y, s: y + f(s)), lambda g, s: g(outputs_info=0.0, non_sequences=s, n_steps=2, mode="python")
    ),
}


@pytest.mark.parametrize("reads", [lambda s: s.scaled().y, lambda s: s.moved * s.moved], ids=["method", "property"])
@pytest.mark.parametrize("face", ARGUMENT_FACES)
def test_what_methods_of_a_named_tuple_read_is_seen_at_the_next_call(face, reads, monkeypatch):
    call = ARGUMENT_FACES[face](reads)
    before = call(State(1.5))
    monkeypatch.setitem(globals(), "RATE", 3.0)
    monkeypatch.setattr(State, "shift", 2.0)
    after = ARGUMENT_FACES[face](lambda s: reads(s))(State(1.5))
    assert not np.array_equal(before, after), "the case changes nothing"
    np.testing.assert_array_equal(call(State(1.5)), after)


@pytest.mark.parametrize("name", CASES)
def test_what_changes_outside_is_seen_at_the_next_call(name):
    f, change = CASES[name]()
    compiled = ns.jit(f, mode="python")
    before = f(1.5)
    for _ in range(2):
        np.testing.assert_array_equal(compiled(1.5), before, strict=False)
    change()
    after = f(1.5)
    assert not np.array_equal(before, after), "the case changes nothing"
    np.testing.assert_array_equal(compiled(1.5), after)


# what is read once --------------------------------------------------------------------------------------------------

ONCE = {}


def once(make):
    """`make` gives a function whose second call in plain Python gives something else, and what may have to happen between."""
    ONCE[make.__name__] = make
    return make


@once
def a_name_found_in_sys_modules():
    made = module_of("rate = 2.0", "found_by_a_test")
    return lambda x: x * sys.modules["found_" + "by_a_test"].rate, setting(made, rate=3.0)


@once
def what_a_helper_keeps():
    k = [2.0]

    @functools.lru_cache
    def helper():
        return k[0]

    def change():
        k[0] = 3.0
        helper.cache_clear()
        helper()
        k[0] = 2.0

    helper()
    return lambda x: x * helper(), change


@once
def what_a_ufunc_is_made_of():
    k = [2.0]
    ufunc = np.frompyfunc(lambda v: v * k[0], 1, 1)
    return lambda x: x * float(ufunc(1.0)), lambda: k.__setitem__(0, 3.0)


@once
def an_attribute_of_an_installed_package():
    # as if np.pi could change
    np.pi_of_a_test = 2.0
    return lambda x: x * np.pi_of_a_test, setting(np, pi_of_a_test=3.0)


@once
def the_environment():
    os.environ["RATE_OF_A_TEST"] = "2.0"
    return lambda x: x * float(os.environ["RATE_OF_A_TEST"]), lambda: os.environ.update(RATE_OF_A_TEST="3.0")


@once
def the_time():
    return lambda x: x * time.perf_counter(), lambda: None


@pytest.mark.parametrize("name", ONCE)
def test_what_is_read_once(name):
    f, change = ONCE[name]()
    compiled = ns.jit(f, mode="python")
    before = compiled(1.5)
    change()
    assert compiled(1.5) == before
    assert f(1.5) != before


# who asks -----------------------------------------------------------------------------------------------------------


def test_a_module_that_is_imported_for_the_first_time_while_tracing(tmp_path, monkeypatch):
    (tmp_path / "first_imported_by_a_test.py").write_text("rate = 2.0")
    monkeypatch.syspath_prepend(tmp_path)

    def f(x):
        import first_imported_by_a_test

        return x * first_imported_by_a_test.rate

    compiled = ns.jit(f, mode="python")
    assert compiled(1.0) == 2.0
    sys.modules["first_imported_by_a_test"].rate = 3.0
    assert compiled(1.0) == 3.0


FACES = {
    "scan": lambda f: lambda x: ns.scan(f, np.array([x]), mode="python")[0][0],
    "ScanFunction": lambda f: (lambda scan: lambda x: scan(np.array([x]))[0])(ns.scan(f, mode="python")),
    "grad": lambda f: (lambda slope: lambda x: slope(x) * x)(ns.grad(ns.jit(f, mode="python"))),
}


@pytest.mark.parametrize("name", ["a_closure", "an_attribute_of_a_base", "the_content_of_an_array", "a_context_variable"])
@pytest.mark.parametrize("face", FACES)
def test_every_face_sees_it(face, name):
    f, change = CASES[name]()
    compiled = FACES[face](f)
    for _ in range(2):
        np.testing.assert_allclose(compiled(1.5), f(1.5))
    change()
    np.testing.assert_allclose(compiled(1.5), f(1.5))


# how values compare -------------------------------------------------------------------------------------------------

NAN = float("nan")


CHANGES = (
    *(
        (2, 2.0),
        (1, True),
        (0.0, -0.0),
        (np.float32(2), np.float64(2)),
        (2.0, np.float64(2)),
        (0j, -0j),
        (1.0, NAN),
        (NAN, -NAN),
        (np.int64(0), np.False_),
    ),
    *(("a", "b"), (b"a", "a"), (None, 0), ((1, 2), (1, 2.0)), (slice(1), slice(2)), (range(2), range(3)), (fractions.Fraction(1), 1)),
)


@pytest.mark.parametrize(("before", "after"), CHANGES)
@pytest.mark.parametrize("place", ["closure", "list", "attribute", "key"])
def test_values_compare_by_type_and_value(place, before, after):
    holder = types.SimpleNamespace(k=before, rows=[before], table={before: 0} if not isinstance(before, slice) else [before])

    def f(x):
        return holder.k, holder.rows, holder.table, x

    guards = Guards(f)
    assert guards.hold()
    if place == "closure":
        k = before
        guards = Guards(lambda x: x + k)
        k = after
    elif place == "list":
        holder.rows[0] = after
    elif place == "attribute":
        holder.k = after
    else:
        holder.table = {repr(after): 0}
    assert not guards.hold()


@pytest.mark.parametrize(
    "value", [2.5, NAN, -0.0, 10**30, 1 + 2j, np.float32(1.5), np.float64("nan"), "some text", (1, (2.5, "b")), range(3)]
)
def test_what_is_equal_and_made_anew_is_the_same(value):
    k, rows = value, [value]

    def f(x):
        return k, rows, x

    guards = Guards(f)
    k = rows[0] = copy.deepcopy(value) if isinstance(value, tuple) else eval(repr(value), {"nan": NAN, "np": np})
    assert guards.hold()


@pytest.mark.parametrize("change", [setting, lambda obj, **values: setting(type(obj), **values)])
def test_attributes_that_no_code_names_do_not_matter(change):
    obj, traces = fresh(count=0)(rate=2.0, count=0), []

    def f(x):
        traces.append(x)
        return x * obj.rate

    compiled = ns.jit(f, mode="python")
    compiled(1.0)
    change(obj, count=5)()
    compiled(1.0)
    assert len(traces) == 1


def test_what_a_function_changes_itself_is_no_reason_to_trace_it_again():
    seen, table = [], {"calls": 0}

    def f(x):
        seen.append(x)
        table["calls"] += 1
        return x * 2

    compiled = ns.jit(f, mode="python")
    for _ in range(3):
        compiled(1.0)
    assert table == {"calls": 1}


def test_guards_do_not_keep_the_function_alive():
    def make():
        table = [2.0]

        def step(s):
            return s * table[0]

        return step

    step = make()
    assert ns.scan(step, outputs_info=1.0, n_steps=2, mode="python")[0].tolist() == [2, 4]
    reference = weakref.ref(step)
    del step
    gc.collect()
    assert reference() is None


def test_threads_may_ask_while_others_change():
    table, done = {str(k): float(k) for k in range(50)}, threading.Event()
    guards = Guards(lambda x: x * table["0"])
    answers = set()

    def ask():
        while not done.is_set():
            answers.add(guards.hold())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    for thread in threads:
        thread.start()
    for k in range(2000):
        table[f"more {k}"] = 1.0
        del table[f"more {k}"]
    done.set()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    assert answers <= {True, False}
    assert guards.hold()
