"""`ns.batch`: the loop over chunks, which reads ahead, runs, and writes behind."""

from __future__ import annotations

import math
import operator
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import Any, Protocol

import numpy as np

from ..checkpoint import number_of_bytes
from ..errors import BatchError, ScanTypeError
from ..front.labels import table, with_rows
from ..front.scan.scan import ScanFunction
from ..front.tree import unflatten
from ..modes import Mode, as_mode
from ..tracebacks import entry
from .chunk_writer import missing
from .chunks import Chunks, cases_in_a_chunk, chunks_of
from .inputs import Cases, cases_of
from .lanes import OUR_OWN, CaseFailed, ChunkFunction, Failed, Piece, Pieces, seconds_of, words_of
from .place import Place
from .progress import Progress
from .remote import Destination, answers, client_of
from .scans import by_name
from .store import BatchStore

STOPPED = "ns.batch: stopped"  # prefix of messages about a batch with a store that was stopped on its way


class Sink(Destination, Protocol):
    """Where results go."""

    def ready(self) -> None:
        """Makes the arrays of the results, as soon as their shapes are known."""
        ...

    def write(self, number: int, values: Sequence[Any], pieces: Pieces, failed: Failed) -> int:
        """Takes the results of a chunk and returns its number of cases."""
        ...


@entry
def batch(
    f: Callable[..., Any],
    inputs: Any,
    *,
    in_axes: Any = 0,
    shared: str | Collection[str] = (),
    chunk: int | str = "auto",
    memory: int | str = "1GB",
    mode: Mode | str | None = None,
    progress: bool | Callable[[int, int], object] = True,
    store: Any = None,
    resume: bool = True,
    part: tuple[int, int] | None = None,
    on_error: str = "raise",
    scheduler: Any = None,
) -> Any:
    """`f` for many cases, chunk by chunk: what `ns.vmap(f)` gives, for inputs and results of any size, into memory or into a store.

    The bits of a case depend on its inputs and its number alone: not on chunks, threads, parts or workers. Random draws go by the number of
    the case, and a stream is left as it was.

    Arguments:
        f: a function of one case. It returns an array, or a nest of tuples, lists and dicts of arrays.
        inputs: a tuple (arguments by position), a dict (by name) or an `ns.grid`, of arrays with an axis of cases: NumPy's, memory maps,
            Zarr or Dask arrays, which are read chunk by chunk. An argument that is one number is the same for all cases. A list or dict
            inside is a nest. A DataFrame of pandas is a dict of its columns, a Dataset of xarray one of its variables.
        in_axes: the axis of cases, or one for each argument (for a dict a dict of the same keys); None: the same for all cases.
        shared: the name of an argument that is the same for all cases, or several: their None in `in_axes`.
        chunk: how many cases are computed at a time; "auto": as many as fit into `memory` and take about a second. On a grid it is rounded
            to whole runs of the last axes.
        memory: for the chunks that are read, run and written at a time: bytes, or a text such as "512MB". Results come on top, unless they
            go to a store.
        mode: see ns.Mode.
        progress: True for a bar, or for lines where there is no terminal; False; or a function of (cases_done, cases).
        store: a path, an open Zarr group, or a Zarr store, where results are kept (`pip install "numbascan[batch]"`). Called again, the
            cases that are missing are computed.
        resume: False replaces what `ns.batch` has stored there before.
        part: (i, n): chunks i, i + n, … alone, for jobs that share a store. Needs a store and an int as `chunk`.
        on_error: "raise" stops at the first case that fails. "record" goes on: its results are NaN (integers and booleans 0).
        scheduler: a `dask.distributed.Client`, or the address of one: chunks are its tasks (`pip install "numbascan[dask]"`).

    Returns the nest of results, with a leading axis of cases (of a grid with its axes). With a store these are Zarr arrays, not loaded.
    In memory, and where the cases have an index of pandas or a dimension of xarray, results are Series, DataFrames or DataArrays with it.
    With on_error="record" a pair of this and a list of (case, message).

    Raises BatchError (a RuntimeError), with `case`, `inputs` and its cause, for a case that fails, and for a store that another process
    uses; ValueError for inputs with different numbers of cases, and for a store of another program, other inputs or another chunk;
    TypeError for arguments that `f` does not take; OSError for a store that cannot be written; ImportError for a package that is missing.

    >>> import numbascan as ns, numpy as np
    >>> ns.batch(lambda x, y: {"sum": x + y}, (np.arange(3.0), 10.0), progress=False)
    {'sum': array([10., 11., 12.])}
    """
    _check(chunk, part, on_error, progress, store)
    with terminated(), nullcontext() if scheduler is None else client_of(scheduler) as client:
        plan = _plan(f, inputs, in_axes, shared, chunk, memory, mode, progress, on_error, client)
        return plan.in_memory() if store is None else plan.in_store(store, resume, part)


def was_stopped(error: BaseException) -> bool:
    """True if this error stopped a batch with a store on its way, False if it came before the batch began."""
    return any(note.startswith(STOPPED) for note in getattr(error, "__notes__", ()))


def estimate(
    f: Callable[..., Any], inputs: Any, *, in_axes: Any, chunk: Any, memory: Any, mode: Any, part: Any, on_error: str, store: Any
) -> list[tuple[str, str]]:
    """The cost of a batch, measured on a trial chunk: pairs of a label and a text. Nothing is stored."""
    _check(chunk, part, on_error, False, store)
    plan = _plan(f, inputs, in_axes, (), chunk, memory, mode, False, on_error)
    chunks = plan.chunks()
    numbers = range(len(chunks)) if part is None else range(part[0], len(chunks), part[1])
    ranges = [chunks.cases(number) for number in numbers]
    count = sum(stop - first for first, stop in ranges)
    tried = min(chunks.size, len(plan.cases))
    seconds = plan.seconds(tried)
    time = (
        "unknown: one of the first cases fails"
        if seconds is None
        else f"{seconds / max(tried, 1) * count:.3g} s, by a trial of {tried:,} cases"
    )
    return [
        ("cases", f"{count:,}"),
        ("chunks", f"{len(ranges):,} of {chunks.size:,} cases"),
        ("inputs", f"{count * plan.cases.bytes_per_case:,} bytes"),
        ("results", f"{count * plan.bytes_of_results():,} bytes"),
        ("memory", f"{plan.bytes_in_work(chunks.size):,} bytes for the chunks in work"),
        ("time", time),
    ]


def _plan(
    f: Any, inputs: Any, in_axes: Any, shared: Any, chunk: Any, memory: Any, mode: Any, progress: Any, on_error: str, client: Any = None
) -> _Plan:
    """The batch that these arguments mean."""
    limit, names = _bytes(memory), _names(shared)
    columns = table(inputs)
    inputs = inputs if columns is None else columns
    if isinstance(f, ScanFunction):
        f, inputs, in_axes, names = by_name(f, inputs, in_axes, names)
    if not callable(f):
        raise TypeError(f"ns.batch: f is {f!r}, which cannot be called; give a function of one case")
    cases = cases_of(f, inputs, in_axes, names)
    try:
        lanes = ChunkFunction(f, cases, None if mode is None else as_mode(mode))
    except ScanTypeError as error:
        if whole := [leaf.label.removeprefix("ns.batch: ") for leaf in cases.leaves if leaf.axis is not None and leaf.type.kind in "iu"]:
            error.add_note(
                f"ns.batch: the inputs {', '.join(whole)} are whole numbers; where a loop makes floats of them give floats, as 1.0 for 1"
            )
        raise
    plan = _Plan(f, cases, lanes, chunk, limit, progress, on_error)
    plan.client = client
    return plan


def _names(shared: Any) -> list[str]:
    names = [shared] if isinstance(shared, str) else list(shared) if isinstance(shared, Collection) else [shared]
    if other := [name for name in names if not isinstance(name, str)]:
        raise TypeError(f"ns.batch: shared holds {other[0]!r}; give the names of arguments that are the same for all cases, as shared='W'")
    return names


def _check(chunk: Any, part: Any, on_error: Any, progress: Any, store: Any) -> None:
    if on_error not in ("raise", "record"):
        raise ValueError(f"ns.batch: on_error is {on_error!r}; it must be 'raise' or 'record'")
    if chunk != "auto" and _number(chunk) < 1:
        raise ValueError(f"ns.batch: chunk is {chunk!r}; give a number of cases, or 'auto'")
    if not isinstance(progress, bool) and not callable(progress):
        raise TypeError(f"ns.batch: progress is {progress!r}; give True, False, or a function of (cases_done, cases)")
    if part is None:
        return
    if store is None or chunk == "auto":
        raise ValueError("ns.batch: part= needs a store and a chunk that is an int, or the parts would not know which chunks are theirs")
    if not isinstance(part, (tuple, list)) or len(part) != 2 or not 0 <= _number(part[0]) < _number(part[1]):
        raise ValueError(f"ns.batch: part is {part!r}; give (i, n) with 0 <= i < n")


def _number(value: Any) -> int:
    """An int, as Python's or NumPy's; -1 for what is none."""
    try:
        return -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return -1


def _bytes(memory: Any) -> int:
    size = number_of_bytes(memory) if isinstance(memory, str) else memory
    if isinstance(size, bool) or not isinstance(size, (int, float, np.integer)) or not 1 <= size < math.inf:
        raise ValueError(f"ns.batch: memory is {memory!r}; give a positive number of bytes, or a text such as '512MB' or '2GiB'")
    return int(size)


class _Plan:
    """A batch whose arguments are read."""

    def __init__(
        self, f: Callable[..., Any], cases: Cases, lanes: ChunkFunction, chunk: int | str, limit: int, progress: Any, on_error: str
    ) -> None:
        self.f, self.cases, self.lanes, self.chunk, self.limit = f, cases, lanes, chunk, limit
        self.progress, self.on_error = progress, on_error
        self.client: Any = None  # of Dask, where chunks run on workers

    # how large a chunk is -------------------------------------------------------------------------------------------

    def chunks(self) -> Chunks:
        """The chunks, of the size that was asked for or measured."""
        size = self.size() if isinstance(self.chunk, str) else operator.index(self.chunk)
        return chunks_of(self.cases.shape, size)

    def size(self) -> int:
        """The number of cases of a chunk, where none was asked for."""
        return cases_in_a_chunk(len(self.cases), self.cases_in_memory(), self.seconds)

    def cases_in_memory(self) -> int:
        """The number of cases of a chunk whose memory fits."""
        fixed, per_case = self._bytes()
        return max(1, (self.limit - fixed) // per_case)

    def bytes_in_work(self, count: int) -> int:
        """Bytes for chunks of `count` cases: one is read, one runs and one is written at a time."""
        fixed, per_case = self._bytes()
        return fixed + count * per_case

    def _bytes(self) -> tuple[int, int]:
        one, two = (self.lanes.bytes_of(self.like(count)) for count in (16, 32))
        run = max(0, math.ceil((two - one) / 16))
        results = self.bytes_of_results()
        return max(0, one - 16 * run), max(1, 2 * max(run, results) + 3 * self.cases.bytes_per_case)

    def bytes_of_results(self) -> int:
        """Bytes of the results of one case."""
        shapes = self.lanes.shapes(self.like(0))
        return sum(math.prod(shape) * dtype.itemsize for shape, dtype in zip(shapes, self.lanes.dtypes, strict=True))

    def like(self, count: int) -> list[Any]:
        """Arguments in the shapes of `count` cases. Their elements play no part."""
        return [
            np.zeros((count, *self._row(k)), leaf.type.dtype) if leaf.axis is not None else leaf.values
            for k, leaf in enumerate(self.cases.leaves)
        ]

    def _row(self, k: int) -> tuple[int, ...]:
        return tuple(np.shape(self.cases.leaves[k].read(0, 0))[1:])

    def seconds(self, count: int) -> float | None:
        """The time of the first `count` cases, compilation apart; None where one of them fails."""
        values = self.cases.read(0, count)
        self.lanes.prepare(values)
        try:
            return seconds_of(lambda: self.lanes.run(0, values))
        except OUR_OWN:
            raise
        except Exception:  # of a case that fails: the batch reports it when its turn comes
            return None

    # the loop over chunks -------------------------------------------------------------------------------------------

    def compute(self, first: int, values: Sequence[Any], count: int) -> tuple[Pieces, Failed]:
        """The results of a chunk and the failures in it. BatchError for a case that fails, unless failures are recorded."""
        failed: Failed = []
        if self.on_error == "record":
            return self.lanes.each(first, values, count, failed), failed
        try:
            return [(0, count, self.lanes.run(first, values))], failed
        except OUR_OWN:
            raise
        except Exception as error:
            failure = self.lanes.first_failure(first, values, count, error)
        raise self._error_of(failure) from failure.error

    def _error_of(self, failure: CaseFailed) -> BatchError:
        text = f"ns.batch: case {failure.case} failed: {words_of(failure.error)}"
        return BatchError(text, failure.case, self.cases.of_case(failure.case))

    def run(self, chunks: Chunks, numbers: Sequence[int], sink: Sink, progress: Progress) -> None:
        """Computes chunks: the next one is read, and the one before is written, while one runs."""
        if self.client is not None:
            self._run_remotely(chunks, numbers, sink, progress)
            return
        ranges = [chunks.cases(number) for number in numbers]
        writing: Future[int] | None = None
        reader = ThreadPoolExecutor(1, "numbascan-read")
        with ThreadPoolExecutor(1, "numbascan-write") as writer:
            reading = reader.submit(self.cases.read, *ranges[0]) if ranges else None
            try:
                for k, (number, (first, stop)) in enumerate(zip(numbers, ranges, strict=True)):
                    assert reading is not None
                    values = reading.result()
                    reading = reader.submit(self.cases.read, *ranges[k + 1]) if k + 1 < len(ranges) else None
                    pieces, failed = self.compute(first, values, stop - first)
                    if writing is not None:
                        written, writing = writing.result(), None  # before progress is told, which may raise: no chunk counts twice
                        progress.add(written)
                    writing = writer.submit(sink.write, number, values, pieces, failed)
            finally:
                reader.shutdown(wait=False, cancel_futures=True)  # a batch that is stopped does not wait for inputs that nobody needs
                if writing is not None:
                    progress.add(writing.result())

    def _run_remotely(self, chunks: Chunks, numbers: Sequence[int], sink: Sink, progress: Progress) -> None:
        """Computes chunks on workers. Results that they do not store themselves come back and are written here."""
        self.lanes.trailing = self.lanes.trailing or self.lanes.declared()
        sink.ready()
        records = self.on_error == "record"
        for number, values, answer in answers(self.client, self.f, self.cases, self.lanes, records, chunks, numbers, sink):
            first, stop = chunks.cases(number)
            if answer.failure is not None:
                raise self._error_of(answer.failure) from answer.failure.error
            if answer.digest is not None:  # it is stored
                progress.add(stop - first)
                continue
            pieces = [self._checked(piece, first, answer.failed) for piece in answer.pieces]
            progress.add(sink.write(number, values, pieces, answer.failed))

    def _checked(self, piece: Piece, first: int, failed: Failed) -> Piece:
        """The results of a worker, checked against the shapes of results so far, which it may not know."""
        low, high, results = piece
        try:
            self.lanes.check(results or [])
        except ValueError as error:
            if self.on_error == "raise":
                raise self._error_of(CaseFailed(first + low, error)) from error
            failed += [(first + k, words_of(error)) for k in range(low, high)]
            return low, high, None
        return piece

    def in_memory(self) -> Any:
        """The results as arrays."""
        chunks = self.chunks()
        sink = _Arrays(self.cases, self.lanes, chunks)
        progress = Progress(self.progress, 0, len(self.cases))
        try:
            self.run(chunks, range(len(chunks)), sink, progress)
        finally:
            progress.close()
        arrays, rows = sink.arrays(self.like(0)), self.cases.rows
        results = unflatten(self.lanes.structure, arrays if rows is None else [with_rows(array, rows) for array in arrays])
        return (results, sorted(sink.failed)) if self.on_error == "record" else results

    def in_store(self, target: Any, resume: bool, part: tuple[int, int] | None) -> Any:
        """The results as Zarr arrays."""
        if part is not None and not resume:
            raise ValueError(
                "ns.batch: resume=False with part= would remove what the other parts have done; remove the store before they start"
            )
        part = None if part is None else (operator.index(part[0]), operator.index(part[1]))
        store = BatchStore(Place(target), self.cases, self.lanes, part, self.on_error == "record")
        with store.locked():
            with store.place.legible():
                store.open(resume, self.chunk if isinstance(self.chunk, str) else operator.index(self.chunk), self.size)
                numbers = range(len(store.chunks)) if part is None else range(part[0], len(store.chunks), part[1])
                numbers_left = store.missing(numbers)
            count = sum(map(store.chunks.count, numbers))
            if self.on_error == "raise":
                self._raise_recorded(store, set(numbers) - set(numbers_left))
            progress = Progress(self.progress, store.kept, count)
            with self._told(store, progress):
                try:
                    self.run(store.chunks, numbers_left, store, progress)
                finally:
                    progress.close()
            store.needs_shapes()
            with self._told(store, progress), store.place.legible():
                store.finish(self.like(0))
            results = unflatten(self.lanes.structure, store.results())
            return (results, store.failed()) if self.on_error == "record" else results

    def _raise_recorded(self, store: BatchStore, numbers: set[int]) -> None:
        """BatchError for a case among chunks `numbers` that failed in an earlier batch, which recorded it."""
        for case, message in store.failed() if numbers else ():
            if any(first <= case < stop for first, stop in map(store.chunks.cases, numbers)):
                raise BatchError(
                    f"ns.batch: case {case} failed before: {message}; on_error='record' goes on", case, self.cases.of_case(case)
                )

    @contextmanager
    def _told(self, store: BatchStore, progress: Progress) -> Iterator[None]:
        """Inside, any error that stops the batch gets a note on what is kept."""
        try:
            yield
        except BaseException as error:
            self._stopped(error, store, progress)
            raise

    def _stopped(self, error: BaseException, store: BatchStore, progress: Progress) -> None:
        """Says what is kept, and closes the store if possible."""
        name, texts = store.place.name, []
        try:
            with store.place.legible():
                store.close()
        except Exception as second:  # only a note: the error that stopped the batch counts
            texts.append(f"ns.batch: the store {name} was not closed: {second}")
        kept = f"after {store.kept:,} of {progress.count:,} cases, which {name} keeps; the same call goes on from there"
        texts.append(f"{STOPPED} {kept}" if store.is_there() else f"{STOPPED}; what {name} keeps cannot be told")
        for text in texts:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                print(text, file=sys.stderr, flush=True)
            else:
                error.add_note(text)


class _Arrays:
    """Results in memory."""

    def __init__(self, cases: Cases, lanes: ChunkFunction, chunks: Chunks) -> None:
        self.cases, self.lanes, self.chunks = cases, lanes, chunks
        self.failed: Failed = []
        self._arrays: list[np.ndarray] | None = None

    def write(self, number: int, values: Sequence[Any], pieces: Pieces, failed: Failed) -> int:
        self.ready()
        first, stop = self.chunks.cases(number)
        self.failed += failed
        for low, high, results in pieces:
            if results is not None:
                for whole, array in zip(self._arrays or [], results, strict=True):
                    whole[first + low : first + high] = array
        return stop - first

    def ready(self) -> None:
        shapes = self.lanes.trailing
        if self._arrays is None and shapes is not None:
            self._arrays = [np.empty((len(self.cases), *shape), dtype) for shape, dtype in zip(shapes, self.lanes.dtypes, strict=True)]

    def address(self) -> None:
        """None: results come back from workers."""

    def took(self, number: int, digest: int) -> bool:
        return False

    def arrays(self, none: Sequence[Any]) -> list[np.ndarray]:
        """The results, with the axes of cases; `none`: arguments of no cases."""
        self.lanes.trailing = self.lanes.shapes(none)
        self.ready()
        arrays = self._arrays or []
        for array in arrays:
            for case, _ in self.failed:
                array[case] = missing(array.dtype)
        return [array.reshape(*self.cases.shape, *array.shape[1:]) for array in arrays]


@contextmanager
def terminated() -> Iterator[None]:
    """While a batch runs, SIGTERM stops it as Ctrl-C does, and ends with SystemExit(143)."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def stop(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
