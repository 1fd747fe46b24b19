"""Chunks as tasks of `dask.distributed`. A task is sent the function and its values; the worker traces it, and finds or makes the code."""

from __future__ import annotations

import hashlib
import io
import pickle
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ..errors import BatchError
from ..front.scan.scan import ScanFunction
from ..front.transforms import Jitted
from ..modes import Mode
from .inputs import Cases
from .lanes import OUR_OWN, CaseFailed, Lanes, Pieces, traced_beside_threads

MOST_PROGRAMS = 8  # that a worker keeps
AHEAD = 2  # tasks for each thread of a worker: one runs, one waits
ATTEMPTS = 20  # for a chunk whose workers die

Answer = tuple[Pieces, list[tuple[int, str]], CaseFailed | None]


@contextmanager
def client_of(scheduler: Any) -> Iterator[Any]:
    """The client, or one for an address, which is closed at the end."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError('ns.batch: scheduler= needs Dask; pip install "numbascan[dask]"') from error
    if isinstance(scheduler, distributed.Client):
        with scheduler.as_current():
            yield scheduler
        return
    if not isinstance(scheduler, str):
        raise TypeError(f"ns.batch: scheduler is {scheduler!r}; give a dask.distributed.Client, or the address of a scheduler")
    with distributed.Client(scheduler, set_as_default=False) as client, client.as_current():
        yield client


def answers(
    client: Any, f: Callable[..., Any], cases: Cases, lanes: Lanes, records: bool, ranges: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, list[Any], Answer]]:
    """For each chunk, in the order in which they are done: its place in `ranges`, its inputs, and what came of it."""
    import distributed

    program = pickled(f, cases, lanes)
    running: dict[Any, tuple[int, list[Any], int]] = {}
    waiting = iter(range(len(ranges)))

    def start(place: int, values: list[Any], attempt: int) -> None:
        first, stop = ranges[place]
        task = client.submit(_chunk, program, lanes.trailing, first, values, stop - first, records, pure=False)
        running[task] = place, values, attempt

    def fill() -> None:
        while len(running) < AHEAD * max(1, sum(client.nthreads().values())):
            place = next(waiting, None)
            if place is None:
                return
            start(place, cases.read(*ranges[place]), 1)

    try:
        fill()
        while running:
            for task in distributed.wait(list(running), return_when="FIRST_COMPLETED").done:
                place, values, attempt = running.pop(task)
                try:
                    answer = task.result()
                except distributed.KilledWorker:
                    if attempt == ATTEMPTS:
                        raise
                    start(place, values, attempt + 1)
                    continue
                yield place, values, answer
            fill()
    finally:
        client.cancel(list(running))


# what is sent, and done there ---------------------------------------------------------------------------------------


def pickled(f: Callable[..., Any], cases: Cases, lanes: Lanes) -> bytes:
    """What a worker needs to make the code, and to see that it is the same."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):
        """Decorated functions go by what they are made of: the worker may not have the module that holds them."""

        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, ScanFunction):
                return ScanFunction, (value.__wrapped__, value._defaults)
            if type(value) is Jitted:
                return Jitted, (value.__wrapped__, value.given_mode, value.name)
            return super().reducer_override(value)

    bare = replace(cases, leaves=tuple(replace(leaf, values=None) for leaf in cases.leaves))
    buffer = io.BytesIO()
    mode: Mode = lanes.mode
    Pickler(buffer).dump((f, bare, mode, list(lanes.seen.values()), lanes.digest(), lanes.outside()))
    return buffer.getvalue()


_programs: OrderedDict[str, Lanes] = OrderedDict()
_making = threading.Lock()


def _lanes(program: bytes) -> Lanes:
    """The lanes of a program, made at its first chunk in this process."""
    key = hashlib.sha256(program).hexdigest()
    with _making:
        if key not in _programs:
            f, cases, mode, seen, digest, outside = pickle.loads(program)
            lanes = traced_beside_threads(f, cases, mode)
            lanes.seen = dict(zip(lanes.seen, seen, strict=True))
            if (lanes.digest(), lanes.outside()) != (digest, outside):
                raise BatchError("ns.batch: the function is another one on the worker; give workers the same packages and files")
            while len(_programs) >= MOST_PROGRAMS:
                _programs.popitem(last=False)
            _programs[key] = lanes
        return _programs[key]


def _chunk(program: bytes, trailing: Any, first: int, values: list[Any], count: int, records: bool) -> Answer:
    """The results of a chunk, on a worker."""
    lanes = _lanes(program)
    if trailing is not None:
        lanes.trailing = trailing
    failed: list[tuple[int, str]] = []
    if records:
        return lanes.each(first, values, count, failed), failed, None
    try:
        return [(0, count, lanes.run(first, values))], failed, None
    except OUR_OWN:
        raise
    except Exception as error:
        failure = lanes.first_failure(first, values, count, error)
        return [], failed, CaseFailed(failure.case, _sendable(failure.error))


def _sendable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
