"""Chunks as tasks of `dask.distributed`.

A task has the values of its cases. The function, and values that are the same for all cases, go to each worker once. The worker traces the
function, and finds or makes the code. It writes results into the store if it reaches that; else they come back.
"""

from __future__ import annotations

import copy
import hashlib
import io
import linecache
import pickle
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from time import perf_counter
from types import CodeType
from typing import Any, Protocol

from ..errors import BatchError
from ..front.scan.scan import ScanFunction
from ..front.transforms import Jitted
from ..modes import Mode
from ..progress import Ask, asked
from .chunk_writer import Address, write_there
from .chunks import Chunks
from .devices import own_device
from .inputs import Cases
from .lanes import OUR_OWN, CaseFailed, ChunkFunction, Failed, Pieces

MOST_PROGRAMS = 8  # the most that a worker keeps
AHEAD = 2  # tasks for each thread of a worker: one runs, one waits
ATTEMPTS = 20  # for a chunk whose workers die

PATIENCE = 30.0  # seconds without a worker until a warning


@dataclass(frozen=True)
class Answer:
    """The outcome of a chunk: its results, the cases that failed, the failure that stops the batch.

    digest: of the results that the worker has stored itself, which are then not among the pieces.
    """

    pieces: Pieces
    failed: Failed
    failure: CaseFailed | None = None
    digest: int | None = None


class Destination(Protocol):
    """Where results go."""

    def address(self) -> Address | None:
        """The address into which workers write, as soon as it is known; None where results must come back."""
        ...

    def took(self, number: int, digest: int) -> bool:
        """True if a chunk that a worker has written is in the store."""
        ...


@contextmanager
def client_of(scheduler: Any) -> Iterator[Any]:
    """The client itself, or a new one for an address, which is closed at the end."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError('ns.batch: scheduler= needs Dask; pip install "numbascan[dask]"') from error
    if isinstance(scheduler, distributed.Client):
        if scheduler.status == "closed":
            raise ValueError("ns.batch: scheduler is a client that is closed; give an open one, or the address of its scheduler")
        with scheduler.as_current():
            yield scheduler
        return
    if not isinstance(scheduler, str):
        raise TypeError(f"ns.batch: scheduler is {scheduler!r}; give a dask.distributed.Client, or the address of a scheduler")
    try:
        distributed.comm.resolve_address(scheduler)  # now, since a client would wait long for a wrong address
    except (ValueError, OSError) as error:
        raise ValueError(f"ns.batch: scheduler is {scheduler!r}, which is no address ({error}); write it as 'tcp://host:8786'") from error
    try:
        client = distributed.Client(scheduler, set_as_default=False)
    except OSError as error:
        raise OSError(f"ns.batch: no scheduler answers at {scheduler!r}: {error}") from error
    with client, client.as_current():
        yield client


def answers(
    client: Any,
    f: Callable[..., Any],
    cases: Cases,
    lanes: ChunkFunction,
    records: bool,
    chunks: Chunks,
    numbers: Sequence[int],
    target: Destination,
) -> Iterator[tuple[int, list[Any], Answer]]:
    """(number, inputs, answer) of each chunk, in the order in which they are done."""
    import distributed

    content = pickled(f, cases, lanes)
    key = hashlib.sha256(content).hexdigest()
    program = client.submit(bytes, content, pure=False)  # sent once; a task, so that it is there again where its worker dies
    running: dict[Any, tuple[int, list[Any], int]] = {}
    waiting = iter(numbers)
    reaches = True  # workers have reached the store so far

    def start(number: int, values: list[Any], attempt: int) -> None:
        first, stop = chunks.cases(number)
        address = target.address() if reaches else None
        arguments = key, program, lanes.trailing, number, (first, stop), values, records, address
        task = client.submit(_chunk, *arguments, pure=False, priority=-number)  # of one priority, Dask takes them in any order
        running[task] = number, values, attempt

    def fill() -> None:
        workers = client.nthreads()
        while len(running) < AHEAD * max(1, len(workers) if lanes.mode.target == "cuda" else sum(workers.values())):
            number = next(waiting, None)
            if number is None:
                return
            start(number, cases.to_send(*chunks.cases(number)), 1)

    try:
        fill()
        while running:
            for task in _finished(client, list(running)):
                number, values, attempt = running.pop(task)
                try:
                    answer = task.result()
                except distributed.KilledWorker:
                    if attempt == ATTEMPTS:
                        raise
                    start(number, values, attempt + 1)
                    continue
                if answer.digest is not None and not target.took(number, answer.digest):
                    reaches = False  # workers see another store in that place
                    start(number, values, attempt)
                    continue
                yield number, values, answer
            fill()
    finally:
        client.cancel(list(running))


def _finished(client: Any, tasks: list[Any]) -> Any:
    """The first tasks that are done. A warning says so where the scheduler has no workers for long."""
    import distributed

    started, warned = perf_counter(), False
    while True:
        try:
            return distributed.wait(tasks, timeout=PATIENCE / 3, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            if client.nthreads():
                started, warned = perf_counter(), False
            elif not warned and perf_counter() - started > PATIENCE:
                warned = True
                warnings.warn(
                    f"ns.batch: the scheduler {client.scheduler.address} has no workers; the batch waits for them. Ctrl-C stops it; "
                    "with a store the same call goes on later",
                    RuntimeWarning,
                    stacklevel=2,
                )


# what is sent, and done there ---------------------------------------------------------------------------------------


def pickled(f: Callable[..., Any], cases: Cases, lanes: ChunkFunction) -> bytes:
    """What a worker needs to make the code and to check that it is the same, as bytes."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):
        """Sends decorated functions by their parts: the worker may not have the module that holds them."""

        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, ScanFunction):
                return ScanFunction, (value.__wrapped__, value._defaults)
            if type(value) is Jitted:
                return Jitted, (value.__wrapped__, value.given_mode, value.name)
            if isinstance(value, CodeType):  # with its file, which cloudpickle leaves out since version 3.1.3
                return _code_of, (value.co_filename, linecache.getlines(value.co_filename), *self.dispatch_table[CodeType](value))
            return super().reducer_override(value)

    buffer = io.BytesIO()
    mode: Mode = lanes.mode
    Pickler(buffer).dump((f, cases.without_rows(), mode, list(lanes.seen.values()), lanes.digest(), lanes.outside()))
    return buffer.getvalue()


def _code_of(file: str, lines: list[str], make: Callable[..., CodeType], parts: tuple[Any, ...]) -> CodeType:
    """Code with its file name, for messages, and the lines of the file, for the conversion of plain Python: a worker may not have it."""
    if lines and not linecache.getlines(file):
        linecache.cache[file] = (sum(map(len, lines)), None, lines, file)
    return make(*parts).replace(co_filename=file)


_programs: OrderedDict[str, tuple[Cases, ChunkFunction]] = OrderedDict()
_making = threading.Lock()
_on_device = threading.Lock()  # held while a chunk runs on the GPU


def _program(key: str, program: bytes) -> tuple[Cases, ChunkFunction]:
    """The cases and lanes of a program, made at its first chunk in this process. `key`: its digest."""
    with _making:
        if key not in _programs:
            f, cases, mode, seen, digest, outside = pickle.loads(program)
            if mode.target == "cuda" and not mode.device:
                mode = replace(mode, device=own_device())
            lanes = ChunkFunction(f, cases, mode)
            lanes.seen = dict(zip(lanes.seen, seen, strict=True))
            if (lanes.digest(), lanes.outside()) != (digest, outside):
                raise BatchError("ns.batch: the function is another one on the worker; give workers the same packages and files")
            while len(_programs) >= MOST_PROGRAMS:
                _programs.popitem(last=False)
            _programs[key] = cases, lanes
        return _programs[key]


def _chunk(
    key: str,
    program: bytes,
    trailing: Any,
    number: int,
    bounds: tuple[int, int],
    sent: list[Any],
    records: bool,
    address: Address | None,
) -> Answer:
    """The answer for a chunk. Runs on a worker."""
    cases, lanes = _program(key, program)
    lanes = copy.copy(lanes)  # for this chunk: other chunks and batches of the program have shapes of their own
    lanes.trailing = trailing
    values = cases.received(sent, *bounds)
    with _on_device if lanes.mode.target == "cuda" else nullcontext(), asked(_ask_of_task()):
        answer = _computed(lanes, bounds, values, records)
    if address is None or answer.failure is not None:
        return answer
    digest = write_there(address, number, values, answer.pieces, answer.failed)
    return answer if digest is None else Answer([], answer.failed, None, digest)


class _Cancelled(BaseException):
    """The batch of a chunk was stopped. A BaseException, since an Exception would count as a case that fails."""


def _ask_of_task() -> Ask | None:
    """A function that raises once the task of this thread is cancelled; None outside a task. Dask itself stops no running function."""
    import distributed

    try:
        worker = distributed.get_worker()
        key, tasks = worker.get_current_task(), worker.state.tasks
    except (AttributeError, KeyError, ValueError):  # another Dask, or no task
        return None

    def ask() -> None:
        task = tasks.get(key)
        if task is None or task.state == "cancelled":
            raise _Cancelled

    return ask


def _computed(lanes: ChunkFunction, bounds: tuple[int, int], values: list[Any], records: bool) -> Answer:
    first, stop = bounds
    failed: Failed = []
    if records:
        return Answer(lanes.each(first, values, stop - first, failed), failed)
    try:
        return Answer([(0, stop - first, lanes.run(first, values))], failed)
    except OUR_OWN:
        raise
    except Exception as error:
        failure = lanes.first_failure(first, values, stop - first, error)
        return Answer([], failed, CaseFailed(failure.case, _sendable(failure.error)))


def _sendable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
