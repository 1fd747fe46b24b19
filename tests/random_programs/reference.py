"""What scan means, as a plain Python loop over NumPy arrays. Shares nothing with numbascan."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from .streams import Stream
from .words import numbers

# nests ----------------------------------------------------------------------------------------------------------------


def tree_map(function: Callable[..., Any], nest: Any, *others: Any) -> Any:
    """`function` of each leaf; lists, tuples and dicts are nests."""
    if isinstance(nest, dict):
        return {key: tree_map(function, nest[key], *(other[key] for other in others)) for key in nest}
    if isinstance(nest, (list, tuple)):
        return type(nest)(tree_map(function, *items) for items in zip(nest, *others, strict=True))
    return function(nest, *others)


def leaves(nest: Any) -> list[Any]:
    """The leaves, dicts in the order of their sorted keys."""
    if isinstance(nest, dict):
        return [leaf for key in sorted(nest) for leaf in leaves(nest[key])]
    if isinstance(nest, (list, tuple)):
        return [leaf for item in nest for leaf in leaves(item)]
    return [nest]


def scalar_or_array(value: Any) -> Any:
    """A row as NumPy hands it out: an array, or a NumPy scalar."""
    return np.asarray(value)[()]


# what a step returns --------------------------------------------------------------------------------------------------


class Until:
    """The end of a loop."""

    def __init__(self, condition: Any) -> None:
        assert np.ndim(condition) == 0
        self.condition = bool(condition)


class Updates(list[tuple[Any, Any]]):
    """Pairs of a shared variable's value and its new value."""


class Shared:
    """A shared variable. While a step runs, its value stands under its name."""

    def __init__(self, value: Any, name: str) -> None:
        self.value, self.name = scalar_or_array(value), name

    def set_value(self, value: Any) -> None:
        self.value = scalar_or_array(value)


@contextlib.contextmanager
def shared_values(names: dict[str, Any]) -> Iterator[dict[str, Shared]]:
    """The shared variables among `names`, each replaced by its value while this runs."""
    found = {name: value for name, value in names.items() if isinstance(value, Shared)}
    names.update({name: shared.value for name, shared in found.items()})
    try:
        yield found
    finally:
        names.update(found)


def streams_of(names: dict[str, Any]) -> dict[str, Stream]:
    """The random streams among `names`."""
    return {name: value for name, value in names.items() if isinstance(value, Stream)}


@contextlib.contextmanager
def numbered(names: dict[str, Any], t: int) -> Iterator[None]:
    """While this runs, streams draw the numbers of step t."""
    streams = streams_of(names).values()
    for stream in streams:
        stream.begin(t)
    yield
    for stream in streams:
        stream.end(t)


def parse(returned: Any) -> tuple[list[Any], list[tuple[Any, Any]], bool]:
    """Outputs, updates, and whether the loop ends."""
    stop = False
    if isinstance(returned, (list, tuple)) and returned and isinstance(returned[-1], Until):
        stop = returned[-1].condition
        returned = returned[0] if len(returned) == 2 else returned[:-1]
    elif isinstance(returned, Until):
        return [], [], returned.condition
    pairs: list[tuple[Any, Any]] = []
    if isinstance(returned, Updates):
        return [], list(returned), stop
    if isinstance(returned, (list, tuple)) and len(returned) == 2 and any(isinstance(part, Updates) for part in returned):
        (pairs,) = [list(part) for part in returned if isinstance(part, Updates)]
        (returned,) = [part for part in returned if not isinstance(part, Updates)]
    return (list(returned) if isinstance(returned, (list, tuple)) else [returned]), pairs, stop


# the loop -------------------------------------------------------------------------------------------------------------


def _port(item: Any, key: str, default: list[int]) -> tuple[Any, list[int], bool]:
    if isinstance(item, dict) and key in item:
        return item[key], list(item.get("taps", default)), item.get("taps", default) != default
    return item, default, False


def steps_of(sequences: list[tuple[Any, list[int]]], n_steps: int | None) -> int:
    """How many steps there are: as many as the shortest sequence allows, or fewer if asked."""
    usable = [len(leaf) - max(0, *taps) + min(0, *taps) for nest, taps in sequences for leaf in leaves(nest)]
    if n_steps is None:
        return max(0, min(usable))
    assert all(length >= n_steps for length in usable)
    return n_steps


def row_of(rows: Any, taps: list[int], tap: int, t: int, backwards: bool) -> Any:
    """What step t reads of a sequence at a tap."""
    first = max(0, -min(taps))
    if backwards:
        last = len(rows) - 1 - max(0, *taps)
        return scalar_or_array(rows[last - t + tap])
    return scalar_or_array(rows[first + t + tap])


Step = tuple[list[Any], dict[str, Any], bool]
"""What a step gives: outputs, new values of shared variables by name, and whether the loop ends."""


class Loop:
    """One run of a scan."""

    def __init__(
        self, fn: Callable[..., Any], sequences: Any, outputs_info: Any, non_sequences: Any, n_steps: Any, backwards: bool
    ) -> None:
        self.fn, self.backwards = fn, backwards
        self.seqs = [_port(item, "input", [0])[:2] for item in sequences or ()]
        self.infos = None if outputs_info is None else [None if i is None else _port(i, "initial", [-1]) for i in outputs_info]
        self.nons = list(non_sequences or ())
        assert n_steps is None or np.asarray(n_steps).dtype.kind in "iu", "n_steps is no integer"
        self.steps = steps_of(self.seqs, None if n_steps is None else int(n_steps))
        self.histories = [self._history(info) for info in self.infos or ()]
        self.shared: list[str] = []
        self.ran = 0

    @staticmethod
    def _history(info: Any) -> Any:
        if info is None:
            return None
        initial, taps, has_axis = info
        if has_axis:
            depth = -min(taps)
            return [tree_map(lambda leaf, k=k: scalar_or_array(leaf[k]), initial) for k in range(depth)]
        return [tree_map(lambda leaf: leaf if _is_number(leaf) else scalar_or_array(leaf), initial)]

    def arguments(self, t: int, histories: list[Any]) -> list[Any]:
        given = []
        for nest, taps in self.seqs:
            for tap in taps:
                given.append(tree_map(lambda rows, taps=taps, tap=tap: self._row(rows, taps, tap, t), nest))
        for info, history in zip(self.infos or (), histories, strict=True):
            if info is not None:
                given += [history[tap] for tap in info[1]]
        return [*given, *self.nons]

    def _row(self, rows: Any, taps: list[int], tap: int, t: int) -> Any:
        if self.steps == 0:
            return np.ones(rows.shape[1:], rows.dtype)[()]
        return row_of(rows, taps, tap, t, self.backwards)

    def settle_numbers(self) -> None:
        """Initial values that are numbers take dtype and shape of the step's result."""
        given = [None if history is None else history[0] for history in self.histories]
        if not any(_is_number(leaf) for nest in given for leaf in leaves(nest)):
            return
        for _ in range(8):
            outputs, _, _ = self.call(0)
            before = [None if history is None else history[0] for history in self.histories]
            for original, history, output in zip(given, self.histories, outputs, strict=True):
                if history is not None and len(history) == 1:
                    history[0] = tree_map(_settled, original, history[0], output)
            after = [None if history is None else history[0] for history in self.histories]
            if all(_alike(a, b) for a, b in zip(leaves(before), leaves(after), strict=True)):
                return
        raise ValueError("a number as initial value finds no type")

    def call(self, t: int) -> Step:
        """One step."""
        names = self.fn.__globals__
        with numbered(names, t):
            returned = self.fn(*self.arguments(t, self.histories))
        outputs, pairs, stop = parse(returned)
        updates = {}
        for old, value in pairs:
            (name,) = [name for name in self.shared if names[name] is old]
            updates[name] = _same(old, scalar_or_array(value))
        return [tree_map(scalar_or_array, output) for output in outputs], updates, stop

    def run(self) -> tuple[list[Any], dict[str, Any]]:
        """The rows of each output, and the new values of shared variables by name."""
        names = self.fn.__globals__
        with shared_values(names) as shared:
            self.shared = list(shared)
            self.settle_numbers()
            example, updates, _ = self.call(0)
            self._check(example)
            rows: list[list[Any]] = [[] for _ in example]
            new = {name: names[name] for name in updates}
            for t in range(self.steps):
                outputs, updates, stop = self.call(t)
                self._keep(outputs, rows)
                new.update(updates)
                names.update(new)
                self.ran = t + 1
                if stop:
                    break
        new.update({name: np.uint64(stream.count * self.ran) for name, stream in streams_of(names).items() if not stream.outside})
        return [stacked(kept, like) for kept, like in zip(rows, example, strict=True)], new

    def _check(self, outputs: list[Any]) -> None:
        for history, output in zip(self.histories, outputs, strict=bool(self.histories)):
            if history is not None:
                tree_map(_same, history[-1], output)

    def _keep(self, outputs: list[Any], rows: list[list[Any]]) -> None:
        for k, output in enumerate(outputs):
            if self.histories and self.histories[k] is not None:
                tree_map(_same, self.histories[k][-1], output)
                self.histories[k].append(output)
            rows[k].append(output)


class Recorded(Loop):
    """A run that keeps what its steps gave."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.record: dict[int, Step] = {}

    def call(self, t: int) -> Step:
        self.record[t] = super().call(t)
        return self.record[t]


class Truncated(Loop):
    """A run of which the steps before `first` give what they gave in another run, whatever the arguments are now."""

    def __init__(self, record: dict[int, Step], first: int, *args: Any) -> None:
        super().__init__(*args)
        self.record, self.first = record, first

    def call(self, t: int) -> Step:
        if t == 0:
            super().call(0)  # says how much a step draws
        return self.record[t] if t < self.first else super().call(t)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, np.generic)


def _settled(original: Any, before: Any, output: Any) -> Any:
    """A number in the dtype and shape of the step's result; anything else as it is."""
    if not _is_number(original):
        return before
    order = "buifc"  # a number may become one of a later kind only: what is refused is tested elsewhere
    assert order.index(np.asarray(original).dtype.kind) <= order.index(np.asarray(output).dtype.kind), "a number of another kind"
    return np.full(np.shape(output), original, np.asarray(output).dtype)[()]


def _alike(a: Any, b: Any) -> bool:
    return type(a) is type(b) and np.shape(a) == np.shape(b) and np.asarray(a).dtype == np.asarray(b).dtype


def _same(before: Any, after: Any) -> Any:
    assert np.shape(before) == np.shape(after), "a state changes shape"
    assert np.asarray(before).dtype == np.asarray(after).dtype, "a state changes dtype"
    return after


def stacked(rows: list[Any], like: Any) -> Any:
    """The rows along a new first axis; 0 rows keep the shape of `like`."""
    if rows:
        return tree_map(lambda *parts: np.stack(parts), rows[0], *rows[1:])
    return tree_map(lambda leaf: np.empty((0, *np.shape(leaf)), np.asarray(leaf).dtype), like)


def kept(rows: Any, keep_last: int | None, save_every: int) -> Any:
    """The rows that keep_last and save_every leave."""
    if keep_last is not None:
        return tree_map(lambda leaf: leaf[-1] if keep_last == 1 else leaf[-keep_last:], rows)
    return tree_map(lambda leaf: leaf[save_every - 1 :: save_every], rows)


def run(
    fn: Any,
    sequences: Any = None,
    outputs_info: Any = None,
    non_sequences: Any = None,
    n_steps: Any = None,
    make: Callable[..., Loop] = Loop,
    **options: Any,
) -> Any:
    """The outputs as a list, and the new values of the shared variables by name. `make`: Loop, or one like it."""
    loop = make(fn, sequences, outputs_info, non_sequences, n_steps, options.get("go_backwards", False))
    outputs, new = loop.run()
    return [kept(rows, options.get("keep_last"), options.get("save_every", 1)) for rows in outputs], new


def _inner_scan(fn: Any, **keywords: Any) -> Any:
    """ns.scan inside a step."""
    wants_updates = keywords.pop("return_updates", True)
    streams = streams_of(fn.__globals__).values()
    for stream in streams:
        stream.enter()
    try:
        outputs, new = run(fn, **keywords)
    finally:
        for stream in streams:
            stream.leave()
    assert not new
    found = outputs[0] if len(outputs) == 1 else outputs
    return (found, {}) if wants_updates else found


# the words of the programs ----------------------------------------------------------------------------------------------


def _put(x: Any, index: Any, value: Any) -> Any:
    made = np.array(x)
    made[index] = value
    return made


def _inc(x: Any, index: Any, value: Any) -> Any:
    made = np.array(x)
    np.add.at(made, index, value)
    return made


def _ifelse(condition: Any, a: Any, b: Any) -> Any:
    assert np.ndim(condition) == 0, "a condition is a scalar"
    assert np.shape(a) == np.shape(b), "both branches run somewhere"
    return a if condition else b


class Noise:
    """Rounding noise: a few units in the last place on floating-point results."""

    def __init__(self, seed: int, size: float = 4.0) -> None:
        self.rng, self.size = np.random.default_rng(seed), size

    def __call__(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(map(self, value))
        array = np.asarray(value)
        if array.dtype.kind not in "fc" or (isinstance(value, float) and not isinstance(value, np.floating)):
            return value
        factor = 1 + self.size * np.finfo(array.dtype).eps * self.rng.uniform(-1, 1, array.shape)
        return (array * factor).astype(array.dtype)[()]


def namespace(noise: Noise | None = None) -> dict[str, Any]:
    """The names that a program's source finds."""
    ns = SimpleNamespace(scan=_inner_scan, until=Until, shared=Shared)
    return {
        "np": np,
        "ns": ns,
        "numbers": numbers,
        "stream": Stream,
        "put": _put,
        "inc": _inc,
        "ifelse": _ifelse,
        "slope": lambda x: 1 - np.tanh(x) ** 2,
        "as_updates": Updates,
        "noisy": noise or (lambda value: value),
    }
