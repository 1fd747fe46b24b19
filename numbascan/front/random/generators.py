"""NumPy's own generators in traced functions: NumPy's distributions, arguments and results, with the numbers of a stream.

A generator from before the call, read from outside or passed as an argument, gives each call one seed; its draws are those of a
`RandomStream` with that seed. A generator made inside from a seed draws the same numbers in each call. GlobalDrawError for what a stream
cannot do.
"""

from __future__ import annotations

import copy
import functools
import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import GlobalDrawError
from ...ir.node import constant_value
from ..draw_scopes import CallDraws, Key, StepDraws, current_scope, in_place_of
from ..plain.calls import METHODS_OF, replaces
from ..plain.calls import _watched as watched
from ..plain.frames import FRAMES
from ..seeded import GENERATORS, seed_from, stands_in
from ..shared import STATES, SeededContainer, SharedVariable, shared_in
from ..tracing import current_mark
from ..variable import METHODS, Variable, as_variable, at_line
from .base_draws import checked
from .numpy_draws import GeneratorDraws, RandomStateDraws
from .random_stream import RandomStream

# streams --------------------------------------------------------------------------------------------------------------


class _Source:
    """The source of seeds for a generator's streams.

    seed_before: seeds the generator itself at each run, before it gives a seed; None: nothing does. order: sources give their seeds in this
    order: those without `seed_before` first, then as they were made.
    """

    _numbers = itertools.count(1)

    def __init__(self, generator: Any, seed_before: Any = None) -> None:
        self.generator, self.seed_before = generator, seed_before
        self.order = 0 if seed_before is None else next(self._numbers)
        self.stream: Any = None  # kept alive by the source, so that it is found again as long as compiled code draws from it

    def __reduce__(self) -> tuple[Any, ...]:
        return _Source, (self.generator, self.seed_before)

    def seed(self) -> int:
        """One seed."""
        if self.seed_before is not None:
            self.generator.seed(self.seed_before)
        return seed_from(self.generator)


class _GeneratorStream(RandomStream):
    """A stream whose state is not carried from call to call."""

    def _become(self, trace: int, is_local: bool) -> None:
        """Sets all attributes of a stream. trace: the mark of the trace that it belongs to, 0 for all traces."""
        self.trace, self.is_local, self.name, self._seed = trace, is_local, "rng", 0
        self.scope, self.is_carried = None, False
        self.states, self.pending = [], {}


class _OuterStream(_GeneratorStream):
    """The draws of a generator from before the call. Its states begin anew with each run, under a seed from the generator."""

    def __init__(self, source: _Source) -> None:
        self._become(0, is_local=False)
        self.source, source.stream = source, self
        self.states = [self._state(0)]

    def _state(self, stream: int) -> SharedVariable:
        state = shared_in(SeededContainer(self.source, stream), f"rng_state{stream}" if stream else "rng_state")
        STATES.add(state.node)
        return state


class _GivenStream(_GeneratorStream):
    """The draws of a generator that is an argument. state_given: its state, passed by the call."""

    def __init__(self, state_given: Variable) -> None:
        self._become(0, is_local=True)
        self.state_given = state_given

    def first(self) -> tuple[Key, Variable]:
        """Key and number of the first draw of a call."""
        return (self.state_given[0], self.state_given[1]), as_variable(np.int64(0))


class _InnerStream(_GeneratorStream):
    """The draws of a generator that traced code makes from a seed. They begin anew each time that the code runs."""

    def __init__(self, seed: Any) -> None:
        self._become(current_mark(), is_local=True)
        scope = current_scope()
        self.scope = scope if isinstance(scope, (CallDraws, StepDraws)) else CallDraws()
        self.key: Key = METHODS["astype"](as_variable(seed), "uint64"), as_variable(np.uint64(0))

    def first(self) -> tuple[Key, Variable]:
        """Key and number of the first draw."""
        return self.key, as_variable(np.int64(0))


_STREAMS: weakref.WeakValueDictionary[int, _OuterStream] = weakref.WeakValueDictionary()  # by the id of a generator, which they hold
_FINDING = threading.RLock()


def _outer_stream(generator: Any) -> _OuterStream:
    """The stream of a generator from before the call: one for all functions that draw from it."""
    with _FINDING:
        stream = _STREAMS.get(id(generator))
        if stream is None or stream.source.generator is not generator:
            stream = _STREAMS[id(generator)] = _OuterStream(_Source(generator))
        return stream


def _stream_of(generator: Any) -> RandomStream:
    own = generator.__dict__["stream"] if isinstance(generator, _StandIn) else _outer_stream(generator)
    stream = in_place_of(own)
    assert isinstance(stream, RandomStream)
    return stream


# generators -----------------------------------------------------------------------------------------------------------


class _StandIn:
    """Stands for a generator in a traced function."""

    def __init__(self, stream: RandomStream) -> None:
        base: Any = super()
        base.__init__(np.random.MT19937(0) if isinstance(self, np.random.RandomState) else np.random.PCG64(0))
        self.__dict__["stream"] = stream

    def __repr__(self) -> str:
        return f"<a {_class_of(self)} in a traced function>"

    def _refused(self, *_: Any, **__: Any) -> Any:
        raise GlobalDrawError(
            f"a generator of random numbers is copied, or its state is read{at_line()}, in a function that is traced, where it has none; "
            "do that outside"
        )

    bit_generator = property(_refused)
    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = __setstate__ = _refused


def _class_of(generator: Any) -> str:
    return "RandomState" if isinstance(generator, np.random.RandomState) else "Generator"


def _drawn(generator: Any, name: str) -> Callable[..., Any]:
    """The traced form of a generator's method. GlobalDrawError for a method that streams lack."""
    if name == "seed" and isinstance(generator, np.random.RandomState):
        return functools.partial(_seed, generator)
    table = RandomStateDraws if isinstance(generator, np.random.RandomState) else GeneratorDraws
    if name.startswith("_") or not hasattr(table, name):
        raise GlobalDrawError(
            f"{_class_of(generator)}.{name} in a function that is traced{at_line()}: it would draw once, and its numbers be the same at "
            "every step and call; call it outside, and pass the numbers as an argument. The generator's other methods, as normal, uniform, "
            "integers, choice and permutation, may be called here"
        )

    def draw(*args: Any, **kwargs: Any) -> Any:
        return getattr(table(_stream_of(generator)), name)(*args, **kwargs)

    draw.__name__ = name
    return draw


def _with_methods(base: type) -> dict[str, Any]:
    """The methods of stand-ins, for code that is not converted."""

    def method(name: str) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            return _drawn(self, name)(*args, **kwargs)

        call.__name__ = name
        return call

    return {name: method(name) for name in dir(base) if not name.startswith("_") and name != "bit_generator"}


_Generator: Any = type("_Generator", (_StandIn, np.random.Generator), {"__module__": __name__, **_with_methods(np.random.Generator)})
_RandomState: Any = type(
    "_RandomState", (_StandIn, np.random.RandomState), {"__module__": __name__, **_with_methods(np.random.RandomState)}
)

METHODS_OF.update(dict.fromkeys((*GENERATORS, _Generator, _RandomState), _drawn))


@stands_in(np.random.Generator)
def _given_generator(state: Variable) -> Any:
    return _Generator(_GivenStream(state))


@stands_in(np.random.RandomState)
def _given_random_state(state: Variable) -> Any:
    return _RandomState(_GivenStream(state))


# made inside ----------------------------------------------------------------------------------------------------------


def _made(cls: Any, seed: Any, make: Callable[[Any], Any]) -> Any:
    """A generator made by traced code. Without a seed, each call gets another one, from the system. make: NumPy's constructor."""
    if seed is None:
        return cls(_OuterStream(_Source(make(None))))
    if isinstance(seed, (int, np.integer, Variable)):
        return cls(_InnerStream(_checked_seed(seed)))
    make(seed)  # raises for what is no seed
    if isinstance(seed, np.random.BitGenerator):
        raise GlobalDrawError(
            f"a generator is made of a {type(seed).__name__}{at_line()}; write np.random.default_rng(seed), or make it outside"
        )
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return cls(_InnerStream(np.uint64(sequence.generate_state(1, np.uint64)[0])))


def _checked_seed(seed: Any) -> Any:
    """A whole number as a seed. ValueError for a negative one."""
    if isinstance(seed, Variable) and (seed.ndim or seed.type.kind not in "iu"):
        raise TypeError(f"the seed of a generator is {seed!r}{at_line()}; it must be a whole number")
    known = constant_value(seed.node) if isinstance(seed, Variable) else seed
    if known is None:
        return checked("default_rng", "seed", seed, "at least 0", lambda x: x >= 0)
    if int(known) < 0:
        raise ValueError(f"the seed of a generator is {int(known)}{at_line()}; it must be at least 0")
    return np.uint64(known) if int(known) < 2**64 else np.uint64(np.random.SeedSequence(int(known)).generate_state(1, np.uint64)[0])


@replaces(np.random.default_rng)
def _default_rng(seed: Any = None) -> Any:
    return seed if isinstance(seed, np.random.Generator) else _made(_Generator, seed, np.random.default_rng)


@replaces(np.random.RandomState)
def _random_state(seed: Any = None) -> Any:
    return _made(_RandomState, seed, np.random.RandomState)


@replaces(np.random.Generator)
def _generator(bit_generator: Any) -> Any:
    raise GlobalDrawError(
        f"np.random.Generator is called in a function that is traced{at_line()}; write np.random.default_rng(seed), or make it outside"
    )


@replaces(copy.copy)
def _copy(x: Any) -> Any:
    return _refused_copy(x) if isinstance(x, GENERATORS) else watched(copy.copy, x)


@replaces(copy.deepcopy)
def _deepcopy(x: Any, *args: Any, **kwargs: Any) -> Any:
    return _refused_copy(x) if isinstance(x, GENERATORS) else watched(copy.deepcopy, x, *args, **kwargs)


def _refused_copy(generator: Any) -> Any:
    raise GlobalDrawError(f"a generator of random numbers is copied{at_line()} in a function that is traced; copy it outside")


# NumPy's global generator ---------------------------------------------------------------------------------------------


def _global_state() -> Any:
    return np.random.normal.__self__  # type: ignore[attr-defined]


@replaces(np.random.seed)
def _global_seed(seed: Any = None) -> None:
    _seed(_global_state(), seed)


def _seed(generator: Any, seed: Any = None) -> None:
    """`RandomState.seed`: later draws of the function begin anew from `seed`. Each run then seeds a generator from outside, too.

    GlobalDrawError:
    - in a step or a branch, where only the run would tell whether it happens;
    - for a seed that is missing or not known while tracing;
    - for a generator that is an argument.
    """
    scope = current_scope()
    if not isinstance(scope, CallDraws) or FRAMES.stack or seed is None or isinstance(seed, Variable):
        raise GlobalDrawError(
            f"a generator is seeded{at_line()} in a step, a branch, or without a known seed; seed it at the beginning of the function, or "
            "write np.random.default_rng(seed) there"
        )
    own = generator.__dict__["stream"] if isinstance(generator, _StandIn) else _outer_stream(generator)
    if isinstance(own, _OuterStream):
        np.random.RandomState(seed)  # raises for what is no seed
        scope.others[own] = _OuterStream(_Source(own.source.generator, seed))
    elif isinstance(own, _InnerStream) and own.scope is scope:
        scope.others[own] = _random_state(seed).__dict__["stream"]
    else:
        raise GlobalDrawError(f"a generator that is an argument is seeded{at_line()}; give one that is made of the seed")


def _by_function(name: str) -> Callable[..., Any]:
    return lambda *args, **kwargs: _drawn(_global_state(), name)(*args, **kwargs)


replaces(np.random.ranf, np.random.sample)(_by_function("random_sample"))
