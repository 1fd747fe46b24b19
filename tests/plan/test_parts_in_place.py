"""States of which parts are replaced: only what is written costs time, whatever the step reads of the old row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from wide import wide

import numbascan as ns
import numbascan.tensor as nt

N, STEPS = 40, 6
rng = np.random.default_rng(11)
PLACES, POSITIONS, NUMBERS = rng.integers(0, N, (STEPS, 5)), rng.integers(0, N, (STEPS, 4)), rng.normal(size=STEPS)
ROW, OTHER = rng.normal(size=N), rng.normal(size=5)


def put(x: Any, index: Any, value: Any) -> Any:
    return nt.set_subtensor(x[index], value)


def swapped(i: Any, j: Any, x: Any) -> Any:
    a, b = x[i], x[j]
    return put(put(x, i, b), j, a)


PATTERNS = {
    "an element from another": lambda i, p, u, x: put(x, i[0], x[i[1]]),
    "a place that the shape gives": lambda i, p, u, x: put(x, x.shape[0] // 2, u),
    "a place that the row gives": lambda i, p, u, x: put(x, np.abs(x[3] * 10).astype("int64") % 7, u),
    "a swap": lambda i, p, u, x: swapped(i[0], i[1], x),
    "two constant places": lambda i, p, u, x: put(put(x, 0, u), 1, u + x[0]),
    "a sum": lambda i, p, u, x: nt.inc_subtensor(x[i[0]], x[i[1]]),
    "a slice of itself": lambda i, p, u, x: put(x, slice(3, 9), x[3:9] * 0.5 + u),
    "a slice of its neighbours": lambda i, p, u, x: put(x, slice(3, 9), x[2:8] + x[4:10]),
    "a moving slice": lambda i, p, u, x: put(x, slice(i[0] % 9, i[0] % 9 + 5), x[i[0] % 9 + 1 : i[0] % 9 + 6]),
    "all but the ends of itself": lambda i, p, u, x: put(x, slice(1, -1), x[1:-1] * 0.5),
    "positions, some named twice": lambda i, p, u, x: put(x, p, x[p] * 0.5 + x[0]),
    "a slice, then what it read": lambda i, p, u, x: put(put(x, slice(0, 4), x[4:8] + u), 5, x[0] + x[1:4].sum()),
}


def both(step: Any, *values: Any, **options: Any) -> tuple[Any, Any, str]:
    """What compiled code and the interpreter give, and the source."""
    loop = ns.scan(step, keep_last=1, **options)
    plain = ns.scan(step, keep_last=1, mode="python", **options)
    return loop(*values), plain(*values), loop.source()


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.usefixtures("rewritten")
def test_nothing_but_the_part_is_written(name: str) -> None:
    found, expected, source = both(PATTERNS[name], [PLACES, POSITIONS, NUMBERS], ROW)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    assert "_rows" not in source


def test_a_stencil_keeps_a_second_row() -> None:
    """Where as many elements would be put by as there are: two rows by turns are written once a step."""
    found, expected, source = both(lambda u, x: put(x, slice(1, -1), 0.5 * (x[:-2] + x[2:]) + u), NUMBERS, ROW)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    assert "x_rows" in source


def test_rows_and_columns_of_a_matrix() -> None:
    matrix = rng.normal(size=(N, 6))
    for step in (
        lambda i, u, x: put(x, i[0], x[i[0]] * 0.5 + u),
        lambda i, u, x: put(x, (slice(None), i[0] % 6), x[:, i[0] % 6] * 0.5 + x[:, 0]),
        lambda i, u, x: put(put(x, i[0], x[i[1]]), i[1], x[i[0]]),
    ):
        found, expected, source = both(step, [PLACES, NUMBERS], matrix)
        np.testing.assert_allclose(found, expected, rtol=1e-13)
        assert "x_rows" not in source


def test_other_states_and_results_meet_the_old_row() -> None:
    def step(i: Any, u: Any, x: Any, b: Any) -> Any:
        new = swapped(i[0], i[1], x)
        return put(new, 2, b[1]), b * 0.9 + x[:5], put(b, 1, u)[:2].sum() + x[i[0]], new[i[1]]

    def run(mode: Any) -> Any:
        return ns.scan(step, [PLACES, NUMBERS], [ROW, OTHER, None, None], mode=mode, return_updates=False)

    f = ns.jit(lambda: [rows[-1] if k < 2 else rows for k, rows in enumerate(run(None))])
    g = ns.jit(lambda: [rows[-1] if k < 2 else rows for k, rows in enumerate(run("python"))], mode="python")
    for one, other in zip(f(), g(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)


def test_an_end_a_check_lanes_and_shared_variables() -> None:
    def step(i: Any, u: Any, x: Any) -> Any:
        return swapped(i[0], i[1], x), ns.until(u > 1)

    values = ([PLACES, NUMBERS], ROW)
    for options in ({}, {"mode": ns.Mode(check_finite=True)}):
        np.testing.assert_array_equal(ns.scan(step, keep_last=1, **options)(*values), ns.scan(step, keep_last=1, mode="python")(*values))
    rows = rng.normal(size=(9, N))
    lanes = ns.jit(ns.vmap(lambda x: ns.scan(step, [PLACES, NUMBERS], x, keep_last=1, return_updates=False)))
    np.testing.assert_array_equal(lanes(rows), [ns.scan(step, keep_last=1, mode="python")([PLACES, NUMBERS], row) for row in rows])
    kept = []
    for mode in (None, "python"):
        s = ns.shared(ROW)
        ns.scan(lambda i, s=s: (i[0], {s: swapped(i[0], i[1], s)}), mode=mode)(PLACES)
        kept.append(s.get_value())
    np.testing.assert_array_equal(*kept)
    with pytest.raises(IndexError):
        ns.scan(step, keep_last=1)([PLACES + N, NUMBERS], ROW)


def test_no_step_replaces_nothing() -> None:
    s, x, n = ns.shared(ROW), nt.dvector("x"), nt.lscalar("n")
    rows, updates = ns.scan(lambda x, s: (swapped(0, 1, x), {s: swapped(2, 3, s)}), None, x, s, n_steps=n)
    f = ns.function([x, n], rows[-1:], updates=updates)
    assert f(ROW, 0).shape == (0, N)
    np.testing.assert_array_equal(s.get_value(), ROW)
    (last,) = f(ROW, 3)
    np.testing.assert_array_equal(last[:4], ROW[[1, 0, 2, 3]])
    np.testing.assert_array_equal(s.get_value()[:4], ROW[[0, 1, 3, 2]])


# choices and inner loops --------------------------------------------------------------------------------------------


def inner(step: Any, seqs: Any, x: Any, *others: Any, **options: Any) -> Any:
    return ns.scan(step, seqs, x, others or None, keep_last=1, return_updates=False, **options)


UPDATES = {
    "a choice": lambda i, u, x: nt.ifelse(u > 0, put(x, i[0], x[i[1]]), x),
    "a choice of two": lambda i, u, x: nt.ifelse(u > x[2], put(x, i[0], u), x * 0.5 + u),
    "a choice that leaves it else": lambda i, u, x: nt.ifelse(u > 0, x, put(x, slice(2, 5), x[3:6])),
    "a choice in a choice, then a set": lambda i, u, x: put(
        nt.ifelse(u > -1, nt.ifelse(u > 0, put(x, 0, x[1]), put(x, 1, x[0])), x), i[2], x[i[3]]
    ),
    "an inner loop": lambda i, u, x: inner(lambda k, x: put(x, k + 1, x[k] * 0.5 + u), np.arange(4), x),
    "an inner loop over what is old": lambda i, u, x: inner(lambda k, v, x: put(x, k + 1, v + u), [np.arange(4), x[:4]], x),
    "an inner loop of choices": lambda i, u, x: inner(lambda k, x: nt.ifelse(x[k] > 0, put(x, k, -u), x), i, x),
    "loops in a choice": lambda i, u, x: nt.ifelse(u > 0, inner(lambda k, x: put(x, k, u), i[:2], x), x),
    "a loop in a loop": lambda i, u, x: inner(
        lambda k, x: inner(lambda m, x: nt.inc_subtensor(x[k + m], x[m]), np.arange(3), x), np.arange(4), x
    ),
    "a loop with a sum, and an end": lambda i, u, x: inner(
        lambda k, x, s: ((put(x, k, s), s + x[k + 1]), ns.until(s > 1)), np.arange(6), [x, u]
    )[0],
}


@pytest.mark.usefixtures("rewritten")
def test_choices_and_inner_loops_write_what_they_change() -> None:
    step = lambda i, u, *xs: [update(i, u, x) for update, x in zip(UPDATES.values(), xs, strict=True)]  # noqa: E731 - an argument
    found, expected, source = both(step, [PLACES % 20, NUMBERS], [ROW * (k + 1) for k in range(len(UPDATES))])
    for name, one, other in zip(UPDATES, found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, err_msg=name)
    assert "_rows" not in source
    loop = source[source.index("for t in") :]
    assert loop.count(".shape[0]):") == 1  # x * 0.5 + u alone goes over a row


def test_what_an_inner_loop_or_a_choice_reads_elsewhere_is_the_old_row() -> None:
    """Each pair reads the other's row, or reads between: where that cannot be put by, the row is copied."""

    def step(i: Any, u: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, k: Any, m: Any) -> Any:
        reads = lambda x, y: inner(lambda k, v, x: put(x, k, v * 0.5), [np.arange(5), y[2:7]], x)  # noqa: E731 - an argument
        rows = ns.scan(lambda k, x: put(x, k, u), np.arange(3), e, return_updates=False)
        first = put(h, 0, u)
        return (
            reads(a, b),
            put(b, 3, u),  # read by the loop before
            put(c, 3, u),
            reads(d, c),  # reads the one before
            rows[-1],
            nt.ifelse(u > 0, put(f, 1, g[1]), put(g, 1, f[1])),  # either of two arrays
            inner(lambda k, x, y: put(x, k, y[k - 1] * 0.5 + u), np.arange(3), g, g),  # the array twice
            nt.ifelse(first[0] > 0, put(first, 1, u), first),
            nt.ifelse(u > 0, k[::-1], put(k, 0, u)),
            inner(lambda k, v, x: put(x, k, v), [np.arange(5), m[1:6]], put(m, 2, u)),
            rows[-2, 1] + rows.sum() + first[:3].sum(),
        )

    start = [ROW[k:] * 0.9**k for k in (0, 0, 0, 0, 1, 2, 2, 1, 1, 0)]
    for values in ([PLACES, NUMBERS], [PLACES[:2], NUMBERS[:2]]):
        found, expected, _ = both(step, values, [*start, None])
        for k, (one, other) in enumerate(zip(found, expected, strict=True)):
            np.testing.assert_allclose(one, other, rtol=1e-13, err_msg=str(k))


def test_loops_of_no_step_other_lengths_and_gradients() -> None:
    def step(n: Any, u: Any, x: Any) -> Any:
        return nt.ifelse(u > 0, put(inner(lambda x: nt.inc_subtensor(x[n], x[0] * u), None, x, n_steps=n), 1, u * x[2]), x)

    loop, plain = ns.scan(step, keep_last=1), ns.scan(step, keep_last=1, mode="python")
    counts = np.array([2, 1, 3, 2, 1, 2])
    np.testing.assert_allclose(loop([counts, NUMBERS], ROW), plain([counts, NUMBERS], ROW), rtol=1e-13)
    for one in (loop, plain):
        with pytest.raises(IndexError):
            one([counts * 0, np.abs(NUMBERS)], ROW)
    with pytest.raises(ValueError, match="changes the shape"):
        ns.scan(lambda u, x: nt.ifelse(u > 0, put(x, 0, u), x[:-1] * 2), keep_last=1)(-np.abs(NUMBERS), ROW)
    cost = lambda x, u, **options: (  # noqa: E731 - an argument
        ns.scan(step, [counts, u], x, keep_last=1, return_updates=False, **options) ** 2
    ).sum()
    expected = ns.jit(ns.grad(cost, (0, 1)), mode="python")(ROW, NUMBERS)
    for options in ({}, {"checkpoint": 2}):
        gradients = ns.jit(ns.grad(lambda x, u, options=options: cost(x, u, **options), (0, 1)))(ROW, NUMBERS)
        for one, other in zip(gradients, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11)


# random steps -------------------------------------------------------------------------------------------------------


def random_step(rng: np.random.Generator) -> Any:
    """A step that replaces one to three parts, each of any kind by any kind of value, perhaps chosen; with a second state and a result."""
    links = [[*rng.integers(0, 8, 2), int(rng.integers(0, 5)), rng.random() < 0.3, rng.random() < 0.15] for _ in range(rng.integers(1, 4))]
    choice, second, result = rng.integers(0, 4, 3)

    def step(i: Any, p: Any, u: Any, x: Any, b: Any) -> Any:
        new = x
        for place, value, k, adds, follows in links:
            source = new if follows else x
            at = [
                i[k],
                3,
                (x[0] * 7).astype("int64") % 3,
                slice(2, 7),
                slice(-6, -1),
                slice(i[k] % 9, i[k] % 9 + 5),
                p,
                slice(None, None, 2),
            ]
            part = source[at[place]]
            values = [u, part * 0.5 + u, part, source.sum() * 0.1, source[i[k - 1]], part[::-1] if part.ndim else source[1], part + b[0]]
            values.append(np.tanh(source[-1]) + b[i[k] % 5])
            target = new[at[place]]
            new = nt.inc_subtensor(target, values[value] * 0.1) if adds else nt.set_subtensor(target, values[value])
        new = [new, np.where(u > 0, new, x), np.where(u > 0, x, new), nt.ifelse(u > 0, new, x)][choice]
        b = [b * 0.9, b + x[:5], b * 0.5 + new[:5], nt.set_subtensor(b[1], x[3])][second]
        return new, b, [u, x[2], new[2], (x * 1.5)[:3].sum()][result]

    return step


@pytest.mark.parametrize("seed", wide(range(200), first=10))
def test_random_steps(seed: int) -> None:
    step = random_step(np.random.default_rng(seed))
    loops = [ns.scan(step, keep_last=[1, 1, None], mode=mode) for mode in (None, "python")]
    results = [loop([PLACES, POSITIONS, NUMBERS], [ROW, OTHER, None]) for loop in loops]
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
