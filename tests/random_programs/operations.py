"""The operations that random steps are made of: each takes a maker and an operand, and gives a new expression.

An operation may propose what NumPy refuses or what grows too large: the maker throws that away and tries again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from .streams import drawn
from .trees import Expr

if TYPE_CHECKING:
    from .generate import Maker

Operation = Callable[["Maker", Expr], Expr]

# one operand, elementwise; "exact" ones round nothing ------------------------------------------------------------------

ROUNDED_F = (
    *("np.tanh({0})", "np.sin({0})", "np.cos({0})", "np.arctan({0})", "np.exp(-np.abs({0}))", "np.expm1({0} * 0.3)"),
    *("np.sqrt(np.abs({0}) + 0.5)", "np.log1p(np.abs({0}))", "np.log(np.abs({0}) + 0.3)", "np.cbrt({0})", "np.arcsinh({0})"),
    *("{0} * 0.7", "{0} / 3", "0.4 * {0} + 0.1", "1 / (1 + {0} ** 2)", "np.square({0})", "{0} ** 2", "{0} ** 3 * 0.1", "0.3 - {0}"),
    *("np.hypot({0}, 0.3)", "np.cosh(np.clip({0}, -1, 1))", "np.power(np.abs({0}) + 0.1, 0.7)", "{0}.astype('float32')"),
    *("np.logaddexp({0}, 0.2)", "np.exp2({0} * 0.2)", "2 ** ({0} * 0.3)", "{0} % 1.37", "np.float32(0.7) * {0}", "np.float64(0.6) * {0}"),
)
EXACT_F = (
    *("-{0}", "np.abs({0})", "abs({0})", "np.maximum({0}, 0.1)", "np.minimum({0}, 0.2)", "np.clip({0}, -0.8, 0.9)", "{0}.clip(-0.7, 0.6)"),
    *("np.floor({0} * 3.3)", "np.ceil({0} * 2.7)", "np.rint({0} * 4.1)", "np.trunc({0} * 3.1)", "np.sign({0} - 0.1234)"),
    *("{0} > 0.137", "{0} <= -0.219", "np.isfinite({0})", "np.where({0} > 0.2137, {0}, -0.1)", "{0}.astype('float64')"),
    *("(np.clip({0}, -9, 9) * 5.3).astype('int32')", "({0} * 3.7).astype('int64')", "{0} // 0.737", "np.positive({0})"),
)
INTS = (
    *("{0} % 5", "{0} // 3", "{0} * 3", "{0} + 2", "7 - {0}", "np.abs({0})", "-{0}", "~{0}", "{0} << 1", "{0} >> 1", "{0} & 6"),
    *(
        "{0} ^ 3",
        "{0} | 1",
        "np.clip({0}, 0, 9)",
        "{0} > 2",
        "{0} == 3",
        "{0} != 1",
        "np.minimum({0}, 4)",
        "np.maximum({0}, 1)",
        "{0} ** 2",
    ),
    *("{0}.astype('int8')", "{0}.astype('uint8')", "{0}.astype('int32')", "{0}.astype('int64')", "{0}.astype('bool')", "np.sign({0})"),
    *("np.mod({0}, 3)", "np.square({0})", "{0} % -4", "{0} // -3", "{0}.astype('uint16')", "{0}.astype('int16')"),
)
INTS_TO_FLOAT = ("{0} / 4", "{0} * 0.25", "{0}.astype('float64') * 0.1", "np.sqrt(np.abs({0}).astype('float64'))", "0.5 - {0} * 0.1")
INTS_TO_FLOAT += ("{0}.astype('float32') / 3", "np.sin({0} * 0.7)")
BOOLS = ("~{0}", "np.logical_not({0})", "np.where({0}, 0.3, -0.2)", "{0}.astype('float64')", "{0} * 2", "{0} ^ True", "{0}.astype('int64')")
BOOLS += ("np.where({0}, 3, 1)", "{0} * 0.7", "{0} + 1")
COMPLEX = ("{0}.real", "{0}.imag", "np.conj({0})", "{0} * (0.5 + 0.2j)", "np.abs({0})", "{0} / (2 - 0.3j)", "np.exp({0} * 0.3)", "-{0}")
COMPLEX += ("{0} * {0}", "np.sin({0} * 0.5)", "{0} ** 2", "np.real({0})")

BINARY_F = (
    *("{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / (1 + np.abs({1}))", "np.hypot({0}, {1})", "np.arctan2({0}, 1 + np.abs({1}))"),
    *("0.3 * {0} + 0.5 * {1}", "{0} * {1} - {1}", "np.power(np.abs({0}) + 0.2, np.clip({1}, -1, 1))", "np.fmod({0}, 1.1 + np.abs({1}))"),
)
EXACT_BINARY_F = (
    # a sum that is 0 may have either sign, by the order in which it is added up
    *("np.maximum({0}, {1})", "np.minimum({0}, {1})", "{0} > {1} + 0.0137", "{0} < {1} - 0.0219", "np.where({0} > 0.1713, {0}, {1})"),
    *("np.where({1} < -0.237, {1}, {0})", "np.fmax({0}, {1})", "np.copysign({0}, {1} + 0.0137)"),
)
BINARY_I = (
    *("{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} & {1}", "{0} | {1}", "{0} ^ {1}", "{0} // (np.abs({1}) + 1)", "{0} % (np.abs({1}) + 2)"),
    *("np.maximum({0}, {1})", "np.minimum({0}, {1})", "{0} > {1}", "{0} == {1}", "{0} <= {1}", "{0} // {1}", "{0} % {1}"),
    *("{0} << ({1} & 3)", "{0} >> ({1} & 3)", "np.where({0} > {1}, {0}, {1} * 2)"),
)
BINARY_B = ("{0} & {1}", "{0} | {1}", "{0} ^ {1}", "np.logical_and({0}, {1})", "np.logical_xor({0}, {1})", "{0} == {1}")
BINARY_C = ("{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / (2 + np.abs({1}))")


def unary(g: Maker, a: Expr) -> Expr:
    kind = g.kind(a)
    if kind == "f":
        return g.call(g.choice(ROUNDED_F), a) if g.chance(0.6) else g.call(g.choice(EXACT_F), a, exact=True)
    if kind in "iu":
        return g.call(g.choice(INTS), a, exact=True) if g.chance(0.7) else g.call(g.choice(INTS_TO_FLOAT), a)
    return g.call(g.choice(BOOLS if kind == "b" else COMPLEX), a)


def binary(g: Maker, a: Expr) -> Expr:
    b = g.partner(a)
    kinds = g.kind(a) + g.kind(b)
    if g.chance(0.4):
        a, b = b, a
    if "c" in kinds:
        return g.call(g.choice(BINARY_C), a, b)
    if "f" in kinds:
        return g.call(g.choice(BINARY_F), a, b) if g.chance(0.65) else g.call(g.choice(EXACT_BINARY_F), a, b, exact=True)
    return g.call(g.choice(BINARY_B if kinds == "bb" else BINARY_I), a, b, exact=True)


def where(g: Maker, a: Expr) -> Expr:
    b = g.partner(a)
    condition = g.condition(a)
    return g.call("np.where({0}, {1}, {2})", condition, a, b, exact=True)


def lazy_choice(g: Maker, a: Expr) -> Expr:
    b = g.alike(a)
    condition = g.scalar_condition()
    return g.call("ifelse({0}, {1}, {2})", condition, a, b, exact=True)


# shapes -----------------------------------------------------------------------------------------------------------------


def reshape(g: Maker, a: Expr) -> Expr:
    size, rank = np.size(a.value), np.ndim(a.value)
    factors = [k for k in (2, 3, 4, 5, 6) if size % k == 0]
    choices = ["{0}.reshape(-1)", "{0}.ravel()", "np.ravel({0})", f"np.reshape({{0}}, ({size}, 1))", f"{{0}}.reshape(1, {size})"]
    choices += [f"{{0}}.reshape({k}, {size // k})" for k in factors] + [f"np.reshape({{0}}, (-1, {k}))" for k in factors]
    if rank > 1:
        choices += ["{0}.reshape({0}.shape[0], -1)"]
    return g.call(g.choice(choices), a, exact=True)


def axes(g: Maker, a: Expr) -> Expr:
    rank = np.ndim(a.value)
    choices = ["{0}[..., None]", "np.expand_dims({0}, 0)", "{0}[None]"] if rank < 3 else ["{0}.sum(axis=1)"]
    if rank >= 1:
        choices += ["np.flip({0}, 0)", "np.roll({0}, 1, axis=0)", "{0}[::-1]", "np.atleast_2d({0})", f"np.roll({{0}}, {g.integer(-3, 3)})"]
    if rank >= 2:
        choices += [
            "{0}.T",
            "np.transpose({0})",
            "np.swapaxes({0}, 0, 1)",
            "np.moveaxis({0}, 0, -1)",
            "np.flip({0})",
            "{0}.T",
            "{0}[:, ::-1]",
        ]
    if rank == 3:
        choices += ["np.transpose({0}, (1, 2, 0))", "{0}.transpose(2, 0, 1)"]
    if 1 in np.shape(a.value):
        choices += [f"np.squeeze({{0}}, axis={np.shape(a.value).index(1)})"] * 3
    return g.call(g.choice(choices), a, exact=True)


def spread(g: Maker, a: Expr) -> Expr:
    """More elements: broadcasts, tiles, pads, diagonals."""
    shape = np.shape(a.value)
    n = g.choice(g.dims)
    choices = [f"np.broadcast_to({{0}}, {(n, *shape)})"]
    if shape:
        choices += ["np.tile({0}, 2)", f"np.repeat({{0}}, {g.integer(2, 3)}, axis={g.integer(0, len(shape) - 1)})", "np.pad({0}, 1)"]
        choices += ["np.pad({0}, 1, mode='edge')", "np.pad({0}, (3, 1), mode='wrap')"]
    if len(shape) == 1:
        choices += ["np.diag({0})", "np.outer({0}, {0})", "{0}[:, None] * {0}[None, :]"]
    if len(shape) == 2:
        choices += ["np.tril({0})", "np.triu({0}, 1)", "np.diag({0})", "np.trace({0})"]
    return g.call(g.choice(choices), a, exact=False)


def joined(g: Maker, a: Expr) -> Expr:
    b = g.partner(a)
    if np.ndim(a.value) == 0:
        parts = [a, g.scalar(), g.scalar()][: g.integer(2, 3)]
        if not all(part.traced for part in parts):
            raise g.refusal
        listed = ", ".join(f"{{{k}}}" for k in range(len(parts)))
        is_mixed = len({np.asarray(part.value).dtype for part in parts}) > 1  # np.array then computes with each one's own dtype
        if g.chance(0.5) or is_mixed:
            return g.call(f"np.stack([{listed}])", *parts, exact=True)
        vector = g.of_shape((len(parts),))
        if not vector.traced:
            raise g.refusal
        return g.call(f"{{{len(parts)}}} + 0.5 * np.array([{listed}])", *parts, vector)
    rank = np.ndim(a.value)
    axis = g.integer(-rank, rank - 1)
    choices = [f"np.concatenate([{{0}}, {{1}}], axis={axis})", f"np.stack([{{0}}, {{1}}], axis={axis})", "np.concatenate([{1}, {0}])"]
    choices += [
        "np.hstack([{0}, {1}])",
        "np.vstack([{1}, {0}])",
        "np.concatenate([{0}[1:], {0}[:1]])",
        "np.concatenate([{0}[-1:], {0}[:-1]])",
    ]
    return g.call(g.choice(choices), a, b, exact=True)


# indices ----------------------------------------------------------------------------------------------------------------


def _slice(g: Maker, n: int) -> str:
    """The text of a slice that leaves something of n elements."""
    for _ in range(8):
        start = g.choice(["", "", str(g.integer(-n, n - 1))])
        stop = g.choice(["", "", str(g.integer(-n, n))])
        step = g.choice(["", "", "", ":2", ":-1", ":-2", ":3"])
        text = f"{start}:{stop}{step}"
        if len(range(n)[eval(f"np.s_[{text}]", {"np": np})]) > 0:
            return text
    return ":"


def _position(g: Maker, n: int) -> str:
    return str(g.integer(-n, n - 1))


def _index(g: Maker, shape: tuple[int, ...]) -> str:
    entries = [_slice(g, n) if g.chance(0.65) else _position(g, n) for n in shape[: g.integer(1, len(shape))]]
    if g.chance(0.1):
        entries.insert(g.integer(0, len(entries)), "None")
    if g.chance(0.15) and len(shape) > 1:
        entries = ["...", _slice(g, shape[-1]) if g.chance(0.5) else _position(g, shape[-1])]
    return ", ".join(entries)


def index(g: Maker, a: Expr) -> Expr:
    shape = g.shape_with_axes(a)
    return g.call(f"{{0}}[{_index(g, shape)}]", a, exact=True)


def _places(g: Maker, n: int, count: int) -> str:
    return str([g.integer(-n, n - 1) for _ in range(count)])


def gather(g: Maker, a: Expr) -> Expr:
    shape = g.shape_with_axes(a)
    n, count = shape[0], g.integer(1, 4)
    axis = g.integer(0, len(shape) - 1)
    choices = [f"{{0}}[np.array({_places(g, n, count)})]", f"{{0}}[{_places(g, n, count)}]"]
    choices.append(f"np.take({{0}}, {_places(g, shape[axis], count)}, axis={axis})")
    if "srng" not in a.text():  # what is drawn twice differs, and then the order of equal numbers counts
        choices.append("np.take_along_axis({0}, np.argsort({0}, axis=-1), axis=-1)")
    if len(shape) > 1:
        choices += [f"{{0}}[np.array({_places(g, n, count)}), np.array({_places(g, shape[1], count)})]"]
        choices += [f"{{0}}[:, np.array({_places(g, shape[1], count)})]", f"{{0}}[1:, {_places(g, shape[1], count)}]"]
        choices += [f"{{0}}[np.array({_places(g, n, count)})[:, None], np.array({_places(g, shape[1], 2)})]"]
    return g.call(g.choice(choices), a, exact=True)


def traced_index(g: Maker, a: Expr) -> Expr:
    """An index that only the run knows."""
    shape = g.shape_with_axes(a)
    k = g.scalar("iu")
    n = shape[0]
    if not a.traced:
        raise g.refusal
    choices = [f"{{0}}[{{1}} % {n}]", f"{{0}}[{{1}} % {n} - {n}]", f"np.take({{0}}, {{1}} % {n}, axis=0)"]
    choices += [f"put({{0}}, {{1}} % {n}, {{0}}[0])"]
    if len(shape) > 1:
        choices += [f"{{0}}[:, {{1}} % {shape[1]}]", f"{{0}}[{{1}} % {n}, ::-1]", f"{{0}}[1:, {{1}} % {shape[1]}]"]
    return g.call(g.choice(choices), a, k, exact=True)


def cut(g: Maker, a: Expr) -> Expr:
    """Slices whose lengths only the run knows, two of the same length among them, with the axis added up."""
    n = g.shape_with_axes(a)[0]
    i, j = g.scalar("iu"), g.scalar("iu")
    if not a.traced or g.kind(a) == "b":
        raise g.refusal
    low, high = f"{{1}} % {n}", f"{{2}} % {n} + 1"
    choices = [f"{{0}}[{low}:]", f"{{0}}[:{high}]", f"{{0}}[{low}:{high}]", f"({{0}}[{low}:{high}] * 2)"]
    choices += [f"({{0}}[{low}:] + {{0}}[:{n} - {low}])", f"({{0}}[{low}:{high}] + {{0}}[{low}:{high}])"]
    choices += [f"np.cumsum({{0}}[{low}:{high}], axis=0)", f"({{0}}[{low}:] * {{0}}[{low}:])"]
    return g.call(f"{g.choice(choices)}.sum(axis=0)", a, i, j)


def traced_gather(g: Maker, a: Expr) -> Expr:
    shape = g.shape_with_axes(a)
    if not a.traced:
        raise g.refusal
    places = g.pick(lambda e: g.kind(e) in "iu" and np.ndim(e.value) == 1)
    choices = [f"{{0}}[{{1}} % {shape[0]}]", f"np.take({{0}}, {{1}} % {shape[-1]}, axis=-1)"]
    return g.call(g.choice(choices), a, places, exact=True)


def put(g: Maker, a: Expr) -> Expr:
    shape = g.shape_with_axes(a)
    word = g.choice(["put", "put", "inc"])
    part = g.evaluate(f"{{0}}[{(where := _index(g, shape).replace('None, ', '').replace(', None', '').replace('None', ':'))}]", a)
    value = g.choice(["constant", "broadcast", "same"])
    if value == "constant":
        return g.call(f"{word}({{0}}, np.s_[{where}], {'True' if g.kind(a) == 'b' else '1'})", a)
    if value == "same":
        return g.call(f"{word}({{0}}, np.s_[{where}], {{0}}[{where}]{' * 2' * (g.kind(a) != 'b')})", a)
    b = g.pick(lambda e: np.asarray(e.value).dtype == np.asarray(a.value).dtype and g.broadcasts(np.shape(e.value), np.shape(part)))
    return g.call(f"{word}({{0}}, np.s_[{where}], {{1}})", a, b)


def put_at(g: Maker, a: Expr) -> Expr:
    n = g.shape_with_axes(a)[0]
    word = g.choice(["put", "inc"])
    places = list(dict.fromkeys(g.integer(0, n - 1) for _ in range(3)))
    if word == "inc" and g.chance(0.5):
        places.append(places[0])
    return g.call(f"{word}({{0}}, np.array({places}), {'True' if g.kind(a) == 'b' else '1'})", a)


# reductions -------------------------------------------------------------------------------------------------------------


def _axis(g: Maker, rank: int) -> str:
    choices = ["", *(f"axis={k}" for k in range(-1, rank)), *(["axis=(0, 1)", "axis=(-1, 0)"] if rank > 1 else [])]
    return g.choice(choices if rank else [""])


def reduction(g: Maker, a: Expr) -> Expr:
    kind, rank = g.kind(a), np.ndim(a.value)
    axis = _axis(g, rank)
    exact = ["max", "min", "all", "any"] if kind != "c" else []
    if (kind == "f" and g.chance(0.7)) or kind == "c":
        name, is_exact = g.choice(["sum", "mean", "sum", "prod"] + (["var", "std"] if kind == "f" else [])), False
    elif kind in "iub" and g.chance(0.5):
        name, is_exact = g.choice(["sum", "prod", "sum", "mean"]), False
    else:
        name, is_exact = g.choice(exact), True
    options = [part for part in (axis, "keepdims=True" if g.chance(0.2) else "") if part]
    is_function = g.chance(0.6) or (g.is_double and name == "std")  # where there is no derivative, costs.Watched sees it
    form = f"np.{name}({', '.join(['{0}', *options])})" if is_function else f"{{0}}.{name}({', '.join(options)})"
    found = g.call(form, a, exact=is_exact)
    if g.is_double and name == "std" and (np.asarray(found.value) == 0).any():
        raise g.refusal
    return found


def place_of_extreme(g: Maker, a: Expr) -> Expr:
    axis = g.choice(["", *(f", axis={k}" for k in range(np.ndim(a.value)))])
    return g.call(f"np.{g.choice(['argmax', 'argmin'])}({{0}}{axis})", a, exact=True)


def running(g: Maker, a: Expr) -> Expr:
    rank = len(g.shape_with_axes(a))
    axis = g.integer(-1, rank - 1)
    choices = [f"np.cumsum({{0}}, axis={axis})", f"{{0}}.cumsum(axis={axis})", f"np.cumprod({{0}}, axis={axis})", "np.cumsum({0})"]
    choices += ["np.diff({0}, axis=-1)"] if g.kind(a) != "b" and np.shape(a.value)[-1] > 1 else []
    return g.call(g.choice(choices), a)


def sorting(g: Maker, a: Expr) -> Expr:
    rank = len(g.shape_with_axes(a))
    axis = g.integer(-1, rank - 1)
    choices = [f"np.sort({{0}}, axis={axis})", f"np.argsort({{0}}, axis={axis}, kind='stable')" if g.kind(a) == "f" else "np.sort({0})"]
    choices += ["np.searchsorted(np.array([-0.513, 0.117, 0.719]), {0})"] if g.kind(a) == "f" else []
    return g.call(g.choice(choices), a, exact=True)


# products and linear algebra ------------------------------------------------------------------------------------------------


def product(g: Maker, a: Expr) -> Expr:
    shape = g.shape_with_axes(a)
    b = g.pick(lambda e: np.ndim(e.value) in (1, 2) and shape[-1] == np.shape(e.value)[-1] and e.traced + a.traced)
    if g.chance(0.5):
        b = g.pick(lambda e: np.ndim(e.value) == 2 and shape[-1] == np.shape(e.value)[0] and e.traced + a.traced)
        if g.chance(0.4) and len(shape) == 2:
            return g.call(
                g.choice(["np.einsum('ij,jk->ik', {0}, {1})", "np.einsum('ij,jk->ki', {0}, {1})", "np.tensordot({0}, {1}, axes=1)"]), a, b
            )
        return g.call(g.choice(["{0} @ {1}", "np.dot({0}, {1})", "np.matmul({0}, {1})", "0.3 * ({0} @ {1})"]), a, b)
    choices = ["{0} @ {1}.T", "np.dot({0}, {1}.T)"]
    if len(shape) == 2 and np.ndim(b.value) == 2:
        choices += ["{1} @ {0}.T", "np.einsum('ij,kj->ik', {0}, {1})", "np.einsum('ij,kj->', {0}, {1})", "np.inner({0}, {1})"]
    if len(shape) == 1 and np.ndim(b.value) == 1:
        choices = [
            "{0} @ {1}",
            "np.dot({0}, {1})",
            "np.outer({0}, {1})",
            "np.vdot({0}, {1})",
            "np.inner({0}, {1})",
            "np.einsum('i,j->ij', {0}, {1})",
        ]
    return g.call(g.choice(choices), a, b)


def linear(g: Maker, a: Expr) -> Expr:
    """Small systems, made well-conditioned by a large diagonal."""
    shape = np.shape(a.value)
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] > 9 or g.kind(a) != "f" or not a.traced:
        raise g.refusal
    n = shape[0]
    heavy = f"np.tanh({{0}}) + {n + 2} * np.eye({n}, dtype='{np.asarray(a.value).dtype}')"
    spd = f"0.1 * np.tanh({{0}}) @ np.tanh({{0}}).T + np.eye({n}, dtype='{np.asarray(a.value).dtype}')"
    if g.chance(0.5):
        b = g.pick(
            lambda e: np.ndim(e.value) in (1, 2) and np.shape(e.value)[0] == n and np.asarray(e.value).dtype == np.asarray(a.value).dtype
        )
        return g.call(f"np.linalg.solve({heavy}, {{1}})", a, b)
    choices = [f"np.linalg.inv({heavy})", f"np.linalg.cholesky({spd})", f"np.linalg.det({spd})", f"np.linalg.slogdet({spd})[1]"]
    return g.call(g.choice([*choices, "np.linalg.norm({0})"]), a)


def created(g: Maker, a: Expr) -> Expr:
    """Arrays made from nothing but a shape."""
    shape = np.shape(a.value)
    choices = ["np.ones_like({0}) + {0}", "np.zeros_like({0})", "np.full_like({0}, 1)"]
    if len(shape) == 1:
        n = shape[0]
        choices += [f"np.arange({n}) * {{0}}", f"{{0}} + np.linspace(0.1, 0.7, {n})", f"np.eye({n}) * {{0}}"]
    return g.call(g.choice(choices), a)


OPERATIONS: tuple[tuple[float, Operation], ...] = (
    (8, unary),
    (9, binary),
    (1.5, where),
    (0.6, lazy_choice),
    (1.2, reshape),
    (1.5, axes),
    (0.8, spread),
    (1.8, joined),
    (2.5, index),
    (1, gather),
    (1.2, traced_index),
    (1, cut),
    (0.5, traced_gather),
    (1.5, put),
    (0.5, put_at),
    (2.5, reduction),
    (0.7, place_of_extreme),
    (0.8, running),
    (0.6, sorting),
    (2.5, product),
    (0.8, linear),
    (0.5, created),
    (2, drawn),
)


def derivative(g: Maker, a: Expr) -> Expr:
    """A derivative inside the step."""
    if g.kind(a) != "f" or not a.traced:
        raise g.refusal
    return g.call("slope({0})", a)


GRADIENT_OPERATIONS: tuple[tuple[float, Operation], ...] = (*OPERATIONS, (0.5, derivative))
