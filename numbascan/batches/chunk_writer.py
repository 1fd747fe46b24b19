"""Writes the results of a chunk into the arrays of a store: in the process that holds it, or in a worker that reaches it."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import BatchError
from .chunks import Chunks
from .lanes import Failed, Pieces
from .place import META, Place

AT_ONCE = 4  # arrays that are written at the same time
CONFIG = {"write_empty_chunks": True}  # or a chunk of NaN alone could not be told from a lost one


@dataclass(frozen=True)
class Layout:
    """The content of a store's arrays.

    id: of the store. coordinates: names of coordinates by case, with the places of their inputs. has_errors: whether failures are recorded.
    """

    id: str
    chunks: Chunks
    names: tuple[str, ...]
    trailing: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype[Any], ...]
    coordinates: tuple[tuple[str, int], ...]
    has_errors: bool


class ChunkWriter:
    """Writes chunks into a store whose arrays exist. `done`, `errors`: the arrays `chunks/done` and, if there is one, `chunks/errors`."""

    def __init__(self, place: Place, layout: Layout, done: Any, errors: Any, arrays: dict[str, Any]) -> None:
        self.place, self.layout, self._done, self._errors = place, layout, done, errors
        self.arrays = {name: array.with_config(CONFIG) for name, array in arrays.items()}

    def write(self, number: int, values: Sequence[Any], pieces: Pieces, failed: Failed) -> int:
        """Stores a chunk and returns its digest, which is written last. OSError if that cannot be done."""
        group_there(self.place, self.layout.id)
        try:
            return self._write(number, values, pieces, failed)
        except (OSError, BatchError):
            raise
        except Exception as error:  # Zarr's own, of which there are several
            raise OSError(f"ns.batch: the store {self.place.name} cannot be written: {error}") from error

    def _write(self, number: int, values: Sequence[Any], pieces: Pieces, failed: Failed) -> int:
        layout, slices = self.layout, self.layout.chunks.slices(number)
        first, stop = layout.chunks.cases(number)
        block = tuple(one.stop - one.start for one in slices)
        blocks = [
            _whole(pieces, k, (stop - first, *shape), dtype).reshape(*block, *shape)
            for k, (shape, dtype) in enumerate(zip(layout.trailing, layout.dtypes, strict=True))
        ]
        blocks += [values[place] for _, place in layout.coordinates]

        def stored(array: Any, block: Any) -> int:
            array[slices] = block
            return _checksum(block)

        with ThreadPoolExecutor(AT_ONCE, "numbascan-write") as pool:
            sums = list(pool.map(stored, self.arrays.values(), blocks))
        text = json.dumps(failed) if failed else ""
        if failed or self._text(number) != "":
            self._errors[number] = text
        group_there(self.place, self.layout.id)
        digest = _digest(layout.id, sums, text)
        self._done[number] = np.uint64(digest)
        return digest

    def _text(self, number: int) -> Any:
        """The failures of a chunk, as JSON; None where these are damaged."""
        return "" if self._errors is None else entry(self._errors, number)

    def address(self) -> Address | None:
        """The address by which another process writes chunks; None where it cannot."""
        place = self.place.address()
        return None if place is None else (place, self.layout)

    def says_done(self, number: int, digest: int) -> bool:
        """True if the store has this digest for a chunk: whoever wrote it says so."""
        return int(self._done[number]) == digest

    def digest(self, number: int) -> int:
        """The digest of a chunk's data as they are stored; 0 where they cannot be read."""
        try:
            slices = self.layout.chunks.slices(number)
            return _digest(self.layout.id, [_checksum(array[slices]) for array in self.arrays.values()], str(self._text(number)))
        except Exception:  # whatever a damaged file raises
            return 0


Address = tuple[tuple[Any, str], Layout]  # of a store that another process may reach
_writers: dict[tuple[Layout, str, str], ChunkWriter] = {}  # the last one, by its store and where that is: a copy has the same id


def write_there(address: Address, number: int, values: Sequence[Any], pieces: Pieces, failed: Failed) -> int | None:
    """Stores a chunk in a store that another process holds, and returns its digest; None where it cannot be reached or written."""
    (store, path), layout = address
    try:
        key = layout, str(store), path
        writer = _writers.get(key)
        if writer is None:
            place = Place(store, path=path)
            group = group_there(place, layout.id, "r+")  # OSError where there is another store
            names = (*layout.names, *(name for name, _ in layout.coordinates))
            errors = group["chunks/errors"] if layout.has_errors else None
            writer = ChunkWriter(place, layout, group["chunks/done"], errors, {name: group[name] for name in names})
            _writers.clear()
            _writers[key] = writer
        return writer.write(number, values, pieces, failed)
    except Exception:  # then results go back, and the process that holds the store says what is wrong with it
        return None


def entry(array: Any, number: int) -> Any:
    """The entry of an array for a chunk; None where that is damaged."""
    try:
        return array[number]
    except OSError:  # it may exist and be out of reach
        raise
    except Exception:  # whatever a damaged file raises
        return None


def entries(array: Any) -> np.ndarray:
    """The entries of an array for all chunks, with the fill value in place of damaged ones."""
    try:
        whole: np.ndarray = array[:]
    except OSError:
        raise
    except Exception:  # one of them is damaged
        each = (entry(array, number) for number in range(array.shape[0]))
        whole = np.array([array.fill_value if one is None else one for one in each], array.dtype)
    return whole


def group_there(place: Place, store: str, mode: str = "r", use_consolidated: bool | None = False) -> Any:
    """The group of the store with this id. OSError if the store has gone or was replaced."""
    group = place.group(mode, use_consolidated=use_consolidated)
    if group is None or group.attrs.get(META, {}).get("id") != store:
        raise OSError(f"ns.batch: the store {place.name} has gone, or was replaced, while the batch ran")
    return group


def missing(dtype: np.dtype[Any]) -> Any:
    """The result of a case that failed: NaN, or 0 for dtypes without one."""
    return np.nan if dtype.kind in "fc" else 0


def _whole(pieces: Pieces, k: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Result `k` of a chunk, with `missing` for cases that failed."""
    (low, high, results), *others = pieces
    if not others and results is not None:
        return results[k]
    whole = np.full(shape, missing(dtype), dtype)
    for low, high, results in pieces:
        if results is not None:
            whole[low:high] = results[k]
    return whole


def _checksum(block: Any) -> int:
    """The CRC-32 of the data of an array."""
    array = np.asarray(block)
    return zlib.crc32(np.ascontiguousarray(array).view("uint8").data if array.size else b"")


def _digest(store: str, sums: Sequence[int], text: str) -> int:
    """A digest of a chunk's data, never 0. Data left by an earlier store in this place have another one, since `store` is part of it."""
    return int.from_bytes(hashlib.blake2b(f"{store} {sums} {text}".encode(), digest_size=8).digest(), "little") | 1
