"""Variables that become inputs, or are replaced with `givens` by others of other lengths: plain NumPy with another value in their place."""

import random

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt

# programs: what each line computes, of symbolic values or of arrays ----------------------------------------------------


def loop(step, rows, start=None, n_steps=None):
    """The rows that a step makes of the rows of an array, or of the last row where there is a start: a scan, or a plain loop."""
    if any(isinstance(value, nt.Variable) for value in (rows, start, n_steps)):
        outputs, _ = ns.scan(step, sequences=rows, outputs_info=[start], n_steps=n_steps)
        return outputs
    found, state = [], start
    for t in range(len(rows) if n_steps is None else n_steps):
        given = [] if rows is None else [rows[t]]
        state = step(*given) if start is None else step(*given, state)
        found.append(state)
    return np.array(found)


def shaped(a):
    return a.reshape(a.shape[0], 1)[:, 0] * 0.5


def nested(a):
    return loop(lambda v: loop(lambda w: np.sin(v * w) / a.shape[0] + a.mean(), a * 0.5).sum(), a)


def first_replaced(a):
    if isinstance(a, nt.Variable):
        return nt.set_subtensor(a[:1], a[:1] * 2 + a.shape[0])
    return np.concatenate([a[:1] * 2 + a.shape[0], a[1:]])


def first_raised(a, b):
    if isinstance(a, nt.Variable):
        return nt.inc_subtensor(a[:1], b.mean())
    return np.concatenate([a[:1] + b.mean(), a[1:]])


ZERO = np.float64(0.25)
OF_ONE = {  # vector -> vector
    "twice": lambda a: a * 2.0,
    "sine": lambda a: np.sin(a) * 0.9,
    "square": lambda a: a**2 / 8,
    "centred": lambda a: a - a.mean(),
    "by length": lambda a: a / a.shape[0] + a.shape[0],
    "scaled": lambda a: a / np.sqrt((a**2).sum() + 1.0),
    "backwards": lambda a: a[::-1] * 1.5,
    "cumsum": lambda a: np.cumsum(a) * 0.3,
    "spread": lambda a: np.broadcast_to(a.sum(), a.shape) * 0.1,
    "zeros": lambda a: np.zeros_like(a) + a.mean(),
    "count": lambda a: (nt.arange if isinstance(a, nt.Variable) else np.arange)(a.shape[0]) * 0.1,
    "shaped": shaped,
    "outer": lambda a: (a[:, None] * np.cos(a)[None, :]).mean(axis=0),
    "products": lambda a: (a[:, None] * a[None, :] * 0.1) @ np.cos(a),
    "variance": lambda a: a * a.var(),
    "sums": lambda a: loop(lambda v, s: np.tanh(s * 0.5 + v), a, ZERO),
    "map": lambda a: loop(lambda v: v * np.cos(v), a),
    "steps": lambda a: loop(lambda s: s * 0.9 + 0.01, None, ZERO, a.shape[0]),
    "rows": lambda a: loop(lambda s: np.sin(s) + s.mean(), None, a, 3)[-1],
    "captured": lambda a: loop(lambda v, s: s * 0.5 + v * a.mean() / a.shape[0], a, ZERO),
    "measured": lambda a: loop(lambda s: s * 0.5 + a.shape[0], None, ZERO, 2)[:1] + a * 0.1,
    "nested": nested,
    "set": first_replaced,
}
OF_TWO = {
    "sum": lambda a, b: a + np.cos(b),
    "product": lambda a, b: a * b * 0.5,
    "mean of other": lambda a, b: a * b.mean(),
    "length of other": lambda a, b: np.sin(a) / b.shape[0],
    "joined": lambda a, b: np.concatenate([a, b * 0.5]),
    "outer": lambda a, b: (a[:, None] + b[None, :]).mean(axis=1),
    "table": lambda a, b: np.tanh(a[:, None] * b[None, :]) @ b,
    "both": lambda a, b: a + (b * 0.0).sum() + b.shape[0],
    "raised": first_raised,
    "captured": lambda a, b: loop(lambda v, s: np.tanh(s + v * b.sum()), a, ZERO),
    "like other": lambda a, b: np.broadcast_to(a.mean(), b.shape) * b,
    "of other": lambda a, b: loop(lambda s: s * 0.9 + a.mean(), None, ZERO, b.shape[0]),
    "same shape": lambda a, b: np.broadcast_to(a, a.shape) * np.zeros(1) + a + b.sum(),
}


class Program:
    """Lines that each compute a vector from earlier ones. Values 0 and 1 are the arguments."""

    def __init__(self, seed):
        draw = random.Random(seed)
        self.lines = []
        for k in range(2, 2 + draw.randint(2, 6)):
            recent = [draw.choice([0, 1, k - 1, k - 1, draw.randrange(k)]) for _ in range(2)]
            if draw.random() < 0.6:
                name = draw.choice(sorted(OF_ONE))
                self.lines.append((name, OF_ONE[name], recent[:1]))
            else:
                name = draw.choice(sorted(OF_TWO))
                self.lines.append((name, OF_TWO[name], recent))

    def values(self, arguments, replaced=None):
        """The value of each line, those that are replaced as they are."""
        replaced, values = replaced or {}, []
        for k in range(2 + len(self.lines)):
            if k in replaced:
                values.append(replaced[k])
            elif k < 2:
                values.append(arguments[k])
            else:
                _, compute, operands = self.lines[k - 2]
                values.append(compute(*(values[j] for j in operands)))
        return values

    def results(self, values):
        return [values[-1], values[-1].mean(), values[-2] * values[-2].shape[0], sum((v * np.cos(v)).mean() for v in values[2:])]

    def places(self, place):
        """The lines that compute the same as one: equal expressions are one variable."""
        lines: dict = {}
        same = {0: 0, 1: 1}
        for k, (name, _, operands) in enumerate(self.lines, 2):
            same[k] = lines.setdefault((name, *(same[j] for j in operands)), k)
        return [k for k, first in same.items() if first == same[place]]

    def __str__(self):
        return "\n".join(f"v{k} = {name}({', '.join(f'v{j}' for j in operands)})" for k, (name, _, operands) in enumerate(self.lines, 2))


def drawn(seed, lengths):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=n) for n in lengths]


def expected(program, arguments, replaced):
    """What NumPy gives; None where it refuses."""
    try:
        return program.results(program.values(arguments, replaced))
    except ValueError:
        return None


def check_replaced(seed, mode):
    """Inner variables of a random program become inputs, or other expressions take their places."""
    draw, program = random.Random(seed), Program(seed)
    arguments = nt.dvectors("x0 x1")
    symbolic = program.values(arguments)
    length = draw.choice([3, 4])
    chosen = [program.places(k) for k in draw.sample(range(len(symbolic) - 1), draw.choice([1, 1, 2]))]
    places = sorted({same[0] for same in chosen})
    given = dict(zip(places, drawn(seed, [draw.choice([1, 2, length, 5, 6]) for _ in places]), strict=True))
    numbers = drawn(seed + 1, [length, draw.choice([length, 2])])
    wanted = expected(program, numbers, {k: given[same[0]] for same in chosen for k in same})
    fresh = {k: nt.dvector(f"z{k}") for k in places}
    outputs = program.results(symbolic)
    if draw.random() < 0.5:
        inputs = [*(one for k, one in enumerate(arguments) if k not in places), *(symbolic[k] for k in places)]
        function = ns.function(inputs, outputs, mode=mode, on_unused_input="ignore")
    else:
        inputs = [*(one for k, one in enumerate(arguments) if k not in places), *fresh.values()]
        doubled = {symbolic[k]: variable * 2.0 for k, variable in fresh.items()}
        function = ns.function(inputs, outputs, givens=doubled, mode=mode, on_unused_input="ignore")
        given = {k: value / 2 for k, value in given.items()}
    values = [*(one for k, one in enumerate(numbers) if k not in places), *given.values()]
    if wanted is None:
        with pytest.raises(ValueError):
            function(*values)
        return
    for found, result in zip(function(*values), wanted, strict=True):
        np.testing.assert_allclose(found, result, rtol=1e-9, atol=1e-11, err_msg=f"{program}\nreplaced: {places}")


def check_gradient(seed, mode):
    """The gradient with respect to an inner variable, of other length than it would have, against finite differences."""
    draw, program = random.Random(seed), Program(seed)
    arguments = nt.dvectors("x0 x1")
    symbolic = program.values(arguments)
    place = draw.randrange(2, len(symbolic) - 1)
    numbers, (point, direction) = drawn(seed, [3, 4]), drawn(seed + 1, [6, 6])
    numbers[1] = numbers[1][: draw.choice([3, 4])]

    def cost(value):
        found = expected(program, numbers, dict.fromkeys(program.places(place), value))
        return None if found is None else found[3] + found[1]

    if cost(point) is None:
        return
    results = program.results(symbolic)
    inner = symbolic[place]
    gradient = ns.grad(results[3] + results[1], inner, disconnected_inputs="ignore")
    function = ns.function([*arguments, inner], gradient, mode=mode, on_unused_input="ignore")
    found = function(*numbers, point)
    assert found.shape == point.shape
    step = 1e-6
    slope = (cost(point + step * direction) - cost(point - step * direction)) / (2 * step)
    np.testing.assert_allclose(found @ direction, slope, rtol=2e-5, atol=1e-7, err_msg=f"{program}\nwith respect to v{place}")


@pytest.mark.parametrize("first", range(0, 240, 40))
def test_random_programs_with_replaced_variables(first):
    for seed in range(first, first + 40):
        check_replaced(seed, "python")


@pytest.mark.parametrize("first", range(0, 120, 30))
def test_gradients_with_respect_to_inner_variables_of_random_programs(first):
    for seed in range(first, first + 30):
        check_gradient(seed, "python")


@pytest.mark.parametrize("seed", range(1000, 1012))
def test_compiled_random_programs_with_replaced_variables(seed):
    check_replaced(seed, None)
    check_gradient(seed, None)
