"""Simpler faces of scan: map, reduce, foldl, foldr, filter, and scan_checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...modes import Mode
from ...tracebacks import entries
from ..numpy.creation import arange
from ..tracing import describe
from ..tree import flattened, unflatten
from ..variable import Variable, as_variable
from .arguments import Arguments, NonSequences, OutputsInfo, Sequences, Steps, step_name
from .scan import scan


def map(
    fn: Callable[..., Any],
    sequences: Sequences,
    non_sequences: NonSequences = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    mode: Mode | str | None = None,
    name: str | None = None,
    return_updates: bool = True,
) -> Any:
    """`fn` of each row of the sequences: a scan without recurrence.

    Arguments and results as for `ns.scan`; the step gets the rows, then the non-sequences.

    >>> import numbascan as ns, numpy as np
    >>> squares, updates = ns.map(lambda row: row @ row, np.array([[3.0, 4.0], [1.0, 2.0]]))
    >>> squares
    array([25.,  5.])
    """
    return scan(
        fn,
        sequences=_required(sequences, "map", fn, name),
        non_sequences=non_sequences,
        truncate_gradient=truncate_gradient,
        go_backwards=go_backwards,
        mode=mode,
        name=name,
        return_updates=return_updates,
    )


def reduce(
    fn: Callable[..., Any],
    sequences: Sequences,
    outputs_info: OutputsInfo,
    non_sequences: NonSequences = None,
    go_backwards: bool = False,
    mode: Mode | str | None = None,
    name: str | None = None,
    return_updates: bool = True,
) -> Any:
    """The results of the last step of a scan, without the path that led there.

    Arguments as for `ns.scan`. Raises IndexError where there was no step.

    >>> import numbascan as ns, numpy as np
    >>> largest, updates = ns.reduce(np.maximum, np.array([2.0, 7.0, 5.0]), -np.inf)
    >>> float(largest)
    7.0
    """
    return scan(
        fn,
        sequences=_required(sequences, "reduce", fn, name),
        outputs_info=outputs_info,
        non_sequences=non_sequences,
        go_backwards=go_backwards,
        mode=mode,
        name=name,
        return_updates=return_updates,
        keep_last=1,
    )


def foldl(
    fn: Callable[..., Any],
    sequences: Sequences,
    outputs_info: OutputsInfo,
    non_sequences: NonSequences = None,
    mode: Mode | str | None = None,
    name: str | None = None,
    return_updates: bool = True,
) -> Any:
    """`reduce` from the first row to the last.

    >>> import numbascan as ns, numpy as np
    >>> number, updates = ns.foldl(
    ...     lambda digit, number: 10 * number + digit, np.array([4, 0, 7]), 0
    ... )
    >>> int(number)
    407
    """
    return reduce(fn, sequences, outputs_info, non_sequences, False, mode, name, return_updates)


def foldr(
    fn: Callable[..., Any],
    sequences: Sequences,
    outputs_info: OutputsInfo,
    non_sequences: NonSequences = None,
    mode: Mode | str | None = None,
    name: str | None = None,
    return_updates: bool = True,
) -> Any:
    """`reduce` from the last row to the first.

    >>> import numbascan as ns, numpy as np
    >>> number, updates = ns.foldr(
    ...     lambda digit, number: 10 * number + digit, np.array([4, 0, 7]), 0
    ... )
    >>> int(number)
    704
    """
    return reduce(fn, sequences, outputs_info, non_sequences, True, mode, name, return_updates)


def filter(
    fn: Callable[..., Any],
    sequences: Sequences,
    non_sequences: NonSequences = None,
    go_backwards: bool = False,
    mode: Mode | str | None = None,
    name: str | None = None,
    return_updates: bool = True,
) -> Any:
    """The rows of the sequences for which `fn` gives True, in the order in which they are read.

    Arguments as for `ns.map`; `fn` returns a scalar, or a list of scalars, one for each sequence: then each keeps rows of its own. Of
    several sequences the shortest decides, and a list is returned. With taps the row kept is the one at tap 0.

    Raises TypeError if `fn` returns something other than scalars, ValueError if it is neither one nor one for each sequence.

    >>> import numbascan as ns, numpy as np
    >>> kept, updates = ns.filter(
    ...     lambda row: row.sum() > 2, np.array([[3, 4], [1, 0], [0, 5]])
    ... )
    >>> kept
    array([[3, 4],
           [0, 5]])
    """
    scanned = scan(
        fn,
        sequences=_required(sequences, "filter", fn, name),
        non_sequences=non_sequences,
        go_backwards=go_backwards,
        mode=mode,
        name=name,
        return_updates=return_updates,
    )
    returned, updates = scanned if return_updates else (scanned, None)
    arguments = Arguments(sequences, None, None, name or step_name(fn))
    leaves = iter(arguments.leaves)
    results = []
    for (structure, taps), mask in zip(arguments.seqs, _masks(returned, len(arguments.seqs), fn, name), strict=True):
        rows, _ = flattened(unflatten(structure, leaves))
        results.append(unflatten(structure, [_where(_read(leaf, taps, go_backwards), mask) for leaf in rows]))
    result = results if len(results) > 1 else results[0]
    return (result, updates) if return_updates else result


def _masks(returned: Any, count: int, fn: Callable[..., Any], name: str | None) -> list[Any]:
    """The masks that the step computed, one for each sequence."""
    masks = list(returned) if isinstance(returned, (list, tuple)) else [returned]
    for mask in masks:
        if not isinstance(mask, (np.ndarray, Variable)) or mask.ndim != 1:
            seen = f"{mask.dtype} of {mask.ndim - 1} dimensions" if isinstance(mask, (np.ndarray, Variable)) else f"{mask!r} over all rows"
            raise TypeError(
                f"{_scan(fn, name)}: ns.filter: the step must return one scalar for each row, but {describe(fn)} "
                f"gave {seen}; write condition.all() or condition.any(), or return a list of scalars, one for each sequence"
            )
    if len(masks) not in (1, count):
        raise ValueError(
            f"{_scan(fn, name)}: ns.filter: {describe(fn)} gave {len(masks)} masks for {count} sequences; return one scalar, or one for "
            "each sequence"
        )
    return [mask if mask.dtype == bool else mask != 0 for mask in masks] * (count // len(masks))


def _read(rows: Any, taps: tuple[int, ...], go_backwards: bool) -> Any:
    """The rows in the order in which steps read them, the first step's first."""
    ahead = max(0, *taps) if go_backwards else max(0, *(-tap for tap in taps))
    return (rows[::-1] if go_backwards else rows)[ahead:]


def _where(rows: Any, mask: Any) -> Any:
    """The rows at which `mask` holds."""
    if not isinstance(rows, Variable) and not isinstance(mask, Variable):
        return rows[: len(mask)][mask]
    count = np.cumsum(mask.astype("int64"))  # the k-th kept row is the first at which k rows have been kept
    position = np.searchsorted(count, arange(1, count[-1:].sum() + 1))
    return np.take(as_variable(rows), position, axis=0)


def scan_checkpoints(
    fn: Callable[..., Any],
    sequences: Sequences = None,
    outputs_info: OutputsInfo = None,
    non_sequences: NonSequences = None,
    name: str = "checkpointscan_fn",
    n_steps: Steps | None = None,
    save_every_N: int = 10,
    padding: bool = True,
    return_updates: bool = True,
) -> Any:
    """Each `save_every_N`-th row of a scan, and the last one; derivatives compute the others again.

    Arguments as for `ns.scan`. padding=False states that the number of steps is a multiple of `save_every_N`: no extra last row.

    Raises ValueError for a `save_every_N` that is no int of 1 or more.

    >>> import numbascan as ns, numpy as np
    >>> rows, updates = ns.scan_checkpoints(
    ...     lambda s: s + 1, outputs_info=np.float64(0), n_steps=8, save_every_N=3
    ... )
    >>> rows
    array([3., 6., 8.])
    """
    if isinstance(save_every_N, bool) or not isinstance(save_every_N, (int, np.integer)) or save_every_N < 1:
        raise ValueError(f"scan {name!r}: save_every_N is {save_every_N!r}; give an int of 1 or more")
    k = int(save_every_N)
    result = scan(fn, sequences, outputs_info, non_sequences, n_steps, name=name, checkpoint=k, return_updates=return_updates)
    outputs, updates = result if return_updates else (result, None)
    leaves, structure = flattened(outputs)
    thinned = unflatten(structure, [_every(leaf, k, padding) for leaf in leaves])
    return (thinned, updates) if return_updates else thinned


def _every(rows: Any, k: int, padding: bool) -> Any:
    """Every k-th row; with `padding` also the last row, if rows are left over."""
    every = rows[k - 1 :: k]
    return np.concatenate([every, rows[-1:][: rows.shape[0] % k]]) if padding else every


def _required(sequences: Any, view: str, fn: Callable[..., Any], name: str | None) -> Any:
    if sequences is None or (isinstance(sequences, (list, tuple)) and not sequences):
        raise ValueError(
            f"{_scan(fn, name)}: ns.{view} needs at least one sequence to run over, but sequences is {sequences!r}; for a loop of so many "
            "steps write ns.scan(step, n_steps=...)"
        )
    return sequences


def _scan(fn: Callable[..., Any], name: str | None) -> str:
    """The name of the scan in messages."""
    return f"scan {name or step_name(fn)!r}"


__all__ = ["filter", "foldl", "foldr", "map", "reduce", "scan_checkpoints"]

entries(globals(), __all__)
