"""ns.function: inputs, outputs, updates, givens, and what it refuses."""

import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.ir.graph import toposort


def python(*args, **kwargs):
    return ns.function(*args, mode="python", **kwargs)


def test_compiled_and_interpreted_results_are_equal():
    x, y = nt.dvectors("x y")
    compiled = ns.function([x, y], [x * y, np.tanh(x) - y])
    plain = python([x, y], [x * y, np.tanh(x) - y])
    a, b = np.array([0.5, -1.5, 2.0]), np.array([3.0, 4.0, -0.25])
    for mine, oracle in zip(compiled(a, b), plain(a, b), strict=True):
        np.testing.assert_allclose(mine, oracle, rtol=1e-14)


def test_results_are_structured_as_outputs():
    x = nt.dscalar("x")
    assert python([x], x + 1)(2.0) == 3.0
    assert python([x], [x + 1])(2.0) == [3.0]
    assert python([x], (x + 1, x * 5))(2.0) == (3.0, 10.0)
    assert python([x], {"sum": x + 1, "pair": [x * 5, 7]})(2.0) == {"sum": 3.0, "pair": [10.0, 7]}


def test_no_outputs_give_an_empty_list():
    assert python([])() == []


def test_results_are_arrays_also_without_dimensions():
    x = nt.fscalar("x")
    result = ns.function([x], x * 2)(1.5)
    assert (type(result), result.shape, result.dtype) == (np.ndarray, (), np.dtype("float32"))


@pytest.mark.parametrize("mode", ["python", None])
def test_results_share_no_memory_with_arguments_or_each_other(mode):
    x = nt.dvector("x")
    f = ns.function([x], [x, x[1:], x * 2, x * 2], mode=mode)
    given = np.array([1.0, 2.0, 4.0])
    results = f(given)
    for k, result in enumerate(results):
        assert not any(np.shares_memory(result, other) for other in [given, *results[:k]])


def test_an_intermediate_variable_as_input_cuts_what_is_behind_it():
    x = nt.dvector("x")
    hidden = np.tanh(x)
    f = python([hidden], hidden * 3)
    np.testing.assert_array_equal([3.0, 6.0], f([1.0, 2.0]))


def test_inputs_may_be_given_by_name():
    x, y = nt.dscalars("x y")
    f = python([x, y], x - 2 * y)
    assert f(y=3.0, x=5.0) == -1.0
    assert f(5.0, y=3.0) == -1.0


def test_updates_are_computed_from_the_old_values():
    a, b = ns.shared(1.0, "a"), ns.shared(10.0, "b")
    swap = ns.function([], [a, b], updates={a: b, b: a + b})
    assert swap() == [1.0, 10.0]
    assert (a.get_value(), b.get_value()) == (10.0, 11.0)


def test_updates_may_be_pairs_and_plain_numbers():
    count = ns.shared(5, "count")
    assert python([], count, updates=[(count, 0)])() == 5
    assert count.get_value() == 0
    assert count.get_value().dtype == np.int64


def test_nothing_is_updated_when_a_run_fails():
    total, other = ns.shared(np.array([1.0, 2.0]), "total"), ns.shared(3.0, "other")
    x = nt.dvector("x")
    f = ns.function([x], updates={other: other * 2, total: total + x})
    with pytest.raises(ValueError, match=r"shape|broadcast|length"):
        f([1.0, 2.0, 3.0])
    assert other.get_value() == 3.0
    np.testing.assert_array_equal([1.0, 2.0], total.get_value())


def test_an_update_does_not_share_memory_with_results_or_arguments():
    state = ns.shared(np.zeros(2), "state")
    x = nt.dvector("x")
    f = ns.function([x], x, updates={state: x})
    given = np.array([3.0, 4.0])
    f(given)[:] = -1.0
    given[:] = -2.0
    np.testing.assert_array_equal([3.0, 4.0], state.get_value())


def test_threads_lose_no_update():
    count = ns.shared(0, "count")
    step = python([], updates={count: count + 1})
    threads = [threading.Thread(target=lambda: [step() for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count.get_value() == 200


def test_givens_are_replaced_all_at_once():
    x, y = nt.dscalars("x y")
    w = ns.shared(7.0, "w")
    assert python([], x - y, givens={x: w, y: 2.0})() == 5.0
    assert python([x, y], x - 2 * y, givens={x: y, y: x})(1.0, 10.0) == 8.0


def test_a_given_leaves_an_input_that_is_built_on_it():
    x, y = nt.dscalars("x y")
    hidden = x * 2
    assert python([hidden, y], hidden + x, givens={x: y})(5.0, 3.0) == 8.0


def test_a_pickled_function_keeps_its_shared_variables_together():
    w = ns.shared(2.0, "w")
    x = nt.dscalar("x")
    read, grow = python([x], w * x), python([], updates={w: w + 1})
    read, grow, w2 = pickle.loads(pickle.dumps((read, grow, w)))
    grow()
    assert read(10.0) == 30.0
    assert (w.get_value(), w2.get_value()) == (2.0, 3.0)


def test_a_pickled_function_runs_in_another_process(tmp_path):
    x = nt.dvector("x")
    total, _ = ns.scan(lambda x_t, before: np.tanh(before + x_t), sequences=x, outputs_info=0.0)
    (tmp_path / "f.pickle").write_bytes(pickle.dumps((python([x], total), x, total)))
    code = """
import pathlib, pickle, sys
import numpy as np
import numbascan as ns, numbascan.tensor as nt
own = [nt.dvector() for _ in range(100)]  # their numbers must not be taken for those of the other process
f, x, total = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())
again = ns.function([x], total, mode="python")
print(f(np.ones(3)).tolist() == again(np.ones(3)).tolist(), f(np.ones(3))[0])
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "f.pickle")], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", str(np.tanh(1.0))]


def test_a_scalar_argument_needs_no_array():
    x, n = nt.dscalar("x"), nt.iscalar("n")
    assert ns.function([x, n], x * n)(2, 3) == 6.0


# what it refuses ------------------------------------------------------------------------------------------------------


def test_a_missing_input_is_named():
    x, y = nt.dvectors("x y")
    with pytest.raises(ns.MissingInputError, match=r"outputs need y \(float64\[\?\]\).*add it to inputs.*givens=\{y: value\}"):
        ns.function([x], x * y)


@pytest.mark.parametrize("shape", [(None,), (5,), (1,)])
@pytest.mark.parametrize(
    "read",
    [
        lambda x, y: y * x.shape[0],
        lambda x, y: y * np.shape(x)[0],
        lambda x, y: y * x.size,
        lambda x, y: y + np.zeros_like(x),
        lambda x, y: y + nt.ones(x.shape),
        lambda x, y: y * (len(x) if x.type.shape[0] else x.shape[0]),
        lambda x, y: ns.scan(lambda y: y + 1, outputs_info=y, n_steps=x.shape[0], return_updates=False),
        lambda x, y: ns.scan(lambda x, y: y + 1, x, y, return_updates=False)[-1],
        lambda x, y: ns.scan(lambda y, x: y + x.shape[0], None, y, x, n_steps=2, return_updates=False),
    ],
)
def test_an_input_of_which_only_the_length_is_read_is_used(shape, read):
    x, y = nt.tensor("float64", shape=shape, name="x"), nt.dscalar("y")
    given = np.arange(shape[0] or 3.0)
    np.testing.assert_array_equal(python([x, y], read(x, y))(given, 2.0), python([x, y], read(x, y) + 0 * x.sum())(given, 2.0))


def test_an_input_of_fixed_length_that_nobody_reads_is_unused():
    x, y = nt.tensor("float64", shape=(5,), name="x"), nt.dscalar("y")
    z = np.exp(x) + y  # noqa: F841 - what is made of it is no output
    with pytest.raises(ns.UnusedInputError, match=r"input 0 \(x\)"):
        ns.function([x, y], y + 1)


def test_an_unused_input_is_named():
    x, y = nt.dvectors("x y")
    with pytest.raises(ns.UnusedInputError, match=r"input 1 \(y\).*on_unused_input"):
        ns.function([x, y], x)
    with pytest.warns(UserWarning, match=r"input 1 \(y\)"):
        python([x, y], x, on_unused_input="warn")
    np.testing.assert_array_equal([1.0], python([x, y], x, on_unused_input="ignore")([1.0], [2.0]))
    with pytest.raises(ValueError, match="on_unused_input is 'perhaps'"):
        ns.function([x, y], x, on_unused_input="perhaps")


DERIVATIVES = {
    "grad": lambda w, x, b: ns.grad(w * x - b, w),
    "several": lambda w, x, b: [w, *ns.grad(w * x - b, [w, x])],
    "used further": lambda w, x, b: 2.0 * ns.grad(w * x - b, w) ** 2,
    "of the second order": lambda w, x, b: ns.grad(ns.grad(w * w * x - b * w, w), w),
    "zeros": lambda w, x, b: ns.grad(x * b, w, disconnected_inputs="ignore"),
    "known": lambda w, x, b: ns.grad(None, w, known_grads={w * x - b: 1.0}),
    "jacobian": lambda w, x, b: ns.jacobian(w * x - b, w),
    "hessian": lambda w, x, b: ns.hessian(w * w * x - b, w),
    "Lop": lambda w, x, b: ns.Lop(w * x, w, b) * 0.0 + ns.Lop(w * x - b, w, 1.0),
    "Rop": lambda w, x, b: ns.Rop(w * x - b, w, 1.0),
    "of a loop": lambda w, x, b: ns.grad(ns.scan(lambda s: s * w - b, outputs_info=x, n_steps=2, return_updates=False)[-1], x),
    "in a loop": lambda w, x, b: ns.scan(lambda s: ns.grad(w * s * x - b, w), np.arange(3.0), return_updates=False),
    "in one step": lambda w, x, b: ns.scan(lambda: ns.grad(w * x - b, w), n_steps=1, return_updates=False),
    "of a function": lambda w, x, b: ns.grad(lambda w, x, n: w * x - n)(w, x, b.astype("int64")),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_what_a_cost_used_its_derivatives_use(name):
    w, x, b, other = nt.dscalars("w x b other")
    results = DERIVATIVES[name](w, x, b)
    f = ns.function([w, x, b], results, mode="python")
    with pytest.raises(ns.UnusedInputError, match=r"input 3 \(other\)"):
        ns.function([w, x, b, other], results)
    middle = w * x
    assert ns.function([middle, w, x], ns.grad(middle + w, w), mode="python")(1.0, 2.0, 3.0) == 4.0
    assert "b" not in {node.name for node in toposort(f.graph.outputs)} or name in ("several", "Lop", "of a loop", "of a function")


def test_what_a_given_hides_is_not_used():
    w, x, b = nt.dscalars("w x b")
    gradient = ns.grad(w * x - b, w)
    assert python([w, x], gradient)(1.0, 2.0) == 2.0  # what is left of the cost asks for no more
    assert python([w, x, b], gradient, givens={x: 3.0 * b}, on_unused_input="ignore")(1.0, 2.0, 5.0) == 15.0
    with pytest.raises(ns.UnusedInputError, match=r"input 1 \(x\)"):
        ns.function([w, x, b], gradient, givens={x: 3.0 * b})
    assert pickle.loads(pickle.dumps(python([w, x, b], gradient)))(1.0, 2.0, 3.0) == 2.0


def test_calls_as_in_pytensor_are_taken():
    x, unused = nt.tensor("floatX", shape=(None,), name="x"), nt.dscalar("unused")
    total = ns.shared(0.0, "total")
    f = ns.function(
        mode="FAST_COMPILE",
        givens=None,
        updates=[(total, total + x.sum())],
        outputs=[x.astype("floatX")],
        inputs=[x],
        accept_inplace=True,
        trust_input=True,
        no_default_updates=[total],
        on_unused_input=None,
        profile=None,
    )
    assert f.recipe.mode == ns.Mode("python")
    assert ns.function([x], x, mode="FAST_RUN").recipe.mode == ns.Mode()
    assert f([1.0, 2.0])[0].dtype == np.float64
    assert total.get_value() == 3.0
    with pytest.raises(ns.UnusedInputError):
        ns.function([x, unused], x, on_unused_input=None)
    with pytest.raises(TypeError, match=r"updates is 'FAST_RUN'.*mode='FAST_RUN'"):
        ns.function([x], x, "FAST_RUN")


def test_an_input_that_only_an_update_uses_is_used():
    x = nt.dscalar("x")
    w = ns.shared(1.0)
    python([x], updates={w: w * x})(5.0)
    assert w.get_value() == 5.0


@pytest.mark.parametrize(
    "inputs, error, words",
    [
        (lambda x, w: [x, x], ValueError, "input 1 .* is input 0 too"),
        (lambda x, w: [w], TypeError, "input 0 is the shared variable .*w.*givens"),
        (lambda x, w: [x, nt.constant(2.0)], TypeError, "input 1 is a constant"),
        (lambda x, w: [x, 3.0], TypeError, r"input 1 is 3.0 \(float\)"),
        (lambda x, w: x, TypeError, r"inputs=\[x\]"),
    ],
)
def test_what_is_no_input_is_refused(inputs, error, words):
    x, w = nt.dscalar("x"), ns.shared(1.0, "w")
    with pytest.raises(error, match=words):
        ns.function(inputs(x, w), x * w)


@pytest.mark.parametrize(
    "update, error, words",
    [
        (lambda x, n: {x: x}, TypeError, "which is no shared variable"),
        (lambda x, n: {n: n * 1.5}, TypeError, r"update of n is float64\[\], but int64\[\] is needed; write value.astype\('int64'\)"),
        (lambda x, n: {n: np.zeros(3, "int64")}, TypeError, "update of n has 1 dimensions"),
        (lambda x, n: {n: 1.5}, TypeError, "update of n has dtype float64"),
        (lambda x, n: [(n, n), (n, n + 1)], ValueError, "two new values"),
        (lambda x, n: [n], TypeError, "updates must be a dict or a list of pairs"),
    ],
)
def test_what_is_no_update_is_refused(update, error, words):
    x, n = nt.dscalar("x"), ns.shared(2, "n")
    with pytest.raises(error, match=words):
        ns.function([x], x, updates=update(x, n))
    assert n.get_value() == 2


def test_a_given_of_another_type_is_refused():
    x = nt.dvector("x")
    with pytest.raises(TypeError, match=r"what is given for x is float32\[\?\], but float64\[\?\] is needed"):
        ns.function([], x, givens={x: nt.fvector("y")})
    with pytest.raises(TypeError, match=r"what is given for x has 0 dimensions"):
        ns.function([], x, givens={x: 1.0})


def test_without_a_mode_a_graph_runs_in_that_of_its_scans():
    v = nt.dvector("v")

    def total(mode, name="total"):
        return ns.scan(lambda a, s: np.log(s) + a, v, np.float64(-1.0), mode=mode, name=name, return_updates=False)

    checked, other = total(ns.Mode(check_finite=True)), total("debug", "other")
    with pytest.raises(FloatingPointError, match="step 0"):
        ns.function([v], checked)(np.ones(3))
    assert np.isnan(ns.function([v], checked, mode="numba")(np.ones(3))).all()
    with pytest.raises(ns.CudaUnavailableError):
        ns.function([v], total("cuda"))(np.ones(3))
    with pytest.raises(ns.CudaUnavailableError):
        ns.jit(lambda v: ns.scan(lambda a: a, v, mode="cuda", return_updates=False))(np.ones(3))
    with pytest.raises(ValueError, match="scan 'total' has mode 'numba' and scan 'other' has mode 'debug'"):
        ns.function([v], [checked, other])


def test_source_is_that_of_the_kernel_that_ran_last():
    x = nt.dvector("x")
    f = ns.function([x], x.sum() * 2)
    texts = [(f(np.ones(n)), f.source())[1] for n in (2, 3, 2)]
    assert texts[0] == texts[2] != texts[1]
