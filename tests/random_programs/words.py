"""Words of the programs besides NumPy's: made for arrays here, and for numbascan's variables where they meet one."""

from __future__ import annotations

from typing import Any

import numpy as np

import numbascan as ns
import numbascan.tensor as nt
from numbascan.ir.graph import toposort
from numbascan.ir.node import INPUT


@ns.as_written  # NumPy's own numbers, also in a function that is traced
def numbers(dtype: str, shape: tuple[int, ...], seed: int) -> Any:
    """Numbers to start from: floats within ±1.5, integers from -4 (unsigned: 0) to 9."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    if kind == "b":
        found: Any = rng.random(shape) < 0.5
    elif kind in "iu":
        found = rng.integers(0 if kind == "u" else -4, 10, shape)
    elif kind == "c":
        found = rng.uniform(-1.5, 1.5, shape) + 1j * rng.uniform(-1.5, 1.5, shape)
    else:
        found = rng.uniform(-1.5, 1.5, shape)
    return np.asarray(found).astype(dtype)[()]


def stream(seed: int) -> nt.random.RandomStream:
    """A stream of random numbers."""
    return nt.random.RandomStream(seed)


def aligned(srng: Any) -> None:
    """Lets a place in a graph draw what an immediate call draws."""
    for state in [] if srng is None else srng.states[1:]:
        state.set_value(srng.state.get_value())


def as_updates(pairs: list[tuple[Any, Any]]) -> Any:
    """Updates as a dict."""
    return dict(pairs)


def put(x: Any, index: Any, value: Any) -> Any:
    """x with some elements replaced; by floats of a state that starts as an integer without a dtype, too."""
    array, values = nt.as_tensor_variable(x), nt.as_tensor_variable(value)
    is_later = array.dtype.kind in "iu" and values.dtype.kind == "f"
    return nt.set_subtensor(array[index], values.astype(array.dtype) if is_later else value)


def inc(x: Any, index: Any, value: Any) -> Any:
    """x with something added to some elements, as often as `index` names them."""
    return nt.inc_subtensor(nt.as_tensor_variable(x)[index], value)


def ifelse(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, else b; in one dtype, which an initial value without one may take from them only later."""
    branches = [nt.as_tensor_variable(branch) for branch in (a, b)]
    if branches[0].dtype == branches[1].dtype:
        return nt.ifelse(condition, a, b)
    dtype = np.result_type(*(branch.dtype for branch in branches))
    return nt.ifelse(condition, *(branch.astype(dtype) for branch in branches))


def slope(x: Any) -> Any:
    """The derivative of tanh at each element of x; a constant's tanh is a constant, so that of a function there."""
    is_constant = all(node.op is not INPUT for node in toposort([nt.as_tensor_variable(x).node]))
    return ns.grad(lambda y: np.sum(np.tanh(y)))(x) if is_constant else ns.grad(np.sum(np.tanh(x)), x)
