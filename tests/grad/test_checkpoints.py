"""Checkpoints change what a gradient stores and how often it runs a step, never its value."""

from collections import Counter

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.ops.checkpoint_schedule import extra_steps, fewest_slots, steps_again
from numbascan.oracle import interpret
from numbascan.oracle.recomputed_steps import steps_run_again
from numbascan.plan.cpu import CPU

SCHEDULES = ["binomial", "periodic", "online"]
STATE = 8  # bytes of a scalar float64 state


def states(count, schedule="binomial"):
    """Memory for so many scalar states."""
    return ns.Checkpoint(STATE * count, schedule)


CHECKPOINTS = [1, 3, 50, "auto", *(states(count, schedule) for schedule in SCHEDULES for count in (1, 2, 3, 6, 40))]
FEW = [1, 4, states(3), states(9, "periodic"), states(5, "online"), states(100, "online")]


def text(checkpoint):
    return f"{checkpoint.schedule}-{checkpoint.memory}" if isinstance(checkpoint, ns.Checkpoint) else str(checkpoint)


def rows(step, *args, **kwargs):
    return ns.scan(step, *args, return_updates=False, **kwargs)


def gradients(program, n_wrt, mode="python"):
    """(value, gradients with respect to the first arguments) of a program: (checkpoint) -> a function of arrays."""
    return lambda checkpoint: ns.jit(ns.value_and_grad(program(checkpoint), tuple(range(n_wrt))), mode=mode)


def same(found, expected, rtol=1e-12):
    """The value exactly, the gradients up to rounding."""
    np.testing.assert_array_equal(found[0], expected[0])
    for one, other in zip(found[1], expected[1], strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


# programs: each is (checkpoint) -> cost, how many arguments it is differentiated by, and arguments for n steps ---------------------------

RNG = np.random.default_rng(7)
W = RNG.normal(size=(9, 9)) / 3


def noise(*shape):
    return RNG.normal(size=shape)


def leaky(checkpoint):
    return lambda w, xs, v0: rows(lambda x, v, w: np.tanh(w * v + x), xs, v0, w, checkpoint=checkpoint)[1:].sum() + v0 * w


def last_row_or_none(checkpoint):
    def cost(w, xs, v0):
        path = rows(lambda x, v, w: np.tanh(w * v + x), xs, v0, w, checkpoint=checkpoint)
        return path[-1:].sum() + 0.5 * np.sum(path[::2] ** 2)

    return cost


def taps(checkpoint):
    def cost(w, xs, first):
        def step(before, here, later, third, one, w):
            return np.sin(third) * w + 0.3 * one * here + before * later

        sequence = {"input": xs, "taps": [-1, 0, 2]}
        return np.sum(rows(step, sequence, {"initial": first, "taps": [-3, -1]}, w, checkpoint=checkpoint) ** 2)

    return cost


def several(checkpoint):
    def cost(w, xs, a0, b0):
        def step(x, before, a, b, w):
            return a * w + np.cos(b), b + 0.1 * before * a, a * b * x

        outputs = [{"initial": a0, "taps": [-2, -1]}, b0, None]
        a, b, c = rows(step, xs, outputs, w, checkpoint=checkpoint)
        return a.sum() + np.sum(b[-2:] ** 2) + np.sum(c * a)

    return cost


def vectors(checkpoint):
    def cost(matrix, xs, v0):
        path = rows(lambda x, v, matrix: np.tanh(matrix @ v + x), xs, v0, matrix, checkpoint=checkpoint)
        return np.sum(path[-1:]) + np.sum(path**2)

    return cost


def integers(checkpoint):
    def cost(w, xs):
        _, path = rows(lambda x, k, v, w: (k + 2, v * w + x * k), xs, [np.int64(1), 0.5], w, checkpoint=checkpoint)
        return path.sum()

    return cost


def backwards(checkpoint):
    def cost(xs, v0):
        return rows(lambda x, y, v: v * 0.9 + np.sin(x * y), {"input": xs, "taps": [0, 1]}, v0, go_backwards=True, checkpoint=checkpoint)[
            -1:
        ].sum()

    return cost


def until(checkpoint):
    def cost(w, xs, v0, limit):
        def step(x, v, w, limit):
            new = v * w + x * x
            return (new, np.sqrt(new)), ns.until(new > limit)

        path, roots = rows(step, xs, [v0, None], [w, limit], checkpoint=checkpoint)
        return path[-1:].sum() + np.sum(roots * path)

    return cost


def nested(checkpoint):
    def cost(w, xs, v0):
        def step(row, v, w):
            return rows(lambda x, u, w: np.tanh(u * w + x), row, v, w, checkpoint=checkpoint)[-1]

        return np.sum(rows(step, xs, v0, w, checkpoint=checkpoint) ** 2)

    return cost


def everywhere(checkpoint):
    """One variable is sequence, initial value and non-sequence."""
    return lambda x: rows(lambda a, v, x: v * np.mean(x) + a * x, x, x, x, checkpoint=checkpoint).sum()


def without_states(checkpoint):
    return lambda w, xs: np.sum(rows(lambda x, w: np.exp(w * x), xs, None, w, checkpoint=checkpoint))


def untouched_state(checkpoint):
    """A state on which no input has an influence, and one whose rows nobody reads."""

    def cost(w, xs):
        def step(x, free, unread, v, w):
            return free * 0.5, unread + w * x, v + free * w * x

        return rows(step, xs, [1.0, 0.0, 0.0], w, checkpoint=checkpoint)[2].sum()

    return cost


PROGRAMS = {
    "leaky": (leaky, 3, lambda n: (0.7, noise(n), 0.3)),
    "last_row": (last_row_or_none, 3, lambda n: (0.7, noise(n), 0.3)),
    "taps": (taps, 3, lambda n: (0.7, noise(n + 3), noise(3))),
    "several": (several, 4, lambda n: (0.7, noise(n), noise(2), 0.3)),
    "vectors": (vectors, 3, lambda n: (W, noise(n, 9), noise(9))),
    "integers": (integers, 2, lambda n: (0.7, noise(n))),
    "backwards": (backwards, 2, lambda n: (noise(n + 1), 0.3)),
    "until": (until, 3, lambda n: (0.9, noise(n + 4), 0.3, 0.05 * n)),
    "nested": (nested, 3, lambda n: (0.7, noise(n, 4), 0.3)),
    "everywhere": (everywhere, 1, lambda n: (noise(n),)),
    "without_states": (without_states, 2, lambda n: (0.7, noise(n))),
    "untouched_state": (untouched_state, 2, lambda n: (0.7, noise(n))),
}
LENGTHS = [0, 1, 2, 3, 4, 5, 11]


@pytest.mark.parametrize("checkpoint", CHECKPOINTS, ids=text)
def test_no_length_and_no_memory_changes_a_gradient(checkpoint):
    program, n_wrt, values = PROGRAMS["last_row"]
    plain, checkpointed = gradients(program, n_wrt)(None), gradients(program, n_wrt)(checkpoint)
    for n in (*LENGTHS, 24, 50):
        given = values(n)
        same(checkpointed(*given), plain(*given))


@pytest.mark.parametrize("checkpoint", FEW, ids=text)
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "last_row"])
def test_no_kind_of_loop_is_excepted(name, checkpoint):
    program, n_wrt, values = PROGRAMS[name]
    plain, checkpointed = gradients(program, n_wrt)(None), gradients(program, n_wrt)(checkpoint)
    for n in LENGTHS:
        given = values(n)
        same(checkpointed(*given), plain(*given))


@pytest.mark.parametrize("truncated", [1, 3, 4, 20])
@pytest.mark.parametrize("checkpoint", [2, states(2), states(6, "online")], ids=text)
def test_truncate_gradient(checkpoint, truncated):
    def program(checkpoint):
        def cost(w, xs, first, limit):
            def step(x, third, one, w, limit):
                new = np.sin(third) * w + one * x
                return new, ns.until(new > limit)

            start = {"initial": first, "taps": [-3, -1]}
            path = rows(step, xs, start, [w, limit], truncate_gradient=truncated, checkpoint=checkpoint)
            return path[-1:].sum() + np.sum(path**2)

        return cost

    plain, checkpointed = gradients(program, 3)(None), gradients(program, 3)(checkpoint)
    for n in (1, 3, 4, 9):
        for limit in (0.8, 100.0):
            given = 0.7, noise(n), noise(3), limit
            same(checkpointed(*given), plain(*given))


@pytest.mark.parametrize("checkpoint", FEW, ids=text)
def test_the_initial_value_of_a_shared_variable_has_its_gradient(checkpoint):
    x, w = nt.dvector("x"), nt.dscalar("w")

    def compiled(checkpoint):
        total, level = ns.shared(0.4, name="total"), ns.shared(np.array([0.3, -0.2]), name="level")

        def step(x, v, w):
            return v * w + total + level.sum(), {total: total * w + x, level: np.tanh(level * v)}

        path, updates = ns.scan(step, x, 0.1, w, checkpoint=checkpoint)
        cost = np.sum(path) + updates[total] * path[-1:].sum() + np.sum(updates[level])
        return ns.function([x, w], [cost, *ns.grad(cost, [x, w, total, level])], mode="python")

    plain, checkpointed = compiled(None), compiled(checkpoint)
    for n in (1, 2, 5, 10):
        given = noise(n), 0.8
        for one, other in zip(checkpointed(*given), plain(*given), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("checkpoint", FEW, ids=text)
def test_single_precision_stays_single(checkpoint):
    values = np.float32(0.7), noise(7).astype("float32"), np.float32(0.3)
    plain, checkpointed = gradients(leaky, 3)(None)(*values), gradients(leaky, 3)(checkpoint)(*values)
    assert all(one.dtype == "float32" for one in checkpointed[1])
    same(checkpointed, plain, rtol=1e-5)


@pytest.mark.parametrize("checkpoint", [2, states(2), states(7, "periodic"), states(4, "online")], ids=text)
def test_second_derivatives_through_a_loop_with_checkpoints(checkpoint):
    def hessian(checkpoint):
        def cost(z):
            start = {"initial": z[:2], "taps": [-2, -1]}
            path = rows(lambda x, a, b, z: np.sin(a * z[2]) + b * x, z, start, z, checkpoint=checkpoint)
            return path[-1] + np.sum(path**2)

        return ns.jit(ns.hessian(cost), mode="python")(np.array([0.3, -0.4, 0.9, 0.2, 0.6]))

    np.testing.assert_allclose(hessian(checkpoint), hessian(None), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("checkpoint", FEW, ids=text)
def test_forward_mode_along_a_gradient_with_checkpoints(checkpoint):
    def along(checkpoint):
        def moved(w, xs):
            return ns.jvp(ns.grad(leaky(checkpoint), (0, 1)), (w, xs, 0.3), (1.0, np.ones_like(xs), 0.0))[1]

        return ns.jit(moved, mode="python")(0.7, np.linspace(-1, 1, 8))

    for one, other in zip(along(checkpoint), along(None), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


def test_a_value_does_not_change():
    given = 0.7, noise(9), 0.3
    expected = ns.jit(leaky(None), mode="python")(*given)
    for checkpoint in CHECKPOINTS:
        assert ns.jit(leaky(checkpoint), mode="python")(*given) == expected


# scan_checkpoints -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3, 5, 8, 100])
@pytest.mark.parametrize("is_padded", [True, False])
def test_scan_checkpoints_has_the_gradient_of_the_rows_it_returns(k, is_padded):
    def step(before, here, third, one, w):
        return np.sin(third) * w + before * one * here, here * w

    def with_checkpoints(w, xs, first):
        start = [{"initial": first, "taps": [-3, -1]}, None]
        (kept, others), _ = ns.scan_checkpoints(step, {"input": xs, "taps": [-1, 0]}, start, w, save_every_N=k, padding=is_padded)
        return np.sum(kept**2) + others.sum()

    def without(w, xs, first):
        start = [{"initial": first, "taps": [-3, -1]}, None]
        path, others = rows(step, {"input": xs, "taps": [-1, 0]}, start, w)
        n = path.shape[0]
        chosen = path[k - 1 :: k], others[k - 1 :: k]
        if is_padded and n % k:
            chosen = tuple(np.concatenate([rows, whole[-1:]]) for rows, whole in zip(chosen, (path, others), strict=True))
        return np.sum(chosen[0] ** 2) + chosen[1].sum()

    for n in (1, 5, 8, 12):
        given = 0.8, noise(n + 1), noise(3)
        found, expected = (
            ns.jit(ns.value_and_grad(f, (0, 1, 2), disconnected_inputs="ignore"), mode="python")(*given)
            for f in (with_checkpoints, without)
        )
        same(found, expected)


@pytest.fixture
def text_alone(monkeypatch):
    """Functions are lowered to text, which is not compiled: it tells their memory."""
    monkeypatch.setattr("numbascan.backends.load", lambda text, name: None)


# how many steps are run again -------------------------------------------------------------------------------------------------------------

OPTIMUM = [(10, 3, 15), (100, 5, 316), (1000, 10, 3636), (10**6, 100, 3_817_896)]


@pytest.mark.parametrize("n, count, expected", OPTIMUM)
def test_the_number_of_steps_run_again_is_told_before_anything_runs(n, count, expected, text_alone):
    gradient = ns.grad(leaky(states(count)), (0, 2))
    gradient.lower(0.7, np.zeros(n), 0.3)
    memory = gradient.memory()
    assert memory.steps_again == expected == extra_steps(n, count)
    assert memory.checkpoints <= STATE * count


def run_steps(program, given, monkeypatch):
    """How often a program runs steps of each loop in mode="python", by the loop's name; and how often its backward loop is run."""
    steps, runs = Counter(), Counter()
    step, run = interpret.LoopRun.step, interpret.LoopRun.run

    def counted(self, t):
        steps[self.spec.name] += 1
        return step(self, t)

    def counted_run(self):
        runs[self.spec.name] += self.n_steps > 0
        return run(self)

    monkeypatch.setattr(interpret.LoopRun, "step", counted)
    monkeypatch.setattr(interpret.LoopRun, "run", counted_run)
    program(*given)
    monkeypatch.undo()
    return steps, runs


def named(checkpoint):
    return lambda w, xs, v0: rows(lambda x, v, w: np.tanh(w * v + x), xs, v0, w, checkpoint=checkpoint, name="loop")[-1]


@pytest.mark.parametrize("n, count, expected", OPTIMUM[:2])
def test_no_more_steps_are_run(n, count, expected, monkeypatch):
    gradient = ns.jit(ns.grad(named(states(count)), (0, 1)), mode="python")
    steps, runs = run_steps(gradient, (0.7, np.linspace(-1, 1, n), 0.3), monkeypatch)
    assert steps["loop_gradient"] == n
    assert steps["loop"] - runs["loop_gradient"] == expected  # each run of the backward loop computes a last step for itself


def graph_of_gradient(checkpoint, **options):
    """A gradient as a function in mode="python": of w, a sequence and an initial value."""
    w, xs, v0 = nt.dscalar("w"), nt.dvector("xs"), nt.dscalar("v0")
    path = rows(lambda x, v, w: np.tanh(w * v + x), xs, v0, w, checkpoint=checkpoint, name="loop", **options)
    return ns.function([w, xs, v0], ns.grad(path[-1], [w, xs]), mode="python")


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("count", [1, 2, 4, 9, 16, 44, 45, 60])
def test_what_is_told_is_what_is_run(schedule, count, monkeypatch):
    n = 45
    gradient, given = graph_of_gradient(states(count, schedule)), (0.7, np.linspace(-1, 1, n), 0.3)
    told = steps_run_again(gradient.graph, given)
    steps, runs = run_steps(gradient, given, monkeypatch)
    first = n if schedule == "online" else 0  # the loop's own run, which the gradient alone does not need otherwise
    assert steps["loop"] - runs["loop_gradient"] - first == told
    if schedule == "binomial":
        assert told == extra_steps(n, count)
    if schedule == "online":  # the states at hand after the loop's run spare steps
        assert told <= extra_steps(n, count)


@pytest.mark.parametrize("checkpoint", [5, states(4), states(9, "online")], ids=text)
def test_steps_before_those_that_truncate_gradient_leaves_are_told_too(checkpoint, monkeypatch):
    gradient, given = graph_of_gradient(checkpoint, truncate_gradient=10), (0.7, np.linspace(-1, 1, 30), 0.3)
    steps, runs = run_steps(gradient, given, monkeypatch)
    assert steps["loop_gradient"] == 10
    assert steps["loop"] - runs["loop_gradient"] == steps_run_again(gradient.graph, given)


def test_every_kth_state_costs_less_than_two_runs(monkeypatch):
    gradient, given = graph_of_gradient(10), (0.7, np.linspace(-1, 1, 95), 0.3)
    steps, runs = run_steps(gradient, given, monkeypatch)
    assert runs["loop_gradient"] == 10
    assert steps["loop"] - 10 == steps_run_again(gradient.graph, given) == 90 + 95 - 10  # to the last state, then within each block


def test_the_numbers_of_steps_are_the_least_there_are():
    """The blocks of the schedule against the formula, for every number of steps and of states."""
    for steps in range(1, 70):
        for count in range(1, steps + 3):
            slots = fewest_slots(steps, count, 1, 1)
            block = count - slots + 2 if slots else 1
            assert steps_again(steps, slots or count, min(block, steps)) == extra_steps(steps, count)


def test_the_least_number_of_steps_is_that_of_the_recursion():
    """Griewank & Walther's formula against trying every place for the next state."""
    best = {(1, s): 0 for s in range(1, 8)}
    for n in range(2, 40):
        best[n, 1] = n * (n - 1) // 2
        for s in range(2, 8):
            best[n, s] = min(ahead + best[n - ahead, s - 1] + best[ahead, s] for ahead in range(1, n))
    assert {key: extra_steps(*key) for key in best} == best


# memory -----------------------------------------------------------------------------------------------------------------------------------


def told(checkpoint, n, width):
    """What a gradient over vectors says that it stores, before it runs."""

    def cost(w, xs, v0):
        return np.sum(rows(lambda x, v, w: np.tanh(w * v + x), xs, v0, w, checkpoint=checkpoint)[-1])

    gradient = ns.grad(cost, (0, 2))
    return gradient.lower(0.7, np.zeros((n, width)), np.zeros(width)).memory()


def told_of_a_network(checkpoint, n, inputs, hidden):
    """The same of a network with weights, whose products a backward pass keeps."""

    def cost(weights, recurrent, xs):
        path = rows(lambda x, h, w, u: np.tanh(w @ x + u @ h), xs, np.zeros(hidden), [weights, recurrent], checkpoint=checkpoint)
        return np.sum(path[-1] ** 2)

    gradient = ns.grad(cost, (0, 1))
    return gradient.lower(np.zeros((hidden, inputs)), np.zeros((hidden, hidden)), np.zeros((n, inputs))).memory()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_no_more_is_stored_than_was_given(schedule, text_alone):
    width, count = 20, 40
    row = STATE * width
    small, large = (told(ns.Checkpoint(row * count, schedule), n, width) for n in (1000, 5000))
    given, places = row * count, STATE * count
    for memory in (small, large):
        assert row < memory.checkpoints <= given
        # a dozen rows of work, as without checkpoints, and one for a tile of elements, whose length is fixed
        assert memory.trace + memory.checkpoints + memory.work <= given + places + 12 * row + STATE * CPU.tile
    assert large.per_step == 0


@pytest.mark.usefixtures("rewritten")
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_a_block_keeps_besides_states_counts_as_well(schedule, text_alone):
    n, inputs, hidden = 5000, 30, 40
    fixed = told_of_a_network(ns.Checkpoint(1), n, inputs, hidden)
    for given in (10**5, 10**6):
        memory = told_of_a_network(ns.Checkpoint(given, schedule), n, inputs, hidden)
        assert 0.5 * given < memory.total - fixed.total < 1.1 * given
    assert told_of_a_network(None, n, inputs, hidden).trace > 5 * 10**6


def test_all_states_are_stored_where_they_fit(text_alone):
    memory = told("auto", 1000, 20)
    assert memory.per_step == STATE * 20
    assert memory.checkpoints == STATE * 20  # the first state; the others are one block
    assert memory.steps_again == 999


def test_of_a_large_block_size_no_more_is_taken_than_the_loop_is_long(text_alone):
    memory = told(10**9, 30, 20)
    assert memory.total < 10**5


# compiled ---------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, checkpoint",
    [
        ("vectors", ns.Checkpoint(9 * STATE * 4)),
        ("several", 3),
        ("taps", ns.Checkpoint(3 * STATE * 4, "online")),
        ("until", ns.Checkpoint(STATE * 3, "online")),
        ("until", states(7, "periodic")),
        ("nested", states(2)),
        ("everywhere", ns.Checkpoint(1, "online")),
    ],
    ids=str,
)
def test_compiled_code_gives_the_same(name, checkpoint):
    program, n_wrt, values = PROGRAMS[name]
    plain, compiled = gradients(program, n_wrt)(None), gradients(program, n_wrt, mode=None)(checkpoint)
    for n in (1, 4, 37):
        given = values(n)
        expected, found = plain(*given), compiled(*given)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
        for one, other in zip(found[1], expected[1], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


def test_memory_is_taken_before_the_turns(text_alone):
    gradient = ns.grad(named(states(3, "online")), (0, 1))
    gradient.lower(0.7, np.zeros(50), 0.3)
    before, turns = gradient.source().split("is_stored = ", 1)
    assert "checkpoints_v = np.empty(slots)" in before
    assert "np.empty" not in turns


# errors -----------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "memory, count", [("512MB", 512 * 10**6), ("2 GiB", 2**31), ("1.5kB", 1500), ("1e3", 1000), (77, 77), (np.int64(5), 5), ("64B", 64)]
)
def test_memory_is_bytes_or_a_text_with_a_unit(memory, count):
    assert ns.Checkpoint(memory).bytes == count


@pytest.mark.parametrize("memory", [0, -5, "0MB", "much", "5 apples", "", None, True, float("nan"), float("inf"), [1]])
def test_memory_that_is_no_number_of_bytes(memory):
    with pytest.raises(ValueError, match=r"ns\.Checkpoint: memory is .*(write bytes as a number|give a positive number)"):
        ns.Checkpoint(memory)


def test_a_schedule_that_there_is_not():
    with pytest.raises(ValueError, match=r"ns\.Checkpoint: schedule is 'linear'; it must be one of 'binomial', 'periodic', 'online'"):
        ns.Checkpoint("1MB", schedule="linear")


@pytest.mark.parametrize("checkpoint", [0, -1, 2.5, True, "512MB", "all", [3]])
def test_a_checkpoint_that_is_none(checkpoint):
    with pytest.raises(ValueError, match=r"scan 'step': checkpoint is .*; give None, an int of 1 or more, 'auto', or ns\.Checkpoint"):
        rows(lambda v: v, None, 1.0, n_steps=3, checkpoint=checkpoint, name="step")


def test_more_memory_than_there_can_be():
    given = 0.7, noise(5), 0.3
    same(gradients(leaky, 3)(ns.Checkpoint("1e30TB"))(*given), gradients(leaky, 3)(None)(*given))


def test_the_gradient_of_scan_checkpoints_stores_what_one_of_a_scan_with_as_many_checkpoints_does(text_alone):
    w, start, n = nt.dmatrix("w"), nt.dvector("start"), nt.lscalar("n")

    def total_of(cost):
        gradient = ns.function([w, start, n], ns.grad(cost, w))
        memory = gradient.lower(np.ones((40, 40)), np.ones(40), 30_070).memory()
        return memory.total, memory.per_step

    def step(s, w):
        return np.tanh(s @ w)

    last = ns.scan(step, outputs_info=start, non_sequences=w, n_steps=n, checkpoint=150, return_updates=False)[-1]
    least, _ = total_of(last.sum())
    for is_padded in (True, False):
        every, _ = ns.scan_checkpoints(step, outputs_info=start, non_sequences=w, n_steps=n, save_every_N=150, padding=is_padded)
        for cost in ((every**2).sum(), every[-1].sum(), every[:, 3].sum()):
            total, per_step = total_of(cost)
            assert per_step < 0.03 * start_bytes(40)  # at most three of each 150 rows: a state, what is returned, and its cotangent
            assert total < least + 0.03 * 30_070 * start_bytes(40)


@pytest.mark.parametrize("width", [None, 40])
@pytest.mark.parametrize("rows", [slice(-1, None), slice(None)], ids=["last", "all"])
def test_the_gradient_of_scan_checkpoints_of_a_written_number_of_steps_stores_no_row_of_each(width, rows):
    start, value, n, k = nt.tensor("float64", shape=(width,), name="start"), noise(40), 10_030, 100
    kept, _ = ns.scan_checkpoints(lambda y: y * 0.999 + 0.001 * np.sin(y), outputs_info=start, n_steps=n, save_every_N=k, padding=True)
    gradient = ns.function([start], ns.grad((kept[rows] ** 2).sum(), start))
    y, slope, path, slopes = value, np.ones(40), [], []
    for t in range(1, n + 1):
        y, slope = y * 0.999 + 0.001 * np.sin(y), slope * (0.999 + 0.001 * np.cos(y))
        if t % k == 0 or t == n:
            path.append(y)
            slopes.append(slope)
    np.testing.assert_allclose(gradient(value), 2 * (np.array(path) * slopes)[rows].sum(axis=0), rtol=1e-11)
    assert gradient.memory().total < y.nbytes * n / 10


def start_bytes(n):
    return np.ones(n).nbytes


def test_cotangents_of_a_few_rows_are_read_as_they_are():
    x, xs, n = nt.dvector("x"), nt.dmatrix("xs"), nt.lscalar("n")

    def step(row, u):
        return np.tanh(u[::-1] * 0.7 + row), u * row

    def costs(checkpoint):
        u, v = ns.scan(step, xs, [x, None], n_steps=n, checkpoint=checkpoint, return_updates=False)
        few = (u[-1] * u[-3]).sum() + (u[4::5] ** 2).sum() + v[-4:-1:2].sum() + u[-2, 3] * v[2, 1] + v[::3][:, 2].sum()
        return [few, few + (u**2).sum() * 0.01]

    given = noise(21), noise(30, 21), 17
    for checkpoint in (None, 4, ns.Checkpoint(memory=3000, schedule="online")):
        gradients_of = [value for cost in costs(checkpoint) for value in ns.grad(cost, [x, xs])]
        compiled, plain = (ns.function([x, xs, n], gradients_of, mode=mode) for mode in (None, "python"))
        for steps in (17, 6):
            for one, other in zip(compiled(*given[:2], steps), plain(*given[:2], steps), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    a_few = ns.function([x, xs, n], ns.grad(costs(4)[0], x))
    np.testing.assert_allclose(a_few(*given), plain(*given)[0], rtol=1e-12)
    assert a_few.memory().per_step < 2 * given[0].nbytes  # all rows of v, of which one is read from the start, every fifth of u, cotangents
