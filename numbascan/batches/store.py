"""Results in a Zarr store: an array for each result, chunked by cases, and a record of the chunks that are done.

    out.zarr/               attributes: digests, versions, when, how long
        result/             or the names of results; coordinates beside them
        chunks/done         for each chunk the digest of its data, 0 where it is missing
        chunks/errors       for each chunk its failures, as JSON: once a batch has recorded failures
        errors/             case, message: likewise

A digest is written after its data, so a chunk counts only once it is complete. When a batch resumes, it is compared with the data.
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import cache
from typing import Any

import numpy as np

from ..errors import BatchError
from ..front.tree import LEAF, Structure
from .chunk_writer import CONFIG, Address, ChunkWriter, Layout, entries, group_there, missing
from .chunks import Chunks, chunks_of
from .inputs import Cases
from .lanes import ChunkFunction, Failed, Pieces
from .place import META, Place, zarr

OURS = ("chunks", "errors")  # groups beside the results


def names_of(structure: Structure) -> list[str]:
    """The name of each result: `result`, the keys of a dict, or `result_0`, …; of nests joined with `/`.

    >>> from numbascan.front.tree import flattened
    >>> names_of(flattened((1, {"b": 2, "a": [3, 4]}))[1])
    ['result_0', 'result_1/a/0', 'result_1/a/1', 'result_1/b']
    """
    if isinstance(structure, str):
        return ["result"] if structure == LEAF else []
    cls, keys, children = structure
    labels = [str(key) for key in keys] if keys else getattr(cls, "_fields", None) or [f"result_{k}" for k in range(len(children))]
    whole = [(label, *path) for label, child in zip(labels, children, strict=True) for path in _paths(child)]
    names = ["/".join(path) for path in whole]
    for path, name in zip(whole, names, strict=True):
        if path[0] in OURS or not all(map(_is_name, path)):
            raise ValueError(f"ns.batch: a result is called {name!r}, which no array of a store may be; give it another key")
    if len(set(names)) < len(names):
        raise ValueError(f"ns.batch: the names of results are not all different: {', '.join(names)}; give them other keys")
    return names


def _paths(structure: Structure) -> Iterator[tuple[str, ...]]:
    if isinstance(structure, str):
        yield from [()] if structure == LEAF else []
        return
    cls, keys, children = structure
    for label, child in zip(keys or getattr(cls, "_fields", None) or range(len(children)), children, strict=True):
        yield from ((str(label), *path) for path in _paths(child))


class BatchStore:
    """The store of one batch. `open` checks that it fits; then it takes chunks."""

    def __init__(self, place: Place, cases: Cases, lanes: ChunkFunction, part: tuple[int, int] | None, records: bool) -> None:
        self.place, self.cases, self.lanes, self.part, self.records = place, cases, lanes, part, records
        self.names = names_of(lanes.structure)
        self.group: Any = None
        self.id = uuid.uuid4().hex
        self.chunks: Chunks
        self.writer: ChunkWriter | None = None  # None until the arrays exist
        self.kept = 0  # cases of this batch, or part, that are stored
        self._done: Any = None  # an array
        self._errors: Any = None  # an array, or None where no batch recorded failures
        self._address: tuple[Address | None] | None = None
        self._pending: list[tuple[int, Sequence[Any], Pieces, Failed]] = []
        self._started = time.time()
        self._coordinates = {name: k for name, k in cases.coordinates().items() if _is_name(name) and name not in OURS}
        tops = set(map(_top, self.names))
        if clash := sorted(tops & set(cases.dims)):
            raise ValueError(f"ns.batch: a result and an axis of cases are both called {clash[0]!r}; give the result another key")
        self._coordinates = {
            name: k for name, k in self._coordinates.items() if name not in tops and (cases.is_grid or not name.startswith("dim_"))
        }

    # locks and openings -------------------------------------------------------------------------------------------

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the store for this process. Parts of one batch may use it at the same time, each in one process."""
        if self.place.folder is not None:
            self.place.folder.parent.mkdir(parents=True, exist_ok=True)
        with self.place.lock("lock", shared=self.part is not None):
            if self.part is None:
                yield
                return
            with self.place.lock(f"lock-{self.part[0]}-{self.part[1]}"):
                yield

    def _alone(self) -> AbstractContextManager[object]:
        """The lock to hold while data that all parts share are written."""
        return self.place.lock("lock-setup", waits=True)

    def open(self, resume: bool, chunk: int | str, size: Callable[[], int]) -> None:
        """Resumes the store in this place, or begins one. ValueError, and nothing is touched, where it does not fit."""
        begun = self._meta()
        block = None if isinstance(chunk, str) else chunks_of(self.cases.shape, chunk)
        with self._alone():
            group = self.place.found()
            if group is not None and resume:
                self._take_up(group, begun, block)
                return
        chunks = block or chunks_of(self.cases.shape, size())
        with self._alone():
            group = None if self.part is None else self.place.found()
            if group is not None:  # another part has begun meanwhile
                self._take_up(group, begun, chunks)
            else:
                self._begin(begun, chunks)

    def _meta(self) -> dict[str, Any]:
        inputs = hashlib.sha256(f"{self.cases.digest()} {self.lanes.outside()}".encode()).hexdigest()
        return {"program": self.lanes.digest(), "inputs": inputs}

    def _take_up(self, group: Any, begun: dict[str, Any], chunks: Chunks | None) -> None:
        meta = group.attrs[META]
        there = Chunks(self.cases.shape, tuple(meta["block"]))
        differences = [
            f"{what} ({_short(meta[key])} instead of {_short(begun[key])})"
            for key, what in (("program", "another program"), ("inputs", "other inputs"))
            if meta[key] != begun[key]
        ]
        if not differences and chunks is not None and chunks != there:
            differences = [f"another chunk size ({there.size} instead of {chunks.size} cases)"]
        if differences:
            raise ValueError(
                f"ns.batch: the store {self.place.name} has results of {' and '.join(differences)}; give another store, "
                "or resume=False, which replaces it"
            )
        if not is_whole(group):
            self._begin(begun, there)
            return
        self.chunks, self.group, self.id = there, self.place.group("a"), meta["id"]
        self._done, self._errors = self.group["chunks/done"], self.group.get("chunks/errors")
        if self._errors is None and self.records:
            self._errors = self._array_of_errors()
        self._find_arrays()
        if self.writer is None:
            self.group.attrs.put(dict(self.group.attrs))  # drops the consolidated metadata of an earlier batch that was stopped

    def _find_arrays(self) -> None:
        """Takes the arrays of results and coordinates, if all exist."""
        arrays = {name: self.group.get(name) for name in (*self.names, *self._by_case())}
        if None not in arrays.values():
            self.lanes.trailing = [tuple(arrays[name].shape[len(self.cases.shape) :]) for name in self.names]
            self.writer = self._writer(self.lanes.trailing, arrays)

    def _writer(self, trailing: Sequence[tuple[int, ...]], arrays: dict[str, Any]) -> ChunkWriter:
        coordinates = tuple((name, self._coordinates[name]) for name in self._by_case())
        has_errors = self._errors is not None
        layout = Layout(self.id, self.chunks, tuple(self.names), tuple(trailing), tuple(self.lanes.dtypes), coordinates, has_errors)
        return ChunkWriter(self.place, layout, self._done, self._errors, arrays)

    def _begin(self, begun: dict[str, Any], chunks: Chunks) -> None:
        """Makes what every store has, in place of an earlier store."""
        self.chunks, self.group = chunks, self.place.group("a")
        before = self.group.attrs.get(META)
        for name in () if before is None else {*self.place.names(self.group), *OURS, *self._coordinates, *map(_top, before["results"])}:
            del self.group[name]  # by name: a half-removed array has no metadata, and is no member
        versions = {name: _version(name) for name in ("numbascan", "numpy", "numba", "zarr")}
        meta = {
            **begun,
            "id": self.id,
            "cases": len(self.cases),
            "dimensions": list(self.cases.dims),
            "shape": list(self.cases.shape),
            "block": list(self.chunks.block),
            "results": self.names,
            "versions": {**versions, "python": platform.python_version()},
            "begun": _now(),
            "seconds": 0.0,
        }
        self.group.attrs[META] = meta  # first: from here on the store is known as ours, whatever happens
        if self.cases.is_grid:
            for name, leaf in ((name, self.cases.leaves[k]) for name, k in self._coordinates.items()):
                array = self._array(name, tuple(leaf.values.shape), leaf.values.dtype, (name,), leaf.values.shape)
                array[...] = leaf.values
        if self.records:
            self._errors = self._array_of_errors()
        self._done = self.group.create_array("chunks/done", dtype="uint64", fill_value=0, compressors=_checksum(), **self._by_chunk())

    def _array_of_errors(self) -> Any:
        return self.group.create_array("chunks/errors", dtype=str, fill_value="", overwrite=True, **self._by_chunk())

    def _by_chunk(self) -> dict[str, Any]:
        return {"shape": (len(self.chunks),), "chunks": (1,), "dimension_names": ("chunk",)}

    # results ---------------------------------------------------------------------------------------------------------

    def missing(self, numbers: Sequence[int]) -> list[int]:
        """The chunks among `numbers` that are missing or damaged. Sets `kept`."""
        writer = self.writer
        if writer is None:
            return list(numbers)
        done = entries(self._done)
        left = [number for number in numbers if not done[number] or writer.digest(number) != int(done[number])]
        self.kept = sum(map(self.chunks.count, numbers)) - sum(map(self.chunks.count, left))
        return left

    def _by_case(self) -> list[str]:
        """The coordinates that are written with the results; none of a grid, whose coordinates are written at the start."""
        return [] if self.cases.is_grid else list(self._coordinates)

    def write(self, number: int, values: Sequence[Any], pieces: Pieces, failed: Failed) -> int:
        """Stores a chunk, once the shapes of results are known, and returns its number of cases."""
        self.ready()
        self._pending.append((number, values, pieces, failed))
        self._flush()
        return self.chunks.count(number)

    def address(self) -> Address | None:
        """The address into which workers write chunks; None until the arrays exist, and where workers cannot write."""
        if self._address is None and self.writer is not None:
            self._address = (self.writer.address(),)
        return None if self._address is None else self._address[0]

    def took(self, number: int, digest: int) -> bool:
        """True if a chunk that another process has written is in the store. Counts it as kept."""
        is_there = self.writer is not None and self.writer.says_done(number, digest)
        self.kept += self.chunks.count(number) if is_there else 0
        return is_there

    def _flush(self) -> None:
        """Writes pending chunks, if the shapes of results are known: until one case has succeeded they wait."""
        while self._pending and self.writer is not None:
            self.writer.write(*self._pending[0])
            self.kept += self.chunks.count(self._pending.pop(0)[0])

    def ready(self) -> None:
        """Makes the arrays of results unless they exist, once their shapes are known."""
        if self.writer is None and self.lanes.trailing is not None:
            with self._alone():
                self.writer = self._writer(self.lanes.trailing, self._arrays(self.lanes.trailing))
                if self._errors is not None and "errors" not in self.group:
                    self._write_errors([])
                self._consolidate()

    def _arrays(self, trailing: Sequence[tuple[int, ...]]) -> dict[str, Any]:
        """The arrays of results and of coordinates by case, made unless they exist."""
        dims = tuple(self.cases.dims)
        arrays: dict[str, Any] = {}
        lengths: dict[str, int] = {}
        for name, shape, dtype in zip(self.names, trailing, self.lanes.dtypes, strict=True):
            inner = []
            for k, length in enumerate(shape, start=1):
                is_free = f"dim_{k}" not in dims and lengths.setdefault(f"dim_{k}", length) == length
                inner.append(f"dim_{k}" if is_free else f"{name.replace('/', '_')}_dim_{k}")
            whole = (*self.cases.shape, *shape)
            note = {"coordinates": " ".join(self._by_case())} if self._by_case() else {}
            arrays[name] = self._array(name, whole, dtype, (*dims, *inner), (*self.chunks.block, *shape), note)
        for name in self._by_case():
            dtype = np.dtype(self.cases.leaves[self._coordinates[name]].type.dtype)
            arrays[name] = self._array(name, self.cases.shape, dtype, dims, self.chunks.block)
        return arrays

    def _array(self, name: str, shape: Sequence[int], dtype: Any, dims: Sequence[str], block: Sequence[int], attributes: Any = None) -> Any:
        dtype = np.dtype(dtype).newbyteorder("=")
        try:
            return self.group.create_array(
                name,
                shape=tuple(shape),
                dtype=dtype,
                chunks=tuple(max(1, length) for length in block),
                compressors=_checksum(),
                fill_value=dtype.type(missing(dtype)),
                dimension_names=tuple(dims),
                attributes=attributes,
                config=CONFIG,
            )
        except zarr().errors.ContainsArrayError:  # of a batch that was killed, or of another part
            array = self.group[name]
        if array.shape != tuple(shape) or array.dtype != dtype:
            raise ValueError(f"ns.batch: {name} in {self.place.name} has shape {array.shape} of {array.dtype}, not {shape} of {dtype}")
        return array

    def results(self) -> list[Any]:
        """The arrays of results."""
        return [self.writer.arrays[name] for name in self.names] if self.writer is not None else []

    def needs_shapes(self) -> None:
        """BatchError of a part without results, where nothing else gives the shapes of results."""
        if self.lanes.trailing is None:
            self._find_arrays()  # another part may have made them
        if self.part is not None and self.lanes.trailing is None and self.lanes.declared() is None:
            raise BatchError(
                f"ns.batch: no case of part {self.part} has results, and their shape is not known without any; "
                "nothing of this part is kept. Run it again when another part has results" + self._first_failure()
            )

    def finish(self, none: Sequence[Any]) -> None:
        """Writes what is pending and closes the store. OSError where an array has gone. `none`: arguments of no cases."""
        self.lanes.trailing = self.lanes.shapes(none)
        self.ready()
        self._flush()
        group = group_there(self.place, self.id)
        if lost := [name for name in (*self.names, *self._by_case()) if name not in group]:
            raise OSError(f"ns.batch: {lost[0]} has gone from the store {self.place.name} while the batch ran")
        self.close()

    def _first_failure(self) -> str:
        failed = [one for _, _, _, failed in self._pending for one in failed]
        return f". Case {failed[0][0]}: {failed[0][1]}" if failed else ""

    def close(self) -> None:
        """Writes the time taken and the table of failures so far."""
        with self._alone():
            group = group_there(self.place, self.id, "r+", use_consolidated=None)
            meta = group.attrs[META]
            group.attrs[META] = {**meta, "seconds": meta["seconds"] + time.time() - self._started, "ended": _now()}
            failed = self.failed()
            if self._errors is not None and failed != _read_errors(self.group):
                self._write_errors(failed)
                self._consolidate()

    def is_there(self) -> bool:
        """True if the store is still in its place."""
        try:
            group_there(self.place, self.id)
        except Exception:  # any error of a place that cannot be reached
            return False
        return True

    def failed(self) -> Failed:
        """The failures in the chunks that are done: numbers of cases and messages."""
        return failed_in(self.group)

    def _write_errors(self, failed: Failed) -> None:
        self.group.create_group("errors", overwrite=True)  # overwrites a half-removed one, too
        case, message = np.array([case for case, _ in failed], "int64"), [message for _, message in failed]
        shape = {"shape": case.shape, "chunks": (max(1, len(failed)),), "dimension_names": ("error",)}
        cases = self.group.create_array("errors/case", dtype="int64", **shape)
        messages = self.group.create_array("errors/message", dtype=str, **shape)
        if failed:
            cases[...], messages[...] = case, np.array(message, dtype=object)

    def _consolidate(self) -> None:
        """Consolidates metadata, so that xarray finds all arrays by reading one file."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the metadata of all arrays in one place is not yet a part of Zarr's specification
            zarr().consolidate_metadata(self.group.store, path=self.group.path or None)


def is_whole(group: Any) -> bool:
    """True if the beginning of a store is complete, so that chunks may be done; else it is begun anew."""
    return "chunks/done" in group


def failed_in(group: Any) -> Failed:
    """The failures in the chunks of a store that are done, by case."""
    if "chunks/errors" not in group:
        return []
    done, texts = entries(group["chunks/done"]), entries(group["chunks/errors"])
    return sorted(
        (int(case), message) for is_done, text in zip(done, texts, strict=True) if is_done and text for case, message in json.loads(text)
    )


def _read_errors(group: Any) -> Failed | None:
    """The table of errors; None where there is none, or a damaged one."""
    try:
        errors = group["errors"]
        return list(zip(errors["case"][:].tolist(), map(str, errors["message"][:]), strict=True))
    except OSError:
        raise
    except Exception:  # it is damaged
        return None


def _checksum() -> tuple[Any, ...]:
    from zarr.codecs import Crc32cCodec

    return (Crc32cCodec(),)


def _top(name: str) -> str:
    """The first part of a name: the member of the store that holds the rest."""
    return name.split("/")[0]


def _is_name(name: str) -> bool:
    """True if an array or a group may have this name."""
    return not set(name) & set("/\\\0") and bool(name.strip(".")) and not name.startswith("__") and name != "zarr.json"


def _short(digest: str) -> str:
    return digest[:8]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@cache
def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
