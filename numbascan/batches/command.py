"""`numbascan run` and `numbascan status`: a batch of a function in a file, and the progress of a store."""

from __future__ import annotations

import argparse
import ast
import functools
import inspect
import math
import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BatchError, ScanError
from ..front.scan.arguments import ARGUMENTS
from ..front.scan.scan import ScanFunction
from ..front.tree import flattened
from .batch import batch, estimate, was_stopped
from .chunk_writer import entries
from .chunks import Chunks
from .inputs import Grid
from .place import META, Place, zarr
from .scans import OPTIONS, one_case_of
from .store import failed_in, is_whole, names_of

DONE, FAILED, WRONG, RAISED, STOPPED, INTERRUPTED = 0, 1, 2, 3, 4, 130
EXACT = 2.0**53  # up to here float64 holds every integer
INTEGER = re.compile(rb"\s*[+-]?\d+\s*")


IN_THE_SHELL = {
    "give at least one array that is not shared, and has an axis in in_axes": "give --inputs a file with a row for each case",
    "give equally many, or name in shared= what is the same for all": "give equally many, or --set NAME=VALUE for what is the same for all",
    "give them by name, and name in shared= those of one value": "give --set NAME=VALUE, or --grid NAME=VALUES",
    "Give outputs_info= to the decorator or in the inputs": "Give outputs_info= to the decorator in the file",
    "missing a required argument: ": "give --set NAME=VALUE, --grid NAME=VALUES or a column for the argument ",
    "missing a required keyword-only argument: ": "give --set NAME=VALUE, --grid NAME=VALUES or a column for the argument ",
    "ns.batch: part= needs a store and a chunk that is an int": "--part needs --store, and --chunk with a number",
    "resume=False with part=": "--no-resume with --part",
    "resume=False": "--no-resume",
    "on_error='record'": "--on-error record",
    "with part=": "with --part",
    "store= needs": "--store needs",
    "scheduler= needs": "--scheduler needs",
    "ns.batch: part is ": "--part is ",
    "give (i, n) with 0 <= i < n": "write I/N with 0 <= I < N",
    "ns.batch: chunk is": "--chunk is",
    "or 'auto'": "or auto",
    "ns.batch: memory is": "--memory is",
    "ns.batch: ": "",
}
"""Words of messages of `ns.batch` about its arguments, with those for a user of the command."""


class WrongUse(Exception):
    """An argument of the command that is wrong, with the reason in words for its user."""


def add_run(parser: argparse.ArgumentParser) -> None:
    """The arguments of `run`."""
    parser.add_argument("place", metavar="FILE.py:NAME", help="the file, which is run, and the name of a function of one case in it")
    parser.add_argument("--inputs", metavar="FILE", help="the arguments by name: .npz, .zarr, .csv or .parquet, with a row for each case")
    parser.add_argument(
        "--grid", metavar="NAME=VALUES", action="append", default=[], help="rho=20:30:100 (100 values from 20 to 30) or rho=10,28; repeats"
    )
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="an argument that is the same for all; repeats")
    parser.add_argument("--store", metavar="FOLDER", help="where results are kept; without it a summary is printed")
    parser.add_argument("--chunk", default="auto", help="cases that are computed at a time")
    parser.add_argument("--memory", default="1GB", help="for the chunks in work, such as 2GB")
    parser.add_argument("--part", metavar="I/N", help="chunks I, I + N, … alone; counted from 0")
    parser.add_argument("--mode", help="numba, python, debug or cuda")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of a dask.distributed scheduler")
    parser.add_argument("--on-error", choices=("raise", "record"), default="raise", help="stop at a case that fails, or go on")
    parser.add_argument("--no-resume", action="store_true", help="replace what is in the store")
    parser.add_argument("--dry-run", action="store_true", help="tell how many cases, bytes and seconds it is")


def run(options: argparse.Namespace, object_at: Callable[[str], Any]) -> int:
    """Runs a batch and returns the exit code. `object_at`: gives the object at a place in a file; its errors are the caller's."""
    try:
        return _run(options, object_at(options.place))
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(options: argparse.Namespace, f: Any) -> int:
    try:
        if not callable(f):
            raise WrongUse(f"{options.place} is {f!r}, which cannot be called; give the name of a function of one case")
        inputs, in_axes = _inputs(options, f)
        f = _bound(f, inputs, _assignments(options.set, "--set", _value))
        keywords = {"in_axes": in_axes, "chunk": _chunk(options.chunk), "memory": options.memory, "mode": options.mode}
        keywords |= {"on_error": options.on_error, "part": _part(options.part), "store": options.store}
        if options.dry_run:
            for label, text in estimate(f, inputs, **keywords):
                print(f"{label:14}{text}")
            return DONE
        if options.scheduler:
            _send_by_value(Path(options.place.rpartition(":")[0]).resolve().parent)
        results = batch(f, inputs, resume=not options.no_resume, scheduler=options.scheduler, **keywords)
    except BatchError as error:
        _tell(options.command, error)
        return WRONG if error.case is None else RAISED
    except (WrongUse, ScanError, TypeError, ValueError, OverflowError, ImportError, OSError) as error:
        _tell(options.command, error)
        return STOPPED if was_stopped(error) else WRONG
    except Exception as error:  # of the function while it is traced, or of a damaged file: the traceback says most
        traceback.print_exc()
        return STOPPED if was_stopped(error) else WRONG
    results, errors = results if options.on_error == "record" else (results, [])
    if options.store is None:
        _summarise(results)
    else:
        status(options)
    if errors:
        print(f"cases that failed: {len(errors):,}; the first, case {errors[0][0]}: {errors[0][1]}", file=sys.stderr)
    return FAILED if errors else DONE


def _send_by_value(folder: Path) -> None:
    """Has what the file and modules beside it define sent to workers by value: they may not find the files."""
    try:
        import cloudpickle
    except ImportError:  # then Dask is missing, too: the batch says so
        return
    for module in [*sys.modules.values()]:
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and Path(file).resolve().parent == folder:
            cloudpickle.register_pickle_by_value(module)


def status(options: argparse.Namespace) -> int:
    """Prints the progress of a store and returns the exit code."""
    try:
        place = Place(options.store, reads=True)
        group = place.found()
        if group is None:
            raise WrongUse(f"there is no store {options.store!r}")
        meta = group.attrs[META]
        chunks = Chunks(tuple(meta["shape"]), tuple(meta["block"]))
        with place.legible():
            is_begun = is_whole(group)
            done = entries(group["chunks/done"]) != 0 if is_begun else np.zeros(len(chunks), bool)
            n_failed = len(failed_in(group)) if is_begun else 0
    except (WrongUse, ValueError, ImportError, OSError) as error:
        _tell(options.command, error)
        return WRONG
    cases = sum(stop - first for first, stop in map(chunks.cases, np.flatnonzero(done).tolist()))
    print(f"done    {int(done.sum()):,} of {len(chunks):,} chunks, {cases:,} of {meta['cases']:,} cases")
    print(f"failed  {n_failed:,} cases")
    print(f"left    {int((~done).sum()):,} chunks, {meta['cases'] - cases:,} cases")
    return DONE


def _tell(command: str, error: BaseException) -> None:
    name = "" if isinstance(error, (WrongUse, BatchError)) else f"{type(error).__name__}: "
    lines = "\n".join([f"{name}{error}", *getattr(error, "__notes__", ())])
    for words, ours in IN_THE_SHELL.items():
        lines = lines.replace(words, ours)
    print(f"numbascan {command}: {lines}", file=sys.stderr)


# arguments of the command -------------------------------------------------------------------------------------------


def _inputs(options: argparse.Namespace, f: Callable[..., Any]) -> tuple[Any, Any]:
    """(the inputs of the batch, their axes of cases)."""
    if options.inputs and options.grid:
        raise WrongUse("give --inputs or --grid, not both")
    if options.grid:
        return Grid(_assignments(options.grid, "--grid", _values)), 0
    if not options.inputs:
        raise WrongUse("there are no cases; give --inputs sweep.npz, or --grid rho=20:30:100")
    inputs = _read(options.inputs, lambda columns: _arguments_among(columns, f, options))
    if isinstance(inputs, tuple):
        return inputs, 0
    return inputs, {name: 0 if np.ndim(value) else None for name, value in inputs.items()}


def _arguments_among(columns: Sequence[str], f: Callable[..., Any], options: argparse.Namespace) -> list[str]:
    """The columns of a table that are arguments of `f`. The others, such as a date or a note, are named on stderr."""
    try:
        parameters = inspect.signature(f.__wrapped__ if isinstance(f, ScanFunction) else f).parameters
    except (TypeError, ValueError):  # a builtin
        return list(columns)
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        return list(columns)
    names = [*parameters, *((*ARGUMENTS, *OPTIONS) if isinstance(f, ScanFunction) else ())]
    kept = [name for name in columns if name in names]
    if not kept:
        raise WrongUse(
            f"--inputs {options.inputs}: no column is an argument of {options.place}, which has {', '.join(parameters) or 'none'}; the "
            f"columns are {', '.join(columns)}"
        )
    if others := [name for name in columns if name not in names]:
        reason = f"--inputs {options.inputs}: left out, since {options.place} has no such argument"
        print(f"numbascan {options.command}: {reason}: {', '.join(others)}", file=sys.stderr)
    return kept


def _read(file: str, kept: Callable[[Sequence[str]], Sequence[str]]) -> Any:
    """The arrays of a file: by name, or one alone as the first argument. `kept`: selects columns of a table."""
    path = Path(file)
    if not path.exists():
        raise WrongUse(f"there is no file {file!r}")
    if not path.stat().st_size:
        raise WrongUse(f"--inputs {file}: the file is empty")
    if path.suffix == ".npz":
        with path.open("rb") as opened, np.load(opened) as arrays:
            return dict(arrays)
    if path.suffix == ".npy":
        return (np.load(path, mmap_mode="r"),)
    if path.suffix == ".csv":
        table, own = _rows_of(path), _names_of_columns(path)
        names = {own.get(name, name): name for name in table.dtype.names or ()}
        return {name: _column(f"--inputs {file}: {name}", path, table, names[name]) for name in kept(list(names))}
    if path.suffix == ".parquet":
        try:
            from pyarrow import parquet
        except ImportError as error:
            raise ImportError("--inputs of a .parquet file needs PyArrow; pip install pyarrow") from error
        columns = parquet.read_table(path)
        return {name: _column_of_parquet(f"--inputs {file}: {name}", columns[name]) for name in kept(columns.column_names)}
    if path.suffix == ".zarr":
        opened = zarr().open(path, mode="r")
        return dict(opened.arrays()) if hasattr(opened, "arrays") else (opened,)
    raise WrongUse(f"--inputs {file}: the kinds of files are .npz, .npy, .zarr, .csv and .parquet")


def _names_of_columns(path: Path) -> dict[str, str]:
    """NumPy's names of the columns of a .csv file with those of the file: NumPy adds `_` to `file`, `print` and `return`."""
    with path.open(encoding="utf-8-sig") as lines:
        header = next(line for line in lines if line.strip())
    names = [cell.strip() for cell in header.lstrip("#").split(",")]
    return {f"{name}_": name for name in names if f"{name}_" not in names}


def _rows_of(path: Path, dtype: Any = None) -> Any:
    """The rows of a .csv file; as texts where `dtype` is `object`."""
    options: dict[str, Any] = {"delimiter": ",", "names": True, "deletechars": "", "usemask": True}
    return np.atleast_1d(np.genfromtxt(path, dtype=dtype, encoding="utf-8-sig", **options))


def _column(label: str, path: Path, table: Any, name: str) -> np.ndarray:
    """A column of a .csv file. A missing number is NaN, as in a .parquet file. Integers that float64 would round are uint64 or refused."""
    cells = table[name]
    is_there = ~np.ma.getmaskarray(cells)
    if not is_there.all() and cells.dtype.kind not in "iufc":
        raise WrongUse(f"{label} has no value in row {int(np.argmin(is_there)) + 1}")
    if is_there.all() and cells.dtype.kind not in "fc":
        return np.ascontiguousarray(cells.data)
    numbers: np.ndarray = cells.astype(np.result_type(cells.dtype, np.float64)).filled(np.nan)
    if (np.abs(numbers) >= EXACT).any():
        texts = _rows_of(path, object)[name]
        integers = {row: int(texts[row]) for row in np.flatnonzero(is_there).tolist() if INTEGER.fullmatch(texts[row])}
        if len(integers) == len(numbers) and min(integers.values()) >= 0 and max(integers.values()) < 2**64:
            return np.array(list(integers.values()), "uint64")
        _check_exact(label, integers, numbers)
    return numbers


def _column_of_parquet(label: str, column: Any) -> np.ndarray:
    """A column of a .parquet file. A missing number is NaN. WrongUse for an integer that is rounded then."""
    numbers: np.ndarray = column.to_numpy()
    whole = column.drop_null().to_numpy()
    if whole.dtype.kind in "iu" and numbers.dtype.kind == "f":
        _check_exact(label, dict(zip(np.flatnonzero(~np.isnan(numbers)).tolist(), whole.tolist(), strict=True)), numbers)
    return numbers


def _check_exact(label: str, integers: Mapping[int, int], numbers: np.ndarray) -> None:
    """WrongUse for an integer that is rounded among the `numbers` of its column. integers: by their rows."""
    for row, integer in integers.items():
        if complex(numbers[row]).real != integer:
            raise WrongUse(
                f"{label} has {integer} in row {row + 1}, which {numbers.dtype} would round; "
                "a column of integers without gaps holds it, from -2**63 or from 0 to 2**64 - 1"
            )


def _bound(f: Any, inputs: Any, settings: Mapping[str, Any]) -> Callable[..., Any]:
    """`f` with the arguments in `settings` bound, which are the same for all cases."""
    given = inputs.axes if isinstance(inputs, Grid) else inputs if isinstance(inputs, dict) else ()
    if twice := [name for name in settings if name in given]:
        raise WrongUse(f"--set {twice[0]}: {twice[0]} is given twice, there and by the inputs")
    if not isinstance(f, ScanFunction):
        if not settings:
            return f
        bound = functools.partial(f, **settings)
        functools.update_wrapper(bound, f, assigned=("__name__", "__module__"), updated=())
        del bound.__wrapped__  # type: ignore[attr-defined]  # its signature has all arguments, not just those that are left
        return bound
    swept = list(given or ARGUMENTS[:1])
    values = {name: value for name, value in settings.items() if name not in OPTIONS}
    one_case = one_case_of(f, {name: settings[name] for name in settings if name in OPTIONS}, [*swept, *values])
    return functools.partial(one_case, **values) if values else one_case


def _assignments(texts: Sequence[str], option: str, read: Callable[[str], Any]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for text in texts:
        name, value = _assignment(text, option, read)
        if name in given:
            raise WrongUse(f"{option} {text}: {name} is given twice")
        given[name] = value
    return given


def _assignment(text: str, option: str, read: Callable[[str], Any]) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign or not name.strip().isidentifier() or not value.strip():
        raise WrongUse(f"{option} {text}: write NAME=VALUE")
    try:
        return name.strip(), read(value.strip())
    except ValueError as error:
        raise WrongUse(f"{option} {text}: {error}") from error


def _values(text: str) -> np.ndarray:
    """`20:30:100`, or `10,28`."""
    if ":" not in text:
        numbers = [_value(part) for part in text.split(",")]
        if not all(isinstance(number, (bool, int, float, complex)) for number in numbers):
            raise ValueError("give numbers, as rho=10,28")
        return _array(numbers)
    try:
        first, last, count = text.split(":")
        return np.linspace(float(first), float(last), int(count))
    except ValueError as error:
        raise ValueError(f"write FIRST:LAST:COUNT, as rho=20:30:100 ({error})") from None


def _value(text: str) -> Any:
    """A Python value; an array for several numbers; else the text."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return _array(value) if isinstance(value, (list, tuple)) else value


def _array(values: Any) -> np.ndarray:
    """An array of numbers. ValueError for an integer that their common dtype would round."""
    array = np.array(values)
    if array.dtype.kind in "fc":
        for number, held in zip(np.array(values, object).ravel().tolist(), array.ravel().tolist(), strict=True):
            if isinstance(number, int) and number != held:
                raise ValueError(f"{number} would be rounded, since {array.dtype} is the type of all numbers together")
    return array


def _chunk(text: str) -> int | str:
    if text != "auto" and not text.isdigit():
        raise WrongUse(f"--chunk {text}: give a number of cases, or auto")
    return text if text == "auto" else int(text)


def _part(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    first, _, second = text.partition("/")
    if not (first.isdigit() and second.isdigit()):
        raise WrongUse(f"--part {text}: write I/N, as 3/16")
    return int(first), int(second)


# what is printed ----------------------------------------------------------------------------------------------------


def _summarise(results: Any) -> None:
    leaves, structure = flattened(results)
    for name, array in zip(names_of(structure), leaves, strict=True):
        line = f"{name:14}{array.dtype} {array.shape}"
        if array.size and array.dtype.kind in "iuf":
            numbers = array[np.isfinite(array)]
            least, mean, most = (numbers.min(), numbers.mean(), numbers.max()) if numbers.size else (math.nan,) * 3
            line += f"  min {least:.6g}  mean {mean:.6g}  max {most:.6g}"
            line += f"  not finite {array.size - numbers.size:,}" if numbers.size < array.size else ""
        print(line)
