"""What errors say: the scan, the argument or the op, what was seen, file and line of the step's code, and what to write instead."""

import pickle
import re
from itertools import product

import numba
import numpy as np
import pytest
import scipy.linalg
import scipy.signal
import scipy.sparse
import scipy.special
import scipy.stats
from wide import wide

import numbascan as ns
import numbascan.tensor as nt
from numbascan.front.unsupported import INSTEAD
from numbascan.front.variable import DISPATCH
from numbascan.modes import LOOP_PASSES, REWRITES
from numbascan.plan.cpu import CPU
from numbascan.plan.cuda import CUDA
from numbascan.rewrite.pipeline import PASSES

HERE = r"test_error_texts\.py, line \d+"
MODES = pytest.mark.parametrize("mode", [None, "python", "debug"])
X = np.arange(1.0, 7.0).reshape(2, 3)
LOC, SCALE = 0.25, 1.5
NORMAL = scipy.stats.norm(LOC, SCALE)
SPARSE = scipy.sparse.csr_array(np.eye(3))
SECONDS = np.array([1, 2, 3], "m8[s]")


@pytest.mark.parametrize(
    "function, words",
    [
        (np.linalg.matrix_transpose, ".matrix_transpose"),
        (scipy.special.erfcinv, "scipy.special.ndtri"),
        (scipy.special.airy, "no supported function is near to it"),
        (np.spacing, "no supported function is near to it"),
    ],
)
def test_only_what_is_near_in_meaning_is_suggested(function, words):
    with pytest.raises(TypeError, match=rf"{function.__name__} is not supported .*{HERE}\); .*{re.escape(words)}"):
        function(nt.dmatrix("x"))


def test_what_is_suggested_is_supported():
    supported = {f"{'scipy.special.' if isinstance(key, str) else ''}{getattr(key, '__name__', key)}" for key in DISPATCH}
    supported |= {key for key in DISPATCH if isinstance(key, str)} | {"newaxis", "inf", "pi", "fft", "eye"}
    for text in INSTEAD.values():
        for name in re.findall(r"(?:np\.linalg|np|scipy\.special)\.\w+", text):
            assert name in supported or name.rpartition(".")[2] in supported, text


@pytest.mark.parametrize(
    "name, x, expected",
    [
        ("erfcinv", np.array([1e-300, 1e-9, 0.3, 1.9]), scipy.special.erfcinv),
        *((f"norm.{name}", np.array([-38.0, -1.0, 0.5, 30.0]), getattr(NORMAL, name)) for name in ("pdf", "logpdf", "cdf", "sf")),
        *((f"norm.{name}", np.array([-38.0, -1.0, 0.5, 30.0]), getattr(NORMAL, name)) for name in ("logcdf", "logsf")),
        ("norm.ppf", np.array([1e-300, 0.2, 0.9]), NORMAL.ppf),
    ],
)
def test_what_is_suggested_loses_no_accuracy(name, x, expected):
    names = {"np": np, "scipy": scipy, "x": x, "loc": LOC, "scale": SCALE}
    *statements, expression = INSTEAD[name].partition(": ")[0].split(", and ")
    for statement in statements:
        exec(statement, names)
    np.testing.assert_allclose(eval(expression, names), expected(x), rtol=2e-13)


def test_a_product_with_a_sparse_matrix_is_written_with_its_places():
    A = scipy.sparse.random(5, 3, density=0.6, random_state=1).tocoo()
    rows = ns.map(lambda x: nt.inc_subtensor(nt.zeros(A.shape[0])[A.row], A.data * x[A.col]), X, return_updates=False)
    np.testing.assert_allclose(rows, [A @ x for x in X], rtol=1e-15)


@pytest.mark.parametrize("mode, error", [("foo", ValueError), (7, TypeError)])
def test_an_unknown_mode_names_the_scan(mode, error):
    with pytest.raises(error, match=rf"scan 'mysc': mode .*{mode!r}.*'numba', 'python'"):
        ns.scan(lambda x: x, X, mode=mode, name="mysc")


@pytest.mark.parametrize("view", [ns.map, ns.filter])
def test_a_view_without_a_sequence_names_the_scan(view):
    with pytest.raises(ValueError, match=rf"scan 'myv': ns\.{view.__name__} needs at least one sequence .* sequences is None.*ns\.scan"):
        view(lambda: 1, None, name="myv")
    with pytest.raises(ValueError, match=r"scan 'step': ns\.reduce needs at least one sequence"):
        ns.reduce(step, [], 0)


def step(a):
    return a


def test_a_filter_whose_condition_is_no_scalar_names_the_scan_and_the_step():
    words = rf"one scalar for each row, but <lambda> \(.*{HERE}\) gave bool of 1 dimensions.*all\(\)"
    with pytest.raises(TypeError, match=rf"scan 'myv': ns\.filter: the step must return {words}"):
        ns.filter(lambda row: row > 0, X, name="myv")


@pytest.mark.usefixtures("unconverted")
def test_a_scalar_is_no_sequence():
    with pytest.raises(TypeError, match=rf"len\(\) of a 0-d value: a \(float64\[\]\) .*{HERE}, in the step <lambda> of scan 's'"):
        ns.scan(lambda a: len(a), X[0], name="s")
    for loop in (lambda a: sum(b for b in a), lambda a: list(a), lambda a: [*a]):
        with pytest.raises(
            TypeError, match=rf"Python loop over a 0-d value.* a \(float64\[\]\) .*{HERE}, in the step <lambda> of scan 's'"
        ):
            ns.scan(loop, X[0], name="s")


@pytest.mark.parametrize(
    "keywords, error, words",
    [
        ({"threads": 0}, ValueError, "threads is 0; give an int of 1 or more, or None"),
        ({"threads": -1}, ValueError, "threads is -1; give an int"),
        ({"threads": 1.5}, TypeError, r"threads is 1\.5; give an int"),
        ({"threads": True}, TypeError, "threads is True; give an int"),
        (
            {"without": ["foo"]},
            ValueError,
            "without holds 'foo', which is neither a rewrite nor a loop pass; .*one_step, .*fusion, .*stack_rows",
        ),
        ({"without": "one_step"}, TypeError, "without is 'one_step'; give a list"),
        ({"without": 3}, TypeError, "without is 3; give a list"),
        ({"fastmath": "no"}, TypeError, "fastmath is 'no'; give True or False"),
        ({"check_finite": 3}, TypeError, "check_finite is 3; give True or False"),
    ],
)
def test_a_mode_refuses_what_it_cannot_mean(keywords, error, words):
    with pytest.raises(error, match=rf"ns\.Mode: {words}"):
        ns.Mode(**keywords)


def test_a_mode_takes_what_it_can():
    assert ns.Mode(threads=np.int64(2)).threads == 2
    assert ns.Mode(fastmath=np.True_, check_finite=1) == ns.Mode(fastmath=True, check_finite=True)
    np.testing.assert_array_equal(ns.map(np.negative, X, mode=ns.Mode(fastmath=np.True_))[0], -X)
    assert ns.Mode(without=REWRITES).without == ("lane_blocks", *dict.fromkeys(rewrite.__name__ for rewrite in PASSES))
    loop_passes = dict.fromkeys(loop_pass.__name__ for loop_pass in (*CPU.passes, *CUDA.passes))
    assert ns.Mode(without=LOOP_PASSES).without == tuple(loop_passes)


def test_cuda_says_what_numbascan_info_says():
    from numbascan.cli import information

    with pytest.raises(ns.CudaUnavailableError) as caught:
        ns.scan(lambda x: x + 1, X, mode="cuda")
    gpu = dict(information())["gpu"]
    assert str(caught.value).endswith(f"numbascan info says: gpu {gpu}")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


SINGULAR = np.zeros((2, 3, 3))
RUN_TIME = {
    "shapes": (lambda a, w: a + w, ValueError, (np.ones((3, 200)), np.ones(300)), "add: operands"),
    "reshape": (lambda a, n: a.reshape(n, n).sum(), ValueError, (np.ones((3, 20)), 3), r"reshape.*20"),
    "index": (lambda k, x: x[k], IndexError, (np.array([1, 9]), np.ones(4)), "index 9 is out of bounds for axis 0 with size 4"),
    "take": (lambda k, x: np.take(x, k).sum(), IndexError, (np.array([[1, 9]]), np.ones(4)), "index 9 is out of bounds"),
    "integers": (lambda k, n: k + n, OverflowError, (np.ones(3, "int8"), 300), "300 is out of bounds for int8"),
    "singular": (lambda a, n: np.linalg.inv(a) * n, np.linalg.LinAlgError, (SINGULAR, 1.0), "^inv: Singular matrix"),
}


@MODES
@pytest.mark.parametrize("kind", RUN_TIME)
def test_errors_of_a_step_that_runs_name_line_and_scan(kind, mode):
    function, error, (rows, fixed), words = RUN_TIME[kind]
    line = rf"{re.escape(function.__code__.co_filename)}, line {function.__code__.co_firstlineno}"
    with pytest.raises(error, match=rf"{words}.* \({line}\) in the step of scan 'mysc'$"):
        ns.scan(function, rows, non_sequences=fixed, name="mysc", mode=mode)


@pytest.mark.parametrize("mode", ["python", "debug"])
def test_products_that_do_not_fit_name_line_and_scan(mode):
    with pytest.raises(ValueError, match=rf"lengths 20 and 30 .*{HERE}\) in the step of scan 'mysc'$"):
        ns.scan(lambda a, w: a @ w, np.ones((3, 20)), non_sequences=np.ones((30, 5)), name="mysc", mode=mode)


REFUSED = {
    "inv: Singular matrix": lambda a: nt.linalg.inv(a),
    "solve: Singular matrix": lambda a: nt.linalg.solve(a, a) + nt.linalg.solve(a, a[0]),
    "cholesky: Matrix is not positive definite": lambda a: nt.linalg.cholesky(a),
    "solve_triangular: Singular matrix": lambda a: nt.linalg.solve_triangular(a, a),
}


@pytest.mark.parametrize(
    "n, mode", wide([(2, None), (2, "python"), (30, "debug"), *product((2, 30, 6), (None, "python", "debug"))], first=3)
)
@pytest.mark.parametrize("words", REFUSED)
def test_matrices_that_no_routine_can_take_name_line_and_scan(words, n, mode):
    function = REFUSED[words]
    line = rf"{re.escape(function.__code__.co_filename)}, line {function.__code__.co_firstlineno}"
    with pytest.raises(np.linalg.LinAlgError, match=rf"^{words} \({line}\) in the step of scan 'mysc'$"):
        ns.scan(function, np.stack([np.eye(n), np.zeros((n, n))]), name="mysc", mode=mode)


@MODES
def test_of_two_loops_the_inner_one_is_named(mode):
    def rows_and(w, a):
        return ns.scan(lambda b, w: b + w, a, non_sequences=w, name="inner")[0].sum()

    with pytest.raises(ValueError, match=rf"broadcast.* \(.*{HERE}\) in the step of scan 'inner'$"):
        ns.scan(lambda a, w: rows_and(w, a), np.ones((3, 4, 20)), non_sequences=np.ones(30), name="outer", mode=mode)


@MODES
def test_errors_behind_a_loop_name_no_scan(mode):
    x, k = nt.dvector("x"), nt.lscalar("k")
    f = ns.function([x, k], ns.scan(lambda a: a * 2, x, name="mysc")[0][k], mode=mode)
    with pytest.raises(IndexError, match=rf"index 9 is out of bounds .*{HERE}\)$"):
        f(X[0], 9)


@MODES
def test_names_with_braces_are_shown_as_they_are(mode):
    with pytest.raises(IndexError, match=r"index 9 .* in the step of scan 'a\{0\}b\{'$"):
        ns.scan(lambda k, x: x[k], np.array([1, 9]), non_sequences=np.ones(4), name="a{0}b{", mode=mode)


def puts_by_a_mask(x):
    array = np.zeros(2)
    array[x > 0] = 1
    return array


ELSEWHERE = {
    "NumPy's random numbers": (lambda x: np.random.default_rng(0).normal(x), rf"{HERE}\).*nt\.random\.RandomStream"),
    "a number of NumPy": (lambda x: np.float64(x[0]), rf"{HERE}\).*x\.astype\('float64'\)"),
    "a mask": (puts_by_a_mask, rf"{HERE}\).*np\.where\(mask, value, array\)"),
    "SciPy": (lambda x: scipy.linalg.solve_triangular(np.eye(2), x), rf"linalg\.solve_triangular.*{HERE}\).*nt\.linalg\.solve_triangular"),
    "a format": (lambda x: f"{x[0]:.2f}", rf"the format '\.2f' needs a concrete value.*{HERE}"),
}


@pytest.mark.filterwarnings("ignore:Calling .* with arguments of dtype=object:DeprecationWarning")  # SciPy 1.18, before it fails
@pytest.mark.usefixtures("unconverted")
@pytest.mark.parametrize("name", ELSEWHERE)
def test_values_that_go_where_they_cannot_name_the_line_and_what_to_write(name):
    function, words = ELSEWHERE[name]
    with pytest.raises(TypeError, match=words):
        ns.jit(function)(np.ones(2))


@numba.njit
def halved(x):
    return x / 2


@numba.vectorize
def third(x):
    return x / 3


def in_map(function):
    return lambda: ns.map(function, X, name="m")


def grown(**keywords):
    return lambda: ns.scan(lambda s: s * 2, outputs_info=1.0, name="m", **keywords)


LOG_NORMAL = r"write -0\.5 \* \(\(x - loc\) / scale\)\*\*2"
OF_SPARSE = r"A\.toarray\(\) @ x.*nt\.inc_subtensor"
IN_SECONDS = r"dtype timedelta64\[s\] .*{}.* / np\.timedelta64\(1, 's'\)"
WRONG = {
    "a function that nt has": (
        in_map(lambda x: scipy.special.polygamma(1, x)),
        TypeError,
        "special.polygamma was given .*write nt.polygamma$",
    ),
    "one in code that is not converted": (
        in_map(ns.as_written(lambda x: scipy.special.softmax(x))),
        TypeError,
        "special.softmax was given .*write nt.softmax$",
    ),
    "one on a variable": (lambda: scipy.special.logsumexp(nt.tensor("float64", shape=(3,))), TypeError, "write nt.logsumexp$"),
    "a function that nt.linalg has": (
        in_map(lambda x: scipy.linalg.lstsq(np.outer(x, x), x)),
        TypeError,
        "linalg.lstsq was .*nt.linalg.lstsq$",
    ),
    "a distribution": (in_map(lambda x: scipy.stats.norm.logpdf(x)), TypeError, rf"scipy\.stats\.norm\.logpdf was .*{LOG_NORMAL}"),
    "a frozen distribution": (in_map(lambda x: scipy.stats.norm(loc=x).pdf(1.0)), TypeError, "scipy.stats.*pdf was given a traced value"),
    "another distribution": (in_map(lambda x: scipy.stats.gamma.pdf(x, 2.0)), TypeError, "stats.gamma.pdf was .*write its formula"),
    "a filter": (in_map(lambda x: scipy.signal.lfilter([1.0], [1.0, 0.5], x)), TypeError, "signal.lfilter was .*ns.scan over the samples"),
    "a sparse matrix first": (in_map(lambda x: SPARSE @ x), TypeError, OF_SPARSE),
    "a sparse matrix last": (in_map(lambda x: x @ SPARSE), TypeError, OF_SPARSE),
    "a sparse argument": (lambda: ns.map(lambda x, a: a @ x, X, SPARSE, name="m"), TypeError, rf"non_sequences\[0\] is a csr.*{OF_SPARSE}"),
    "times": (lambda: ns.map(lambda x: x, SECONDS, name="m"), TypeError, rf"sequences\[0\] has {IN_SECONDS.format(HERE)}"),
    "times in a step": (in_map(lambda x: x * SECONDS), TypeError, IN_SECONDS.format(HERE)),
    "a span of time": (lambda: ns.jit(lambda x: x)(SECONDS[0]), TypeError, IN_SECONDS.format(HERE)),
    "a ufunc of Numba": (in_map(lambda x: third(x)), TypeError, "third, a function compiled by Numba.*leave the decorator out"),
    "a step of Numba": (in_map(halved), TypeError, r"halved\.py_func\(x\)"),
    "a dict of arguments": (
        lambda: ns.verify_grad(lambda p: p["a"], {"a": 1.0}),
        TypeError,
        r"point\[0\] is a dict.*dict\(zip\(d, values\)\)",
    ),
    "too many rows": (grown(n_steps=10**13), MemoryError, "80,000,000,000,000 bytes in 10,000,000,000,000 steps.*keep_last"),
    "too many steps": (grown(n_steps=2**63), OverflowError, r"n_steps is 9223372036854775808, out of bounds.*ns\.until.*keep_last=1"),
    "a key initial": (
        lambda: ns.scan(lambda s: s, outputs_info={"initial": 1.0, "b": 2.0}, n_steps=2),
        ValueError,
        r"outputs_info\[0\] has the unknown key 'b'.*write dict\(initial=\{'initial': …, 'b': …\}\)",
    ),
    "the key initial alone": (
        lambda: ns.scan(lambda s: {"initial": s["initial"]}, outputs_info={"initial": 1.0}, n_steps=2),
        TypeError,
        r"x\['initial'\].*not a dict.*dict\(initial=\{'initial': …\}\)",
    ),
    "a text in a step": (
        in_map(lambda x: x + "a"),
        TypeError,
        rf"is 'a' \(.*{HERE}, in the step <lambda> of scan 'm'\); an array or a number",
    ),
    "a text as a condition": (in_map(lambda x: (x, ns.until("a"))), TypeError, rf"is 'a' \(.*{HERE}.*of scan 'm'\); an array or a number"),
    "a dict in a step": (in_map(lambda x: x + {"a": 1.0}), TypeError, r"is a dict with the keys \['a'\] .*of scan 'm'\); an array or a"),
    "a text as a result": (lambda: ns.jit(lambda x: (x, "a"))(X), TypeError, rf"is 'a' \(.*{HERE}\); an array or a number is needed"),
    "keys that are one expression": (
        in_map(lambda x: {np.tanh(x): 1, np.tanh(x): 2}),
        TypeError,
        rf"a traced value is a key of a dict.*{HERE}.*only the run knows",
    ),
    "a call without arguments": (lambda: ns.scan(step)(), ValueError, r"scan 'step' .*give sequences=…, or n_steps"),
    "results of a decorator": (lambda: list(ns.scan(step)), TypeError, r"scan 'step' .*makes a function.*step\(sequences=…\)"),
}


@pytest.mark.filterwarnings("ignore:Calling .* with arguments of dtype=object:DeprecationWarning")  # SciPy 1.18, before it fails
@pytest.mark.parametrize("name", WRONG)
def test_wrong_programs_name_their_line_and_what_to_write(name):
    if name == "a step of Numba" and numba.config.DISABLE_JIT:
        pytest.skip("where Numba is switched off, njit leaves a function of Python as it is")
    program, error, words = WRONG[name]
    with pytest.raises(error, match=words) as caught:
        program()
    # a key is named by its argument; between a call and its memory stands, in tests alone, the check of arguments
    assert re.search(HERE, str(caught.value)) or name in ("a key initial", "too many rows")


def test_a_nest_with_the_key_initial_is_a_state():
    path, _ = ns.scan(lambda s: {"initial": s["initial"] * 2, "b": s["b"]}, outputs_info={"initial": {"initial": 1.0, "b": 2.0}}, n_steps=2)
    np.testing.assert_array_equal(path["initial"], [2.0, 4.0])


def test_an_error_of_scipys_own_stays_what_it_is():
    with pytest.raises(np.linalg.LinAlgError, match=r"leading minor"):
        ns.map(lambda x: x @ scipy.linalg.cholesky(-np.eye(3)), X)
