"""What a traced function read from outside is watched."""

import functools

import numpy as np
import pytest

from numbascan.front.captures.guards import Guards

SCALE = 2.0
NAMES = {"k": 3.0}
WEIGHTS = np.arange(4.0)


def scaled(x):
    return x * SCALE


class Model:
    def __init__(self):
        self.rate, self.table, self.unused = 0.5, np.ones(2), 1

    def growth(self, x):
        return x * self.rate + self.table.sum()

    def __call__(self, x):
        return self.growth(x)


def test_globals_of_helpers_count(monkeypatch):
    guards = Guards(lambda x: scaled(x) + 1)
    assert guards.hold()
    monkeypatch.setitem(globals(), "SCALE", 4.0)
    assert not guards.hold()
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    assert guards.hold()


def test_a_replaced_helper_counts(monkeypatch):
    guards = Guards(lambda x: scaled(x))
    monkeypatch.setitem(globals(), "scaled", lambda x: x)
    assert not guards.hold()


def test_what_a_dict_holds_counts(monkeypatch):
    guards = Guards(lambda x: x * NAMES["k"])
    monkeypatch.setitem(NAMES, "k", 5.0)
    assert not guards.hold()


def test_the_content_of_arrays_counts():
    guards = Guards(lambda x: x @ WEIGHTS)
    WEIGHTS[1] += 1
    assert not guards.hold()
    WEIGHTS[1] -= 1
    assert guards.hold()
    assert guards.holds_array(WEIGHTS[1:])
    assert not guards.holds_array(WEIGHTS + 1)


@pytest.mark.parametrize("reach", [lambda model: model, lambda model: model.growth, lambda model: lambda x: model.growth(x)])
def test_attributes_that_the_code_names_count(reach):
    model = Model()
    guards = Guards(reach(model))
    model.unused = 2
    assert guards.hold()
    model.rate = 0.25
    assert not guards.hold()
    model.rate = 0.5
    model.table[0] = 3
    assert not guards.hold()


def test_arguments_of_partial_and_defaults_count():
    table = np.ones(3)
    guards = Guards(functools.partial(lambda x, t=None: x * t, t=table))
    table[2] = 0
    assert not guards.hold()


def test_equal_numbers_are_the_same():
    k = 1000.5
    guards = Guards(lambda x: x * k)
    k = float("1000.5")
    assert guards.hold()
    k = 1000
    assert not guards.hold()


def test_a_name_that_is_not_there_yet_does_not_matter():
    def step(x):
        return later(x) if False else x  # noqa: F821 - never called

    assert Guards(step).hold()


def test_functions_that_exec_made_are_watched():
    names = {"table": np.arange(3.0)}
    exec("def f(x):\n    return x * table[1]", names)
    guards = Guards(names["f"])
    assert guards.hold()
    names["table"][1] = 7.0
    assert not guards.hold()


def test_the_package_of_the_function_is_watched_where_it_is_installed(tmp_path, monkeypatch):
    (tmp_path / "installed_model.py").write_text("import numpy as np\nTABLE = np.arange(3.0)\ndef f(x):\n    return x * TABLE[1]\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("numbascan.front.captures.namespaces._INSTALLED", (str(tmp_path),))
    import installed_model

    guards = Guards(installed_model.f)
    assert guards.hold()
    installed_model.TABLE[1] = 7.0
    assert not guards.hold()


def test_an_assert_of_a_test_reads_no_attributes():
    """pytest rewrites an assert into calls of its own, which look into values where it fails, and nowhere else."""
    model = Model()

    def step(x):
        assert x is not None
        return x * model.rate

    assert "@pytest_ar" in step.__code__.co_names
    guards = Guards(step)
    model.unused = 2
    assert guards.hold()
    model.rate = 0.25
    assert not guards.hold()
