"""ns.custom_vjp: functions whose derivative the user writes. Most rules here are ten times too large, so that one sees them used."""

import pickle

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan.ir.check import check
from numbascan.ir.dot import dot
from numbascan.ir.graph import Graph, close
from numbascan.ops.control import inlined
from numbascan.oracle.interpret import interpret

X = np.array([0.5, -1.25, 2.0])


def python(f):
    return ns.jit(f, mode="python")


@ns.custom_vjp
def scaled_sine(x, y):
    return np.sin(x) * y


scaled_sine.defvjp(
    lambda x, y: (scaled_sine(x, y), (np.cos(x), np.sin(x), y)),
    lambda residuals, g: (10 * residuals[0] * residuals[2] * g, 10 * residuals[1] * g),
)


def tenfold(f, derivative):
    """f of one argument with ten times its derivative."""
    made = ns.custom_vjp(f)
    made.defvjp(lambda x: (f(x), x), lambda x, g: (10 * derivative(x) * g,))
    return made


square = tenfold(lambda x: x * x, lambda x: 2 * x)


# what it is -----------------------------------------------------------------------------------------------------------


def test_on_arrays_it_is_the_function():
    seen = []

    @ns.custom_vjp
    def f(x, y=2.0, *, k=None):
        """What f does."""
        seen.append(x)
        return {"a": x * y}

    np.testing.assert_array_equal(f(X)["a"], 2 * X)
    assert seen[-1] is X
    assert type(f(1.5)["a"]) is float
    np.testing.assert_array_equal(f(y=X, x=3)["a"], 3 * X)
    assert (f.__name__, f.__doc__) == ("f", "What f does.")
    with pytest.raises(TypeError, match="takes k by keyword only"):
        f(X, k=3)


def test_the_rule_is_the_derivative():
    by_x, by_y = python(ns.grad(scaled_sine, (0, 1)))(0.7, 2.0)
    np.testing.assert_allclose([by_x, by_y], [10 * np.cos(0.7) * 2, 10 * np.sin(0.7)])
    value, gradient = python(ns.value_and_grad(lambda x: scaled_sine(y=3.0, x=x) ** 2))(0.7)
    np.testing.assert_allclose(value, 9 * np.sin(0.7) ** 2)
    np.testing.assert_allclose(gradient, 2 * 3 * np.sin(0.7) * 10 * np.cos(0.7) * 3)


def test_variables_take_it_too():
    x, y = nt.dscalars("x y")
    result = scaled_sine(x, y)
    f = ns.function([x, y], [result, *ns.grad(result, [x, y]), ns.Lop(result, x, 3.0)], mode="python")
    expected = [np.sin(0.7) * 2, 10 * np.cos(0.7) * 2, 10 * np.sin(0.7), 30 * np.cos(0.7) * 2]
    np.testing.assert_allclose(f(0.7, 2.0), expected)


def test_further_derivatives_are_those_of_the_rule():
    second = python(ns.grad(ns.grad(scaled_sine)))(0.7, 2.0)
    np.testing.assert_allclose(second, -10 * np.sin(0.7) * 2)
    third = python(ns.grad(ns.grad(ns.grad(lambda x: square(x) ** 2))))(1.5)
    # (x⁴)' by the rule: 2 x² · 20 x = 40 x·square(x); then 40 square(x) + 40 x · 20 x; then 40 · 20 x + 1600 x
    np.testing.assert_allclose(third, 2400 * 1.5)


def test_a_rule_may_call_its_own_function_and_others_that_call_it_back():
    @ns.custom_vjp
    def sine(x):
        return np.sin(x)

    @ns.custom_vjp
    def cosine(x):
        return np.cos(x)

    sine.defvjp(lambda x: (sine(x), x), lambda x, g: (g * cosine(x),))
    cosine.defvjp(lambda x: (cosine(x), x), lambda x, g: (-g * sine(x),))
    f, expected = python(sine), [np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin]
    for derivative in expected:
        f = ns.grad(f)
        np.testing.assert_allclose(f(0.7), derivative(0.7))

    @ns.custom_vjp
    def shifted(x):
        return np.sin(x)

    shifted.defvjp(lambda x: (shifted(x), x), lambda x, g: (g * shifted(x + np.pi / 2),))
    np.testing.assert_allclose(python(ns.grad(ns.grad(shifted)))(0.7), -np.sin(0.7))


def test_nests_of_arguments_results_and_residuals():
    @ns.custom_vjp
    def f(p, pair):
        return {"sum": p["a"] + pair[0], "product": (p["b"] * pair[1],)}

    def bwd(residuals, g):
        assert residuals["name"] == "any object"
        p, pair = residuals["given"]
        return {"a": 10 * g["sum"], "b": g["product"][0] * pair[1]}, [None, g["product"][0] * p["b"]]

    f.defvjp(lambda p, pair: (f(p, pair), {"name": "any object", "given": (p, pair)}), bwd)
    p, pair = {"b": 2.0, "a": 3.0}, [5.0, 7.0]
    _, pull = ns.vjp(python(f), p, pair)
    assert pull({"sum": 1.0, "product": (100.0,)}) == ({"b": 700.0, "a": 10.0}, [0.0, 200.0])


def test_none_stands_for_zero():
    @ns.custom_vjp
    def f(x, nest, k):
        return x * nest["y"] * k

    f.defvjp(lambda x, nest, k: (f(x, nest, k), (nest["y"], k)), lambda r, g: (g * r[0] * r[1], None, None))
    assert python(ns.grad(f))(2.0, {"y": 3.0}, 5) == 15.0
    with pytest.raises(ns.DisconnectedInputError):
        python(ns.grad(f, 1))(2.0, {"y": 3.0}, 5)
    assert python(ns.grad(f, 1, disconnected_inputs="ignore"))(2.0, {"y": 3.0}, 5) == {"y": 0.0}


def test_of_several_results_those_without_a_cotangent_count_as_zero():
    @ns.custom_vjp
    def f(x):
        return x**2, np.exp(x), np.arange(3)

    f.defvjp(lambda x: (f(x), x), lambda x, g: (10 * (g[0] * 2 * x + g[1] * np.exp(x)),))
    assert python(ns.grad(lambda x: f(x)[0]))(3.0) == 60.0
    np.testing.assert_allclose(python(ns.grad(lambda x: f(x)[1] + f(x)[0]))(3.0), 60 + 10 * np.exp(3.0))


def test_float32_stays_float32():
    found = python(ns.grad(lambda x: np.sum(square(x))))(X.astype("float32"))
    assert found.dtype == np.float32
    f = ns.custom_vjp(lambda x: np.sum(x))
    f.defvjp(lambda x: (f(x), None), lambda _, g: (np.ones(3) * g,))  # float64
    assert python(ns.grad(f))(X.astype("float32")).dtype == np.float32


def test_complex_arguments():
    @ns.custom_vjp
    def modulus(z):
        return np.real(z * np.conj(z))

    modulus.defvjp(lambda z: (modulus(z), z), lambda z, g: (20 * np.conj(z) * g,))
    np.testing.assert_allclose(python(ns.grad(modulus))(1 + 2j), 20 * (1 - 2j))


# where it may stand ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["python", None])
def test_in_a_step_of_a_loop(mode):
    def f(x, w):
        path = ns.scan(lambda x, s, w: scaled_sine(s, w) + x, sequences=x, outputs_info=0.5, non_sequences=w, return_updates=False)
        return np.sum(path**2)

    def by_hand(x, w):
        states = [0.5]
        for x_t in x:
            states.append(np.sin(states[-1]) * w + x_t)
        by_x, by_w, above = np.zeros(len(x)), 0.0, 0.0
        for t in reversed(range(len(x))):
            above = above + 2 * states[t + 1]
            by_x[t] = above
            by_w += above * 10 * np.sin(states[t])
            above = above * 10 * np.cos(states[t]) * w
        return by_x, by_w

    f = ns.jit(f, mode=mode)
    found, expected = ns.grad(f, (0, 1))(X, 0.3), by_hand(X, 0.3)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-12)


def test_second_derivatives_in_a_step_of_a_loop():
    def total(sine):
        def f(x, w):
            path = ns.scan(lambda x, s, w: sine(s) * w + x, sequences=x, outputs_info=0.5, non_sequences=w, return_updates=False)
            return np.sum(path**2)

        return f

    sine = ns.custom_vjp(lambda x: np.sin(x))
    sine.defvjp(lambda x: (sine(x), np.cos(x)), lambda r, g: (g * r,))
    found, expected = (python(ns.hessian(total(f), (0, 1)))(X, 0.3) for f in (sine, np.sin))
    for row, wanted in zip(found, expected, strict=True):
        for block, other in zip(row, wanted, strict=True):
            np.testing.assert_allclose(block, other, rtol=1e-12)


@pytest.mark.parametrize("mode", ["python", None])
def test_around_a_loop(mode):
    """The implicit function theorem: a square root by Newton's steps, whose derivative needs no steps."""

    def steps(c):
        path = ns.scan(
            lambda x, c: ((x + c / x) / 2, ns.until(np.abs(x * x - c) < 1e-9)),
            outputs_info=c,
            non_sequences=c,
            n_steps=50,
            return_updates=False,
        )
        return path[-1]

    root = ns.custom_vjp(steps)
    root.defvjp(lambda c: ((x := root(c)), x), lambda x, g: (g / (2 * x),))
    f = ns.jit(lambda x: root(x) * 3.0, mode=mode)
    np.testing.assert_allclose(f(2.0), 3 * np.sqrt(2.0))
    np.testing.assert_allclose(ns.grad(f)(2.0), 1.5 / np.sqrt(2.0))
    np.testing.assert_allclose(ns.grad(ns.grad(f))(2.0), -0.75 * 2.0**-1.5)
    gradient = ns.grad(f)
    gradient(2.0)
    assert ns.show(gradient).count("scan '") == 1  # the loop itself is not undone


def test_in_jit_vmap_and_a_choice():
    np.testing.assert_allclose(python(ns.jit(scaled_sine))(X, 2.0), np.sin(X) * 2)
    np.testing.assert_allclose(python(ns.vmap(scaled_sine))(X, X), np.sin(X) * X)
    np.testing.assert_allclose(python(ns.vmap(ns.grad(scaled_sine)))(X, X), 10 * np.cos(X) * X)
    np.testing.assert_allclose(python(ns.grad(lambda x: np.sum(ns.vmap(square)(x))))(X), 20 * X)
    choice = python(ns.grad(lambda x: nt.ifelse(x > 0, lambda: scaled_sine(x, 2.0), lambda: x)))
    np.testing.assert_allclose([choice(0.7), choice(-0.7)], [20 * np.cos(0.7), 1.0])
    inside = python(ns.grad(tenfold(lambda x: nt.ifelse(x > 0, lambda: square(x), lambda: x), lambda x: np.ones_like(x))))
    assert inside(0.7) == 10.0


def test_one_custom_function_inside_another():
    outer = ns.custom_vjp(lambda x: square(x) + 1)
    outer.defvjp(lambda x: (outer(x), square(x)), lambda r, g: (g * r,))
    np.testing.assert_allclose(python(outer)(3.0), 10.0)
    np.testing.assert_allclose(python(ns.grad(outer))(3.0), 9.0)
    np.testing.assert_allclose(python(ns.grad(ns.grad(outer)))(3.0), 60.0)


def test_a_masked_branch_does_not_spoil_the_other():
    root = ns.custom_vjp(np.sqrt)
    root.defvjp(lambda x: (np.sqrt(x), x), lambda x, g: (g * 0.5 / np.sqrt(x),))
    f = python(ns.grad(lambda x: np.sum(np.where(x > 0, root(np.where(x > 0, x, 1.0)), 0.0))))
    np.testing.assert_allclose(f(np.array([4.0, -1.0, 0.0])), [0.25, 0.0, 0.0])


# what it reads from outside -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_in_a_loop", [False, True])
def test_arrays_that_function_and_rule_read_may_change(is_in_a_loop):
    weights, factor = X.copy(), np.array([10.0, 20.0])
    f = ns.custom_vjp(lambda x: np.sum(weights * x) * x)
    f.defvjp(lambda x: (f(x), x), lambda x, g: (factor[0] * np.sum(g) * weights,))

    def total(x):
        if is_in_a_loop:
            return np.sum(ns.scan(lambda s: f(s), outputs_info=x, n_steps=2, return_updates=False)[-1])
        return np.sum(f(f(x)))

    gradient = python(ns.grad(total))
    for change in range(3):
        expected = (factor[0] ** 2) * 3 * np.sum(weights) * weights
        np.testing.assert_allclose(gradient(np.ones(3)), expected, err_msg=f"change {change}")
        weights[change % 2] += 1.0
        factor[0] += change


def test_what_the_rule_reads_may_be_traced_or_shared():
    scale = ns.shared(3.0, name="scale")

    def f(x, y):
        z = y * 2

        def step(s, x):
            local = x + 1

            @ns.custom_vjp
            def g(s):
                return np.sin(s)

            g.defvjp(lambda s: (g(s), local), lambda local, g: (g * local * z * scale,))
            return g(s)

        return ns.scan(step, outputs_info=1.0, non_sequences=x, n_steps=2, return_updates=False)[-1] + x

    # with respect to what only the rule reads there is no first derivative, but a second
    gradient = python(ns.grad(lambda s, x, y: f(x, y) + s, 1))
    assert gradient(0.0, 5.0, 7.0) == 1.0

    def started(s, x, y):
        def step(s, x):
            g = ns.custom_vjp(np.sin)
            g.defvjp(lambda s: (g(s), None), lambda _, cotangent: (cotangent * (x + 1) * y * scale,))
            return g(s)

        return ns.scan(step, outputs_info=s, non_sequences=x, n_steps=2, return_updates=False)[-1]

    np.testing.assert_allclose(python(ns.grad(started))(1.0, 5.0, 7.0), (6 * 7 * 3) ** 2)
    np.testing.assert_allclose(python(ns.grad(ns.grad(started), 1))(1.0, 5.0, 7.0), 2 * 6 * (7 * 3) ** 2)
    np.testing.assert_allclose(python(ns.grad(ns.grad(started), 2))(1.0, 5.0, 7.0), 2 * 7 * (6 * 3) ** 2)
    scale.set_value(1.0)
    np.testing.assert_allclose(python(ns.grad(started))(1.0, 5.0, 7.0), (6 * 7) ** 2)


def test_a_new_rule_is_noticed():
    f = ns.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (f(x), x), lambda x, g: (10 * g,))
    gradient = python(ns.grad(f))
    assert gradient(3.0) == 10.0
    f.defvjp(lambda x: (f(x), x), lambda x, g: (20 * g,))
    assert gradient(3.0) == 20.0


def test_what_the_function_itself_reads_has_no_derivative():
    w = ns.shared(2.0, name="w")
    f = ns.custom_vjp(lambda x: x * w)
    f.defvjp(lambda x: (f(x), None), lambda _, g: (g * w,))
    x = nt.dscalar("x")
    assert ns.function([x], ns.grad(f(x), x), mode="python")(3.0) == 2.0
    with pytest.raises(
        ns.NullGradientError, match=r"no derivative with respect to w .*test_custom_vjp\.py, line \d+.*pass it as an argument"
    ):
        ns.grad(f(x), w)
    with pytest.raises(ns.NullGradientError, match="with respect to y"):
        python(ns.grad(lambda y: tenfold(lambda x: x * y, lambda x: y)(1.0) + y))(2.0)

    def held(y):
        c = nt.disconnected_grad(y)
        return tenfold(lambda x: x * c, lambda x: c)(y)

    assert python(ns.grad(held))(3.0) == 30.0


# errors ---------------------------------------------------------------------------------------------------------------


def test_without_a_rule_there_is_no_derivative():
    f = ns.custom_vjp(np.sin)
    np.testing.assert_allclose(python(f)(X), np.sin(X))
    with pytest.raises(ns.NullGradientError, match=r"sin has no derivative.*write sin\.defvjp\(fwd, bwd\)"):
        python(ns.grad(f))(0.5)


def test_forward_mode_is_refused_and_hessians_go_backwards():
    with pytest.raises(ns.NullGradientError, match="scaled_sine has a rule for reverse mode only"):
        ns.jvp(python(scaled_sine), (0.7, 2.0), (1.0, 0.0))
    x = nt.dscalar("x")
    with pytest.raises(ns.NullGradientError, match="reverse mode only"):
        ns.Rop(scaled_sine(x, 2.0), x, 1.0)
    np.testing.assert_allclose(python(ns.hessian(scaled_sine))(0.7, 2.0), -20 * np.sin(0.7))
    (xx, xy), (yx, yy) = python(ns.hessian(scaled_sine, (0, 1)))(0.7, 2.0)
    np.testing.assert_allclose([xx, xy, yx, yy], [-20 * np.sin(0.7), 10 * np.cos(0.7), 10 * np.cos(0.7), 0.0])
    np.testing.assert_allclose(python(ns.jacobian(square))(X), np.diag(20 * X))


@pytest.mark.parametrize(
    "fwd, bwd, error, words",
    [
        (lambda x, k: x, lambda r, g: (g, None), TypeError, r"the fwd of f, .*must return a pair \(result, residuals\)"),
        (lambda x, k: ((x, x), x), lambda r, g: (g, None), TypeError, r"gives \(…, …\) as the result, but f itself gives an array"),
        (lambda x, k: (x[0], x), lambda r, g: (g, None), TypeError, r"gives float64\[\] as the result, but f itself gives float64\[3\]"),
        (lambda x, k: (x * k, x), lambda r, g: g, TypeError, "the bwd of f, .*must return a tuple of 2 cotangents, one for each argument"),
        (lambda x, k: (x * k, x), lambda r, g: (g,), TypeError, "must return a tuple of 2 cotangents, one for each argument, not 1"),
        (lambda x, k: (x * k, x), lambda r, g: (g, g), TypeError, "k is int64.* and has no derivative.*return None for it"),
        (lambda x, k: (x * k, x), lambda r, g: (g[:2], None), ValueError, r"a cotangent for x that has shape \(2,\).*must have \(3,\)"),
        (lambda x, k: (x * k, x), lambda r, g: (np.sum(g), None), ValueError, r"a cotangent for x that has shape \(\)"),
        (lambda x, k: (x * k, x), lambda r, g: (g[:1], None), ValueError, r"a cotangent for x that has shape \(1,\)"),
        (lambda x, k: (x * k, x), lambda r, g: (g * 1j, None), TypeError, r"x that is complex128\[3\], but x is float64\[3\]"),
        (lambda x, k: (x * k, x), lambda r, g: (np.arange(3), None), TypeError, r"x that is int64\[3\], but x is float64\[3\]"),
        (lambda x, k: (x * k, x), lambda r, g: ((g, g), None), ValueError, r"a cotangent for x that has shape \(2, 3\)"),
    ],
)
def test_a_rule_that_does_not_fit_is_named(fwd, bwd, error, words):
    def f(x, k):
        return x * k

    f = ns.custom_vjp(f)
    f.defvjp(fwd, bwd)
    with pytest.raises(error, match=words):
        python(ns.grad(lambda x: np.sum(f(x, 2))))(X)


def test_cotangents_are_nested_as_the_arguments():
    f = ns.custom_vjp(lambda p: p["a"] * p["b"][0])
    for wrong in ({"a": 1.0}, [1.0, (1.0,)], {"a": 1.0, "b": (1.0, 2.0)}, {"a": 1.0, "b": 1.0}):
        f.defvjp(lambda p: (f(p), None), lambda _, g, wrong=wrong: (wrong,))
        with pytest.raises(TypeError, match="nest it in the same way"):
            python(ns.grad(f))({"a": 1.0, "b": (2.0,)})


def test_a_length_that_only_the_run_knows_is_checked():
    x = nt.dvector("x")
    f = ns.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (f(x), x), lambda x, g: (g[1:],))
    gradient = ns.grad(f(x).sum(), x)
    for mode in ("python", None):
        with pytest.raises(ValueError, match="a cotangent for x that has"):
            ns.function([x], gradient, mode=mode)(X)
        with pytest.raises(ValueError, match="a cotangent for x that has"):
            ns.function([x], gradient, mode=mode)(X[:2])  # of length 1: it does not broadcast


def test_a_rule_that_came_after_the_call_may_use_arguments_only():
    w, x = ns.shared(2.0, name="w"), nt.dscalar("x")
    f = ns.custom_vjp(lambda x: x * x)
    result = f(x)
    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * x,))
    assert ns.function([x], ns.grad(result, x), mode="python")(3.0) == 3.0
    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * w,))
    with pytest.raises(TypeError, match="uses w, which was not so when <lambda> was called; pass it as an argument"):
        ns.grad(result, x)


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match=r"ns\.custom_vjp takes a function"):
        ns.custom_vjp(3)
    with pytest.raises(TypeError, match=r"scaled_sine\.defvjp: bwd must be a function, not None"):
        scaled_sine.defvjp(lambda x: x, None)
    assert scaled_sine.bwd is not None


# the node -------------------------------------------------------------------------------------------------------------


def test_equal_calls_are_one_node():
    x = nt.dvector("x")
    assert square(x).node is square(x).node
    assert square(x).node is not tenfold(lambda x: x * x, lambda x: 2 * x)(x).node


def test_a_graph_with_it_is_legal_shown_and_drawn():
    x = nt.dvector("x")
    graph = close([x.node], [scaled_sine(x, 2.0).node])
    check(graph)
    assert "custom_vjp(x, 2.0, rule=scaled_sine)\n    computes: x = x, y = 2.0\n        v0: float64[?] = sin(x)" in ns.show(
        scaled_sine(x, 2.0)
    )
    assert "condition" not in dot(graph)


def test_it_is_computed_as_its_graph():
    x = nt.dvector("x")
    nest = ns.custom_vjp(lambda x: (square(x), scaled_sine(square(x), 2.0)))
    outputs = tuple(variable.node for variable in nest(x * 2))
    expected = [4 * X**2, 2 * np.sin(4 * X**2)]
    plain = inlined(outputs)
    assert all("custom_vjp" not in ns.show(nt.Variable(node)) for node in plain)
    for graph in (Graph((x.node,), outputs), Graph((x.node,), plain)):
        for found, wanted in zip(interpret(graph, [X]), expected, strict=True):
            np.testing.assert_allclose(found, wanted)
    for mode in ("debug", None):
        found = ns.function([x], list(nest(x * 2)), mode=mode)(X)
        np.testing.assert_allclose(found, expected)


def test_lengths_that_a_loop_inside_runs_over_are_not_fixed():
    x = nt.dvector("x")
    total = ns.custom_vjp(lambda x: ns.scan(lambda x, s: s + x, sequences=x, outputs_info=0.0, return_updates=False)[-1])
    f = ns.function([x], total(x * 2))
    for length in (2, 3, 4):
        assert f(np.ones(length)) == 2.0 * length
    assert len(f._runner.program._kernels) == 1


def test_pickling():
    assert pickle.loads(pickle.dumps(scaled_sine)) is scaled_sine
    x = nt.dscalar("x")
    result = scaled_sine(x, 2.0) * x
    again = pickle.loads(pickle.dumps(result.node))
    assert again is result.node
    f = pickle.loads(pickle.dumps(ns.function([x], [result, ns.grad(result, x)], mode="python")))
    np.testing.assert_allclose(f(0.7), [np.sin(0.7) * 2 * 0.7, np.sin(0.7) * 2 + 0.7 * 20 * np.cos(0.7)])
    gradient = pickle.loads(pickle.dumps(ns.grad(scaled_sine)))
    assert gradient.__wrapped__.__wrapped__ is scaled_sine
