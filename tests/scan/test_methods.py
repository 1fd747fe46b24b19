"""Decorated methods: `ns.scan` and `ns.jit` in a class bind `self`, see it anew at each call, and do not keep it alive."""

import copy
import functools
import gc
import pickle
import weakref

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt


class Decay:
    scale = 2.0

    def __init__(self, rate):
        self.rate, self.weights, self.itself = rate, np.array([1.0, rate]), self

    @ns.scan
    def path(self, y):
        return y * self.rate + self.shift()

    def shift(self):
        return 0.0

    @ns.jit(mode="python")
    def total(self, x):
        return (x * self.weights).sum()

    @ns.jit(mode="python")
    @classmethod
    def scaled(cls, x):
        return x * cls.scale

    @ns.scan(mode="python")
    @staticmethod
    def doubled(y):
        return 2 * y

    @ns.jit(mode="python")
    def both(self, x):
        return self.total(x) + self.path(outputs_info=x, n_steps=2, keep_last=1).sum()


class Shifted(Decay):
    scale = 5.0

    def shift(self):
        return 100.0

    @ns.jit(mode="python")
    def total(self, x):
        return super().total(x) + 1


class InSlots:
    __slots__ = ("rate",)

    def __init__(self, rate):
        self.rate = rate

    @ns.jit(mode="python")
    def times(self, x):
        return x * self.rate


def test_each_instance_has_a_loop_of_its_own_and_its_attributes_are_seen_anew():
    one, other, shifted = Decay(2.0), Decay(3.0), Shifted(2.0)
    for _ in range(2):
        for instance, expected in ((one, [2, 4]), (other, [3, 9]), (shifted, [102, 304])):
            np.testing.assert_array_equal(expected, instance.path(outputs_info=1.0, n_steps=2))
    assert one.path.is_compiled
    assert not Decay.path.is_compiled
    one.rate = 5.0
    np.testing.assert_array_equal([5, 25], one.path(outputs_info=1.0, n_steps=2))
    np.testing.assert_array_equal([3, 9], other.path(outputs_info=1.0, n_steps=2))
    x = nt.dscalar("x")
    np.testing.assert_array_equal([10, 50], ns.function([x], one.path(outputs_info=x, n_steps=2), mode="python")(2.0))


def test_jitted_methods_of_instances_subclasses_and_classes():
    one, shifted = Decay(2.0), Shifted(3.0)
    for _ in range(2):
        assert one.total(np.ones(2)) == 3.0
        assert shifted.total(np.ones(2)) == 5.0
        assert [one.scaled(1.0), shifted.scaled(1.0), Decay.scaled(1.0), Shifted.scaled(1.0)] == [2, 5, 2, 5]
        np.testing.assert_array_equal([2, 4], one.doubled(outputs_info=1, n_steps=2))
        np.testing.assert_array_equal([2, 4], Decay.doubled(outputs_info=1, n_steps=2))
    one.weights[1] = 7.0
    assert one.total(np.ones(2)) == 8.0
    one.weights = np.array([0.0, 1.0])
    assert one.total(np.ones(2)) == 1.0
    assert one.both(np.ones(2)) == 1.0 + 8.0
    one.shift = lambda: 1.0
    assert one.both(np.ones(2)) == 1.0 + 14.0
    np.testing.assert_array_equal([0.0, 1.0], ns.grad(one.total)(np.ones(2)))


def test_an_instance_goes_with_its_code():
    instances = [Decay(2.0), Shifted(2.0)]
    for instance in instances:
        instance.both(np.ones(2))
        instance.total(np.ones(2))
    kept = [weakref.ref(instance) for instance in instances]
    codes = [weakref.ref(instance.total._kinds) for instance in instances]
    del instance, instances
    gc.collect()
    assert [reference() for reference in (*kept, *codes)] == [None] * 4


def test_instances_that_take_no_weak_references():
    several = [InSlots(float(k)) for k in range(40)]
    for _ in range(2):
        assert [instance.times(2.0) for instance in several] == [2.0 * k for k in range(40)]
    several[0].rate = 7.0
    assert several[0].times(2.0) == 14.0


def test_methods_go_through_pickle_with_their_instance():
    total = pickle.loads(pickle.dumps(Decay(4.0).total))
    assert total(np.ones(2)) == 5.0
    path = pickle.loads(pickle.dumps(Shifted(1.0).path))
    np.testing.assert_array_equal([101.0], path(outputs_info=1.0, n_steps=1, mode="python"))
    assert pickle.loads(pickle.dumps(Decay.total)) is Decay.total


def test_a_method_called_on_its_class_says_what_it_got():
    with pytest.raises(TypeError, match=r"total: argument self is a Decay"):
        Decay.total(Decay(1.0), np.ones(2))


class Cost:
    def __init__(self, rate):
        self.rate = rate

    def plain(self, x):
        return x * self.rate

    @ns.grad
    @ns.jit(mode="python")
    def slope(self, x):
        return (x**2).sum() * self.rate

    @functools.partial(ns.value_and_grad, argnums=(0, 1))
    @ns.jit(mode="python")
    def both(self, x, y):
        return x * y * self.rate

    @functools.partial(ns.vmap, in_axes=(0, None))
    @ns.jit(mode="python")
    def lanes(self, x, y):
        return x * y * self.rate

    @ns.grad
    @classmethod
    def of_class(cls, x):
        return x * x

    @ns.grad
    @staticmethod
    def of_none(x):
        return x * x


@ns.grad
@ns.jit(mode="python")
def slope(x):
    return x**3


def test_what_transforms_make_in_a_class_is_bound_too():
    one, other, x = Cost(2.0), Cost(3.0), np.array([1.0, 2.0])
    for cost in (one, other, one):
        np.testing.assert_array_equal(2 * x * cost.rate, cost.slope(x))
        assert cost.both(2.0, 5.0) == (10 * cost.rate, (5 * cost.rate, 2 * cost.rate))
        np.testing.assert_array_equal(4 * x * cost.rate, cost.lanes(x, 4.0))
    one.rate = 7.0
    np.testing.assert_array_equal(14 * x, one.slope(x))
    assert (one.of_class(3.0), Cost.of_class(3.0), one.of_none(3.0)) == (6.0, 6.0, 6.0)


def test_what_decorators_made_is_pickled_as_what_it_is():
    cost, x = Cost(2.0), np.array([1.0, 2.0])
    for made, call in (
        (cost.slope, lambda f: f(x)),
        (ns.jit(cost.plain, mode="python"), lambda f: f(x)),
        (ns.scan(cost.plain, mode="python"), lambda f: f(outputs_info=x, n_steps=2)),
        (slope, lambda f: f(2.0)),
    ):
        for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
            assert type(again) is type(made)
            np.testing.assert_array_equal(call(made), call(again))
    assert pickle.loads(pickle.dumps(slope)) is slope
    assert pickle.loads(pickle.dumps(Cost.slope)) is Cost.slope
