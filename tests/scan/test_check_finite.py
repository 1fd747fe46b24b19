"""`check_finite` looks at what each step gives, made of the states as the step read them: compiled code and NumPy report the same."""

import numpy as np
import pytest
from wide import wide

import numbascan as ns
import numbascan.tensor as nt

N_STEPS, STOP, N_LANES, FAR = 5, 4, 3, 1000.0
SIZES = ((), (3,), (12,))  # in a local, in several, in memory
NEVER = 0.5  # clocks hold whole numbers


def checked(target, **options):
    return ns.Mode(target=target, check_finite=True, **options)


def both(call, *args):
    """What compiled code and NumPy give: results, or the text of the error."""
    found = []
    for target in ("numba", "python"):
        try:
            found.append(call(checked(target))(*args))
        except FloatingPointError as error:
            found.append(str(error))
    return found


@pytest.mark.parametrize("size", [(), (3,), (12,)])
@pytest.mark.parametrize("keep_last", [None, 1])
@pytest.mark.parametrize("start, move, expected", [(0.0, 1.0, "step 0: out"), (3.0, -1.0, None), (2.0, -1.0, "step 2: out")])
def test_a_trace_is_looked_at_before_the_states_move_on(size, keep_last, start, move, expected):
    def run(mode):
        outputs_info = [np.full(size, start), None]
        return ns.scan(lambda s: (s + move, np.log(s)), outputs_info=outputs_info, n_steps=3, keep_last=keep_last, mode=mode)

    for target in ("numba", "python"):
        if expected is None:
            assert all(np.isfinite(result).all() for result in run(checked(target))[0])
        else:
            with pytest.raises(FloatingPointError, match=expected):
                run(checked(target))


# random steps -------------------------------------------------------------------------------------------------------


class Clocks:
    """A random scan of clocks: states that count the steps. Each value that a step gives fails where a clock shows its number."""

    def __init__(self, seed: int, lanes: bool) -> None:
        rng = np.random.default_rng(seed)
        self.sizes = [SIZES[k] for k in rng.permutation(3)[: rng.integers(1, 3)]]
        self.taps = [[[-1], [-2, -1], [-3, -1]][rng.integers(3)] for _ in self.sizes]
        self.n_traces = rng.integers(1, 3)
        self.has_update = bool(rng.integers(2)) and not lanes
        self.n_values = len(self.sizes) + self.n_traces + self.has_update
        clocks = rng.integers(len(self.sizes), size=self.n_values)
        self.sources = [(k, int(rng.integers(len(self.taps[k])))) for k in clocks]  # the clock and the tap that a value looks at
        self.wanted = [rng.choice(["all", "last", "end", "every", "none"]) for _ in range(self.n_values - self.has_update)]
        self.wanted[0] = "all" if set(self.wanted) == {"none"} else self.wanted[0]
        self.stops = bool(rng.integers(2))
        self.shared = ns.shared(np.zeros(12), "w") if self.has_update else None
        self.rng = rng

    def start(self, k):
        size, depth = self.sizes[k], -min(self.taps[k])
        rows = np.arange(-depth, 0.0).reshape(depth, *(1 for _ in size)) + self.elements(k)
        return {"initial": rows if depth > 1 else rows[0], "taps": self.taps[k]}

    def elements(self, k):
        return FAR * np.arange(12.0)[: int(np.prod(self.sizes[k]))].reshape(self.sizes[k])

    def outputs(self, numbers):
        """The results that are wanted, and the updates."""

        def step(*reads):
            *reads, numbers = reads
            rows = [[reads.pop(0) for _ in taps] for taps in self.taps]
            seen = [rows[k][tap] - numbers[place] for place, (k, tap) in enumerate(self.sources)]
            moved = [clock[-1] + 1.0 + 0.0 * (1.0 / seen[k]).sum() for k, clock in enumerate(rows)]
            traces = [np.log(np.abs(seen[len(rows) + k])) for k in range(self.n_traces)]
            updates = {self.shared: self.shared + (1.0 / seen[-1]).sum()} if self.has_update else {}
            until = ns.until(rows[0][-1].min() >= 2.0) if self.stops else None
            return [*moved, *traces], updates, *([until] if until is not None else [])

        infos = [*(self.start(k) for k in range(len(self.sizes))), *(None for _ in range(self.n_traces))]
        results, updates = ns.scan(step, outputs_info=infos, non_sequences=numbers, n_steps=N_STEPS)
        cut = {"all": lambda x: x, "last": lambda x: x[-1], "end": lambda x: x[-2:], "every": lambda x: x[1::2]}
        return [cut[how](result) for how, result in zip(self.wanted, results, strict=True) if how != "none"], updates

    def plants(self):
        """For each value, a step at which it is to fail, and the number that makes it."""
        for place, (k, tap) in enumerate(self.sources):
            t = int(self.rng.integers(N_STEPS))
            number = t + self.taps[k][tap] + self.rng.choice(self.elements(k).ravel())
            yield place, number, t


def numbers_of(clocks, place=None, number=NEVER):
    numbers = np.full(clocks.n_values, NEVER)
    if place is not None:
        numbers[place] = number
    return numbers


def assert_same(found, step, lane=None):
    """`step`: None where all is finite."""
    compiled, plain = found
    if step is None:
        for one, other in zip(compiled, plain, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        return
    assert compiled == plain
    where = f"step {step}" + ("" if lane is None else f", lane {lane}")
    assert f", {where}: " in compiled
    assert ".py, line " in compiled


@pytest.mark.parametrize("seed", wide(range(10), first=4))
def test_random_steps_report_what_numpy_reports(seed):
    clocks = Clocks(seed, lanes=False)
    v = nt.dvector("v")
    outputs, updates = clocks.outputs(v)
    programs = {target: ns.function([v], outputs, updates=updates, mode=checked(target)) for target in ("numba", "python")}

    def call(mode):
        return programs[mode.target]

    assert_same(both(call, numbers_of(clocks)), None)
    for place, number, t in clocks.plants():
        assert_same(both(call, numbers_of(clocks, place, number)), t if t < STOP or not clocks.stops else None)


@pytest.mark.parametrize("seed", wide(range(100, 106), first=2))
def test_random_steps_in_lanes_report_what_numpy_reports(seed):
    clocks = Clocks(seed, lanes=True)
    programs = {target: ns.jit(ns.vmap(lambda numbers: clocks.outputs(numbers)[0]), mode=checked(target)) for target in ("numba", "python")}

    def call(mode):
        return programs[mode.target]

    finite = np.tile(numbers_of(clocks), (N_LANES, 1))
    assert_same(both(call, finite), None)
    for place, number, t in clocks.plants():
        lane = int(clocks.rng.integers(N_LANES))
        numbers = finite.copy()
        numbers[lane] = numbers_of(clocks, place, number)
        runs = t < STOP or not clocks.stops
        assert_same(both(call, numbers), t if runs else None, lane if runs else None)


# what a loop is rewritten to ----------------------------------------------------------------------------------------


def unread(a):
    return ns.scan(lambda s: (s - 1.0, np.log(s)), outputs_info=[a, None], n_steps=6, return_updates=False)[0]


def fixed(a):
    return ns.scan(lambda s: (s - 1.0, np.log(-a)), outputs_info=[a, None], n_steps=6, return_updates=False)[1]


def summed(a):
    return ns.scan(lambda s: (s - 1.0, np.log(s)), outputs_info=[a, None], n_steps=6, return_updates=False)[1].sum()


def side_by_side(a):
    first, second = (ns.scan(lambda s: np.log(s), outputs_info=b, n_steps=9, return_updates=False, name=f"of_{b.name}") for b in (a, -a))
    return first, second


def one_step(a):
    return ns.scan(lambda x: np.log(x - a), a * nt.ones(1), return_updates=False)


def repeated(a):
    return ns.scan(lambda s: (1.0 / (s - 1.0), 1.0 / (s - 1.0)), outputs_info=[a * 0.0 + 2.0, None], n_steps=6, return_updates=False)[1]


def in_a_branch(a):
    return nt.ifelse(a > 0, unread(a), a * nt.ones(6))


def derivative(a):
    return ns.grad(lambda b: ns.scan(lambda s: np.sqrt(s - 1.0), outputs_info=b - 1.0, n_steps=2, return_updates=False)[-1])(a)


@pytest.mark.parametrize("f", [unread, fixed, summed, side_by_side, one_step, repeated, in_a_branch, derivative])
def test_every_result_of_every_step_is_looked_at_whoever_reads_it(f):
    compiled, plain = both(lambda mode: ns.jit(f, mode=mode), 3.0)
    assert compiled == plain
    assert "is not finite" in compiled


def test_a_sum_that_no_step_makes_is_not_reported():
    def total(a):
        return ns.scan(lambda s: (s - 1.0, s * 1e308), outputs_info=[a, None], n_steps=3, return_updates=False)[1].sum()

    assert both(lambda mode: ns.jit(total, mode=mode), 1.5) == [np.inf, np.inf]


def test_what_a_step_hides_is_not_reported():
    found = both(
        lambda mode: ns.jit(lambda a: ns.scan(lambda x: np.where(x > 0, np.log(x), 0.0), a, mode=mode, return_updates=False)), np.zeros(3)
    )
    np.testing.assert_array_equal(found, np.zeros((2, 3)))


def test_no_step_no_error():
    for target in ("numba", "python"):
        assert ns.scan(lambda s: np.log(s), outputs_info=-1.0, n_steps=0, mode=checked(target))[0].shape == (0,)


def test_fastmath_does_not_take_the_checks_away():
    with pytest.raises(FloatingPointError, match="step 1"):
        ns.scan(lambda s: (s - 1.0, np.log(s)), outputs_info=[1.0, None], n_steps=3, mode=checked("numba", fastmath=True))


def test_one_step_as_a_literal_keeps_the_mode_of_its_scan():
    def logarithm(mode):
        return lambda a: ns.scan(lambda s: np.log(s), outputs_info=a, n_steps=1, mode=mode, return_updates=False)

    for wrapper, where in ((ns.jit, "step 0"), (ns.vmap, "step 0, lane 1")):
        compiled, plain = both(lambda mode, wrapper=wrapper: wrapper(logarithm(mode)), np.array([1.0, -1.0]))
        assert compiled == plain
        assert f"{where}: s (" in compiled
