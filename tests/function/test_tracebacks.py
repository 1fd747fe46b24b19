"""Tracebacks of what is refused: the user's lines alone, the last one that which was refused."""

from __future__ import annotations

import inspect
import subprocess
import sys
import traceback
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan import lax, tracebacks
from numbascan.front.variable import DISPATCH, METHODS

# what calls `shorten` itself, since time counts
INLINE = {ns.scan, ns.ScanFunction.__call__, ns.Function.__call__, type(ns.jit(abs)).__call__}
X = np.arange(3.0)
vector, cube = nt.dvector("v"), nt.tensor("float64", shape=(2, 3, 4), name="c")
total = ns.function([vector], vector[7], mode="python")


@ns.scan(mode="python")
def decay(y: Any, k: Any) -> Any:
    return y * k


@ns.custom_vjp
def squared(x: Any) -> Any:
    return x * x


@ns.as_written
def branch(y: Any) -> Any:
    return y if y > 0 else -y


def helper(y: Any) -> Any:
    return np.sort_complex(y)


def through(y: Any) -> Any:
    return helper(y) + 1


def divided(y: Any) -> Any:
    return y * (1 / 0)


def failing(x: Any) -> Any:
    try:
        return {}["key"]
    except KeyError as error:
        raise RuntimeError("no key") from error


REFUSED = {
    "an argument": (lambda: ns.scan(branch, outputs_info=1.0, n_steps=-1), []),
    "a step": (lambda: ns.scan(branch, outputs_info=1.0, n_steps=2), ["branch"]),
    "a helper of a step": (lambda: ns.scan(through, outputs_info=1.0, n_steps=2), ["through", "helper"]),
    "a loop within a transform": (lambda: ns.grad(ns.vmap(through))(X), ["through", "helper"]),
    "an error of the user's own": (lambda: ns.jit(divided)(2.0), ["divided"]),
    "a raise of the user's own": (lambda: ns.jit(failing)(2.0), ["failing"]),
    "a call of a loop": (lambda: decay(outputs_info=X, non_sequences=np.ones(4), n_steps=2), ["decay"]),
    "a call with a wrong keyword": (lambda: decay(outputs_info=X, speed=3), []),
    "what was not compiled": (lambda: ns.scan(branch).njit, []),
    "a function": (lambda: total(np.ones(3)), []),
    "arguments of a function": (lambda: total(1, 2, 3), []),
    "inputs of a function": (lambda: ns.function([vector], nt.dvector("w")), []),
    "an operator": (lambda: vector + cube.reshape((5,)), []),
    "a method": (lambda: vector.reshape((2, 3, -1, -1)), []),
    "NumPy's function": (lambda: np.busday_count(vector, 3), []),
    "a ufunc": (lambda: np.add(vector, object()), []),
    "an operand": (lambda: vector + {"a": 1}, []),
    "an index": (lambda: cube[9], []),
    "a truth value": (lambda: bool(vector.sum() > 1), []),
    "an attribute": (lambda: vector.frobnicate, []),
    "a function of nt": (lambda: nt.softmax("text"), []),
    "a constructor": (lambda: nt.dvector(3), []),
    "a mode": (lambda: ns.Mode(target="abacus"), []),
    "a checkpoint": (lambda: ns.Checkpoint(memory="much"), []),
    "a condition": (lambda: ns.until(vector), []),
    "a shared variable": (lambda: ns.shared(1.0).set_value(np.ones(3)), []),
    "a stream": (lambda: nt.random.RandomStream(1).normal(size="many"), []),
    "a loop of lax": (lambda: lax.while_loop(lambda c: c[0] < 3, lambda c: (*c, 1), (0, 1)), []),
    "a batch": (lambda: ns.batch(divided, (X,), progress=False), ["divided"]),
    "a case": (lambda: ns.batch(lambda x, i: x[i], (np.ones((2, 3)), np.array([0, 9])), mode="python", progress=False), []),
}


def frames(error: BaseException) -> list[tuple[str, str]]:
    """File and function of each frame behind that of the test."""
    return [(frame.f_code.co_filename, frame.f_code.co_name) for frame, _ in traceback.walk_tb(error.__traceback__)][1:]


def chained(error: BaseException | None) -> list[BaseException]:
    return [] if error is None else [error, *chained(error.__cause__), *chained(error.__context__)]


@pytest.mark.parametrize("name", REFUSED)
def test_the_last_frames_are_the_users(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call, users = REFUSED[name]
    monkeypatch.delenv(tracebacks.VARIABLE, raising=False)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - what is told is the business of other tests
        call()
    assert frames(caught.value) == [(__file__, "<lambda>"), *((__file__, user) for user in users)]
    for error in chained(caught.value):
        assert not [frame for frame, _ in traceback.walk_tb(error.__traceback__) if tracebacks._is_ours(frame)]
    monkeypatch.setenv(tracebacks.VARIABLE, "full")
    with pytest.raises(type(caught.value)) as caught:
        call()
    assert len(frames(caught.value)) > 1 + len(users)


def test_a_cause_keeps_the_lines_in_which_it_was_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(tracebacks.VARIABLE, raising=False)
    with pytest.raises(RuntimeError, match="no key") as caught:
        ns.scan(lambda x: failing(x), X)
    cause = caught.value.__cause__
    assert isinstance(cause, KeyError)
    assert [frame.f_code.co_name for frame, _ in traceback.walk_tb(cause.__traceback__)] == ["failing"]
    with pytest.raises(ns.BatchError) as failed:
        ns.batch(lambda x: np.linalg.inv(x), (np.zeros((2, 2, 2)),), mode="python", progress=False)
    assert isinstance(failed.value.__cause__, np.linalg.LinAlgError)


def test_a_fault_of_ours_keeps_all_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any) -> Any:
        return functools.no_such_name  # noqa: F821 - it is there

    def asserted(*arguments: Any) -> Any:
        raise AssertionError("never")

    monkeypatch.delenv(tracebacks.VARIABLE, raising=False)
    for fault in broken, asserted:
        theirs = FunctionType(fault.__code__, {**vars(tracebacks)}, closure=fault.__closure__)
        with pytest.raises((AttributeError, AssertionError)) as caught:
            tracebacks.entry(theirs)()
        assert [name for _, name in frames(caught.value)] == ["public", fault.__name__]


def functions() -> dict[str, Any]:
    """The public functions, by their names, and those that NumPy's lead to."""
    modules = {ns: ns.__all__, nt: dir(nt), lax: lax.__all__, nt.random: nt.random.__all__}
    named = [(f"{module.__name__}.{name}", getattr(module, name)) for module, names in modules.items() for name in names if name[0] != "_"]
    named += [(f"nt.linalg.{name}", one) for name, one in vars(nt.linalg).items()]
    named += [(f"NumPy's {function}", one) for function, one in DISPATCH.items()]
    return {name: one for name, one in named if isinstance(one, FunctionType)}


def methods() -> dict[str, Any]:
    """The public methods and properties of what users hold, by their names."""
    classes = [one for one in map(vars(ns).get, ns.__all__) if isinstance(one, type) and not issubclass(one, Exception)]
    held = (ns.jit(abs), ns.jit(abs, static_argnums=0), squared, ns.vjp(lambda x: x, 1.0)[1], ns.vectorize(abs, signature="()->()"))
    classes += [type(one) for one in (*held, nt.dvector, nt.dvectors)]
    protocol = "__call__", "__add__", "__getitem__", "__array_ufunc__"
    found = {f"the method {name}": one for name, one in METHODS.items()}
    for cls in classes:
        for name, one in inspect.getmembers(cls):
            function = one.fget if isinstance(one, property) else one
            is_ours = isinstance(function, FunctionType) and function.__module__.startswith(("numbascan", "numpy.lib"))
            if is_ours and (name[0] != "_" or name in protocol or (name == "__init__" and cls in vars(ns).values())):
                found[f"{cls.__name__}.{name}"] = function
    return found


def test_every_public_call_is_an_entry() -> None:
    calls = functions() | methods()
    some = {"numbascan.scan", "numbascan.tensor.tanh", "numbascan.lax.scan", "Variable.__add__", "Pullback.__call__", "Mode.__init__"}
    assert some <= set(calls)
    assert [name for name, call in calls.items() if not (tracebacks.is_entry(call) or call in INLINE)] == []


def test_what_nobody_can_compute_with_is_refused_in_the_users_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(tracebacks.VARIABLE, raising=False)
    arguments: Any = (), (object(),), (object(), object()), (vector, object()), ("text",) * 9
    tried = [(name, given, failure(call, *given)) for name, call in functions().items() for given in arguments]
    tried += [(name, given, failure(call, vector, *given)) for name, call in METHODS.items() for given in arguments]
    refused = [(name, given, error) for name, given, error in tried if error is not None]
    assert len(refused) > 1000
    assert [one for one in refused if any(file != __file__ and "/numbascan/" in file for file, _ in frames(one[2]))] == []


def failure(call: Any, *arguments: Any) -> Exception | None:
    try:
        call(*arguments)
    except Exception as error:
        return error
    return None


def test_the_printed_traceback_is_short() -> None:
    text = "import numbascan as ns\n\ndef step(y):\n    return y if y > 0 else -y\n\nns.scan(step, outputs_info=1.0, n_steps=2)\n"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    lines = [line for line in done.stderr.splitlines() if line.startswith("  File")]
    assert lines == ['  File "<string>", line 6, in <module>', '  File "<string>", line 4, in step']
