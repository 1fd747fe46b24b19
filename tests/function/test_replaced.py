"""Variables that become inputs, or are replaced with `givens` by others of other lengths: plain NumPy with another value in their place."""

import pickle
import random

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.ir.graph import toposort
from numbascan.ir.loop_node import SCAN, loop_spec

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

    def __str__(self):
        return "\n".join(f"v{k} = {name}({', '.join(f'v{j}' for j in operands)})" for k, (name, _, operands) in enumerate(self.lines, 2))


def alike(symbolic, place):
    """The lines whose values are one variable with that of a line: equal expressions are."""
    return [k for k, variable in enumerate(symbolic) if variable.node is symbolic[place].node]


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
    chosen = [alike(symbolic, k) for k in draw.sample(range(len(symbolic) - 1), draw.choice([1, 1, 2]))]
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
        with pytest.raises(ValueError, match=r"length|shape|broadcast|dimension"):
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
        found = expected(program, numbers, dict.fromkeys(alike(symbolic, place), value))
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


# one feature at a time ------------------------------------------------------------------------------------------------


@pytest.fixture(params=["python", None])
def mode(request):
    return request.param


def replaced(outputs, variable, value, mode="python", others=()):
    """The value of `outputs` where `variable` is replaced by another one of that value."""
    stand_in = nt.dvector("z")
    inputs = [stand_in, *(one for one, _ in others)]
    function = ns.function(inputs, outputs, givens={variable: stand_in}, mode=mode, on_unused_input="ignore")
    return function(value, *(given for _, given in others))


SIX = np.arange(6.0)


def test_a_mean_has_the_length_of_what_stands_in_its_place(mode):
    x, z = nt.dvectors("x z")
    y = x * 2
    assert ns.function([x, z], y.mean(), givens={y: z}, mode=mode, on_unused_input="ignore")(np.ones(3), SIX) == 2.5
    assert ns.function([y], y.mean(), mode=mode)(SIX) == 2.5
    np.testing.assert_allclose(ns.function([y], ns.grad((y**2).mean(), y), mode=mode)(SIX), SIX / 3)


def test_a_scan_runs_as_many_steps_as_what_stands_in_its_place_has_rows(mode):
    x = nt.dvector("x")
    y = x * 2
    rows, _ = ns.scan(lambda v, s: s + v, sequences=y, outputs_info=0.0)
    np.testing.assert_allclose(replaced(rows, y, SIX, mode), np.cumsum(SIX))
    steps, _ = ns.scan(lambda s: s + y.mean(), outputs_info=0.0, n_steps=y.shape[0])
    np.testing.assert_allclose(replaced(steps, y, SIX, mode), 2.5 * np.arange(1, 7))
    backwards, _ = ns.scan(lambda v, w: v - w, sequences=[{"input": y, "taps": [0, 1]}], go_backwards=True)
    np.testing.assert_allclose(replaced(backwards, y, SIX**2, mode), [-9.0, -7.0, -5.0, -3.0, -1.0])


def test_sizes_are_those_of_what_stands_in_its_place():
    x = nt.dvector("x")
    y = x * 2
    np.testing.assert_array_equal(replaced(nt.arange(y.shape[0]), y, SIX), SIX)
    np.testing.assert_array_equal(replaced(np.zeros_like(y), y, SIX), np.zeros(6))
    np.testing.assert_array_equal(replaced(y.reshape((x.shape[0] // 1, 1)), x, SIX), 2 * SIX[:, None])
    np.testing.assert_array_equal(replaced(np.broadcast_to(x.sum(), y.shape), y, SIX, others=[(x, np.ones(2))]), np.full(6, 2.0))
    np.testing.assert_array_equal(replaced(np.broadcast_to(y, x.shape), y, np.ones(1), others=[(x, SIX)]), np.ones(6))
    np.testing.assert_array_equal(replaced(nt.set_subtensor(nt.zeros(y.shape[0])[1:], y[1:]), y, SIX), SIX)


def test_a_gradient_is_summed_where_what_stands_in_its_place_was_broadcast(mode):
    x = nt.dvector("x")
    y = x * 2
    gradient = ns.grad((x * y).sum(), y)
    np.testing.assert_allclose(ns.function([x, y], gradient, mode=mode)(SIX, np.ones(1)), [15.0])


def test_derivatives_with_respect_to_an_inner_variable_need_nothing_behind_it():
    x, q = nt.dvectors("x q")
    y = x * 2
    value = y**2 / y.shape[0]
    np.testing.assert_allclose(ns.function([y], ns.jacobian(value, y), mode="python")(SIX), np.diag(SIX / 3))
    np.testing.assert_allclose(ns.function([y], ns.hessian((y**3).mean(), y), mode="python")(SIX), np.diag(SIX))
    np.testing.assert_allclose(ns.function([y, q], ns.Lop(value, y, q), mode="python")(SIX, SIX), SIX**2 / 3)
    np.testing.assert_allclose(ns.function([y, q], ns.Rop(value, y, q), mode="python")(SIX, SIX), SIX**2 / 3)


@pytest.mark.parametrize("checkpoint", [None, 2])
def test_gradients_of_loops_over_what_stands_in_its_place(checkpoint, mode):
    x = nt.dvector("x")
    y = x * 2
    rows, _ = ns.scan(lambda v, s: np.tanh(s * 0.5 + v * y.mean()), sequences=y, outputs_info=0.0, checkpoint=checkpoint)
    found = replaced(ns.grad((rows**2).mean(), y), y, SIX / 5, mode)

    def cost(values):
        s, total = 0.0, 0.0
        for v in values:
            s = np.tanh(s * 0.5 + v * values.mean())
            total += s**2
        return total / len(values)

    slopes = [(cost(SIX / 5 + step) - cost(SIX / 5 - step)) / 2e-6 for step in 1e-6 * np.eye(6)]
    np.testing.assert_allclose(found, slopes, rtol=1e-6)


def test_shared_variables_functions_lanes_and_rules_follow_what_stands_in_the_place():
    x = nt.dvector("x")
    y = x * 2
    start = ns.shared(np.ones(3), "start")
    assert replaced((start * 2).mean(), start, SIX) == 5.0
    assert replaced(ns.jit(lambda u: u.mean() + u.shape[0])(y), y, SIX) == 8.5
    rows = nt.dmatrix("rows") * 2
    lanes = ns.vmap(lambda u: u - u.mean() + u.shape[0])(rows)
    wide = nt.dmatrix("wide")
    found = ns.function([wide], lanes, givens={rows: wide}, mode="python")(SIX.reshape(2, 3))
    np.testing.assert_allclose(found, [[2.0, 3.0, 4.0], [2.0, 3.0, 4.0]])

    @ns.custom_vjp
    def scaled(u):
        return u * u.shape[0]

    scaled.defvjp(lambda u: (scaled(u), u), lambda u, above: (above * u.shape[0],))
    np.testing.assert_allclose(replaced(ns.grad(scaled(y).sum(), y), y, SIX), np.full(6, 6.0))


def test_a_strict_step_may_ask_for_the_length_of_what_it_was_given():
    x = nt.dvector("x")
    y = x * 2
    rows, _ = ns.scan(lambda s, y: s + y.shape[0], outputs_info=0.0, non_sequences=y, n_steps=2, strict=True)
    np.testing.assert_array_equal(ns.function([x], rows, mode="python")(SIX), [6.0, 12.0])


@pytest.mark.parametrize("mode", ["python", None, "debug"])
def test_what_stands_in_the_place_of_a_fixed_length_must_have_it(mode):
    fixed, z = nt.vector("fixed", shape=(3,)), nt.dvector("z")
    mean = ns.function([z], fixed.mean(), givens={fixed: z}, mode=mode)
    assert mean(np.arange(3.0)) == 1.0
    with pytest.raises(ValueError, match=r"what is given for fixed has (shape \(6,\)|length 6)"):
        mean(SIX)


def test_what_cannot_stand_in_the_place_of_a_variable_is_refused_at_once():
    fixed = nt.vector("fixed", shape=(3,))
    with pytest.raises(ValueError, match=r"what is given for fixed has shape \(6,\)"):
        ns.function([], fixed.mean(), givens={fixed: nt.vector(shape=(6,))})
    with pytest.raises(ValueError, match=r"what is given for fixed has shape \(6,\)"):
        ns.function([], fixed.mean(), givens={fixed: SIX})
    with pytest.raises(TypeError, match=r"float32\[\?\], but float64\[3\] is needed"):
        ns.function([], fixed.mean(), givens={fixed: nt.fvector("single")})


def test_so_many_steps_are_a_fixed_length(mode):
    x, z = nt.dvectors("x z")
    rows, _ = ns.scan(lambda s: s + x.sum(), outputs_info=0.0, n_steps=5)
    assert (rows * 2).shape == (5,)
    function = ns.function([rows], (rows * 2).mean(), mode=mode)
    assert function(np.arange(5.0)) == 4.0
    with pytest.raises(ValueError, match=r"argument 0 \(.*\) has shape \(6,\)"):
        function(SIX)
    with pytest.raises(ValueError, match=r"what is given for .* has (shape \(6,\)|length 6)"):
        ns.function([z], (rows * 2).mean(), givens={rows: z}, mode=mode)(SIX)


def test_lengths_that_are_equal_around_a_loop_are_equal_in_its_step():
    x = nt.dvector("x")
    graph = ns.function([x], ns.hessian((np.tanh(x) ** 3).sum() * x.mean(), x), mode="python").graph
    (loop,) = [node for node in toposort(graph.outputs) if node.op is SCAN]
    step = [node.op.name for node in toposort(loop_spec(loop).inner_outputs())]
    assert (step.count("broadcast_to"), step.count("sum_to")) == (3, 0)


def test_a_length_stays_a_python_number_where_a_number_stands_in_its_place():
    single = nt.fvector("single")
    length = single.shape[0]
    function = ns.function([single], single * length, givens={length: 7}, mode="python")
    assert function(np.ones(2, "float32")).dtype == np.float32


# what is only measured is not computed --------------------------------------------------------------------------------


def ops_of(function):
    return [node.op.name for node in toposort(function.graph.outputs)]


def test_what_is_only_measured_is_not_computed():
    x, w = nt.dvector("x"), nt.dmatrix("w")
    rows, _ = ns.scan(lambda v, s: s + v, sequences=x * 2, outputs_info=0.0)
    assert ops_of(ns.function([x], (2 * x).shape[0])) == ["arg", "dim"]
    assert ops_of(ns.function([x], rows.shape[0])) == ["arg", "dim"]
    assert "contract" not in ops_of(ns.function([w, x], np.zeros_like(w @ x), on_unused_input="ignore"))
    product = w @ x
    for given in ({"non_sequences": product}, {}):
        counted, _ = ns.scan(lambda s, *_: s + product.shape[0], outputs_info=0.0, n_steps=3, **given)
        assert "contract" not in ops_of(ns.function([w, x], counted, on_unused_input="ignore"))
    chosen = nt.ifelse(x[0] > 0, lambda: nt.zeros(product.shape[0]), lambda: nt.ones(product.shape[0]))
    assert "contract" not in ops_of(ns.function([w, x], chosen))


def test_what_is_only_measured_need_not_be_given():
    x, y = nt.dvectors("x y")
    assert ns.function([x], np.stack([x, y]).shape[1], mode="python")(SIX) == 6


def test_equal_lengths_are_found_where_a_function_is_closed():
    x = nt.dvector("x")
    twice = np.tanh(ns.grad((np.tanh(x * 2) ** 3).sum(), x))
    second = ns.function([x], ns.grad(twice.sum(), x))
    assert {"sum_to", "broadcast_to", "common_dim", "dim"}.isdisjoint(ops_of(second))
    assert "raise" not in second.source()
    rows = nt.dmatrix("rows")
    assert ops_of(ns.function([rows], (2 * rows).reshape((rows.shape[0], -1)))).count("dim") == 0


def test_lengths_are_asked_again_of_variables_from_a_file():
    x = nt.dvector("x")
    y = x * 2
    x, y, mean = pickle.loads(pickle.dumps([x, y, (y + 1).mean()]))
    inner = mean.owner.inputs[0]
    assert ns.function([y], mean, mode="python")(SIX) == 3.5
    assert inner is not None


# random programs ------------------------------------------------------------------------------------------------------


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
