"""The place of a store: a folder, or any other store of Zarr."""

from __future__ import annotations

import json
import pickle
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from .lock import Lock

META = "numbascan"  # the attribute that says what the store is
KINDS = {"id": str, "program": str, "inputs": str, "cases": int, "shape": list, "block": list, "results": list, "seconds": float}


def zarr() -> Any:
    """The package; ImportError with what to install where it is missing."""
    try:
        import zarr as package
    except ImportError as error:
        raise ImportError('ns.batch: store= needs Zarr 3; pip install "numbascan[batch]"') from error
    if int(package.__version__.split(".")[0]) < 3:
        raise ImportError(f'ns.batch: store= needs Zarr 3, not {package.__version__}; pip install "numbascan[batch]"')
    return package


class Place:
    """The place of a store: a folder, or any other store of Zarr. `reads`: it is only read, so it may be read-only."""

    def __init__(self, store: Any, reads: bool = False, path: str = "") -> None:
        package = zarr()
        if isinstance(store, package.Group):
            self.options: dict[str, Any] = {"store": store.store, "path": store.path}
        elif isinstance(store, package.Array):
            raise TypeError("ns.batch: store is a Zarr array; give a path, a group, or a store")
        else:
            self.options = {"store": str(store) if isinstance(store, Path) else store, "path": path}
        self.name, self.folder = str(store), None
        inner = self.options["store"]
        if isinstance(inner, str) and "://" not in inner.removeprefix("file://"):
            self.folder = Path(inner.removeprefix("file://")).absolute()  # the same folder after the process has changed its own
            self.options["store"] = str(self.folder)
        elif isinstance(inner, package.storage.LocalStore):
            self.folder = Path(inner.root, self.options.get("path", ""))
            self.name = str(self.folder)
        if not reads and getattr(inner, "read_only", False):
            raise OSError(f"ns.batch: the store {self.name} is open for reading only; open it with mode='a'")

    def group(self, mode: str, zarr_format: int | None = 3, use_consolidated: bool | None = False) -> Any:
        """The group, opened; None where there is none to read. zarr_format: None for any, which looks at several files."""
        try:
            return zarr().open_group(**self.options, mode=mode, zarr_format=zarr_format, use_consolidated=use_consolidated)
        except FileNotFoundError:
            if mode == "a":
                raise
            return None

    def found(self) -> Any:
        """The group in this place; None where there is none. ValueError for one that `ns.batch` did not make."""
        if self.folder is not None and self.folder.exists() and not self.folder.is_dir():
            raise FileExistsError(f"ns.batch: {self.name} is a file; give the path of a folder, as 'out.zarr'")
        try:
            group = self.group("r", zarr_format=None)
        except OSError:
            raise
        except TypeError as error:
            raise TypeError(f"ns.batch: store is {self.name}; give a path, a Zarr group, or a store of Zarr") from error
        except Exception as error:  # Zarr has several kinds of errors for what is no group
            raise ValueError(f"ns.batch: the store {self.name} cannot be opened as a group of Zarr ({error}); give another one") from error
        if group is None:
            begun = "zarr.*.partial"  # left by a batch that was killed before its group existed
            if self.folder is not None and self.folder.is_dir() and not all(path.match(begun) for path in self.folder.iterdir()):
                raise ValueError(f"ns.batch: the folder {self.name} is not empty, and ns.batch did not make it; give another store")
            return None
        if META not in group.attrs and members(group):
            raise ValueError(f"ns.batch: the store {self.name} was not made by ns.batch; give another one")
        if META in group.attrs and not _is_ours(group.attrs[META]):
            raise ValueError(
                f"ns.batch: the attribute {META!r} of the store {self.name} is damaged, or not that of ns.batch; give another store"
            )
        return group if META in group.attrs else None

    @contextmanager
    def legible(self) -> Iterator[None]:
        """Inside, damaged metadata raise a ValueError that names the store."""
        try:
            yield
        except (json.JSONDecodeError, zarr().errors.MetadataValidationError) as error:
            raise ValueError(f"ns.batch: metadata in the store {self.name} are damaged ({error}); resume=False replaces it") from error

    def names(self, group: Any) -> list[str]:
        """The names of the members of the group; in a folder, those with damaged metadata included."""
        return members(group) if self.folder is None else [path.parent.name for path in self.folder.glob("*/zarr.json")]

    def address(self) -> tuple[Any, str] | None:
        """(store, path) for another process to open; None for a store that is in this process, or takes one writer only."""
        storage, group = zarr().storage, self.group("r")
        if group is None or not isinstance(group.store, (storage.LocalStore, storage.FsspecStore)):
            return None
        if self.folder is not None:
            return str(self.folder.resolve()), ""
        try:
            pickle.dumps(group.store)
        except Exception:  # it cannot be sent
            return None
        return group.store, group.path

    def lock(self, name: str, shared: bool = False, waits: bool = False) -> AbstractContextManager[object]:
        """A lock for this process; one that does nothing where the store is no folder."""
        if self.folder is None:
            return nullcontext()
        folder = self.folder.resolve()  # beside it: within, Zarr would take the file for a part of the store
        return Lock(folder.with_name(f".{folder.name}.{name}"), self.name, shared, waits)


def _is_ours(meta: Any) -> bool:
    """True if the attribute holds what a batch writes there."""
    if not isinstance(meta, dict) or not all(isinstance(meta.get(key), kind) for key, kind in KINDS.items()):
        return False
    shape, block, results = meta["shape"], meta["block"], meta["results"]
    lengths = all(type(length) is int and length >= 0 for length in (*shape, *block))
    return lengths and len(shape) == len(block) and 0 not in block and all(isinstance(name, str) for name in results)


def members(group: Any) -> list[str]:
    """The names of the members of a group."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of files that are no part of it, such as those of an unfinished removal
        return list(group)
