"""Dataclasses are nests of their fields: what a plain Python loop makes of them, wherever a dict or a named tuple may stand."""

from __future__ import annotations

import functools
from dataclasses import FrozenInstanceError, dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt
from numbascan import lax


@dataclass
class Body:
    x: Any
    v: Any
    steps: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.x = self.x + 1  # once, when a user makes one

    def energy(self) -> Any:
        return self.x**2 + (self.v**2).sum()

    @functools.cached_property
    def doubled(self) -> Any:
        return 2 * self.x


@dataclass(frozen=True, slots=True)
class Rates:
    stiff: Any
    damp: Any = 0.5


@dataclass(frozen=True)
class Model:
    rates: Rates
    offset: Any


MODEL = Model(Rates(0.25), {"a": 0.125})


def moved(body: Body, model: Model) -> Body:
    result = replace(body, x=body.x - model.rates.stiff * body.energy() * 0.125 + model.offset["a"], v=body.v * model.rates.damp)
    result.steps = body.steps + 1
    return result


def body() -> Body:
    return Body(0.5, np.array([1.0, -2.0]))


def in_plain_python(n: int) -> list[Body]:
    bodies, last = [], body()
    for _ in range(n):
        last = moved(last, MODEL)
        bodies.append(last)
    return bodies


@pytest.mark.parametrize("mode", [None, "python"])
def test_a_loop_gives_what_plain_python_gives(mode: str | None) -> None:
    path = ns.scan(moved, outputs_info=body(), non_sequences=MODEL, n_steps=4, return_updates=False, mode=mode)
    assert type(path) is Body
    for name in ("x", "v", "steps"):
        np.testing.assert_array_equal(getattr(path, name), [getattr(one, name) for one in in_plain_python(4)])
    assert path.steps.dtype == np.int64


def test_fields_arrive_as_they_are_and_no_method_of_making_runs() -> None:
    given = body()
    assert given.doubled == 3.0  # what is kept beside the fields by a cached property is computed anew
    result = ns.jit(lambda one: (one, one.doubled + one.energy()), mode="python")(given)
    assert (float(result[0].x), float(result[1]), result[0].v.tolist()) == (1.5, 3.0 + given.energy(), [1.0, -2.0])
    assert given.x == 1.5


def test_a_frozen_one_stays_frozen() -> None:
    def change(rates: Rates) -> Any:
        rates.damp = 1.0  # type: ignore[misc]

    with pytest.raises(FrozenInstanceError):
        ns.jit(change, mode="python")(Rates(1.0))
    assert ns.jit(lambda rates: replace(rates, stiff=2 * rates.stiff), mode="python")(Rates(1.0, 3.0)) == Rates(2.0, 3.0)


def cost(model: Model, start: Body) -> Any:
    return moved(moved(start, model), model).energy()


def test_a_gradient_is_an_instance_of_the_gradients_of_the_fields() -> None:
    slope = ns.grad(cost)(MODEL, body())
    assert type(slope) is Model
    assert type(slope.rates) is Rates
    step = 1e-6
    for name in ("stiff", "damp"):
        more, less = (replace(MODEL, rates=replace(MODEL.rates, **{name: getattr(MODEL.rates, name) + d})) for d in (step, -step))
        expected = (cost(more, body()) - cost(less, body())) / (2 * step)
        np.testing.assert_allclose(getattr(slope.rates, name), expected, rtol=1e-7)


def scaled(rates: Rates, x: Any) -> Rates:
    return Rates(rates.stiff * x, rates.damp - x)


RATES = Rates(np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.25, 0.125]))
LANES = [scaled(Rates(stiff, damp), 2.0) for stiff, damp in zip(RATES.stiff, RATES.damp, strict=True)]


def batched(f: Any, axes: Any) -> Any:
    return lambda *given: ns.batch(f, given, in_axes=axes, progress=False)


@pytest.mark.parametrize("run", [ns.vmap, batched])
@pytest.mark.parametrize("axes", [0, Rates(0, 0), {"damp": 0, "stiff": 0}, Rates(0, None), Rates(None, 0)])
def test_lanes_have_instances_of_their_rows(run: Any, axes: Any) -> None:
    is_swept = Rates(axes, axes) if isinstance(axes, int) else Rates(**axes) if isinstance(axes, dict) else axes
    given = Rates(*(getattr(RATES, name) if getattr(is_swept, name) == 0 else 4.0 for name in ("stiff", "damp")))
    result = run(scaled, (axes, None))(given, 2.0)
    assert type(result) is Rates
    for name in ("stiff", "damp"):
        alone = [getattr(scaled(Rates(4.0, 4.0), 2.0), name)] * 3
        expected = [getattr(one, name) for one in LANES] if getattr(is_swept, name) == 0 else alone
        np.testing.assert_array_equal(getattr(result, name), expected)


def test_carries_of_lax_are_instances() -> None:
    carry, ys = lax.scan(lambda c, x: (scaled(c, x), c.stiff + x), Rates(2.0), np.array([1.0, 3.0]))
    assert (carry, ys.tolist()) == (Rates(6.0, -3.5), [3.0, 5.0])
    assert lax.fori_loop(0, 3, lambda i, c: replace(c, stiff=c.stiff * 2.0), Rates(1.0)) == Rates(8.0, 0.5)
    assert lax.while_loop(lambda c: c.stiff < 9.0, lambda c: replace(c, stiff=c.stiff * 2.0), Rates(1.0)) == Rates(16.0, 0.5)
    with pytest.raises(ns.ScanTypeError, match=r"carry\.damp"):
        lax.fori_loop(0, 3, lambda i, c: replace(c, damp=np.ones(2)), Rates(1.0))


def test_sequences_may_be_instances_and_symbolic_ones_go_through_functions() -> None:
    x = nt.dvector("x")
    path = ns.scan(lambda row, y: scaled(row, y), sequences=Rates(x, x + 1), non_sequences=2.0, return_updates=False)
    result = ns.function([x], path, mode="python")(np.array([1.0, 2.0]))
    assert (type(result), result.stiff.tolist(), result.damp.tolist()) == (Rates, [2.0, 4.0], [0.0, 1.0])


def test_another_method_is_another_function(monkeypatch: pytest.MonkeyPatch) -> None:
    energy = ns.jit(lambda one: one.energy(), mode="python")
    before = energy(body())
    monkeypatch.setattr(Body, "energy", lambda self: self.x)
    assert (float(before), float(energy(body()))) == (7.25, 1.5)


def test_what_would_be_lost_is_refused() -> None:
    noted = body()
    noted.note = 3.0  # type: ignore[attr-defined]
    with pytest.raises(
        TypeError, match=r"a Body holds note, which is no field of the dataclass; declare it: note: Any = field\(init=False\)"
    ):
        ns.jit(lambda one: one.x, mode="python")(noted)
    empty = body()
    del empty.v
    with pytest.raises(TypeError, match="a Body has no value for its field v"):
        ns.jit(lambda one: one.x, mode="python")(empty)
    with pytest.raises(ValueError, match=r"output 0 is \{.*\}, but its initial value is Rates\(stiff=…, damp=…\)"):
        ns.scan(lambda r: {"stiff": r.stiff, "damp": r.damp}, outputs_info=Rates(1.0), n_steps=2)
    with pytest.raises(TypeError, match=r"has_aux=True is for a function that returns \(value, aux\), not Rates\(stiff=…, damp=…\)"):
        ns.grad(lambda x: Rates(x, x), has_aux=True)(1.0)
    doubled = ns.jit(lambda r: 2 * r.stiff, mode="python", name="doubled").lower(Rates(1.0))
    with pytest.raises(NotImplementedError, match="doubled takes a Rates, which no module knows"):
        doubled.export("doubled.py")
