"""Nests are taken apart and put together again."""

from collections import namedtuple

import pytest

from numbascan.front.tree import LEAF, NONE, alike, describe, flatten, n_leaves, paths, unflatten

Point = namedtuple("Point", "x y")

NESTS = [
    7,
    (1, [2, 3], {"b": 4, "a": (5,)}),
    Point(1, [2, {"k": 3}]),
    {"only": None, "x": 2},
    [],
    {2: "two", "one": 1},
]


@pytest.mark.parametrize("nest", NESTS)
def test_a_nest_survives_the_way_there_and_back(nest):
    leaves = []
    structure = flatten(nest, leaves)
    assert unflatten(structure, leaves) == nest
    assert n_leaves(structure) == len(leaves) == len(paths(structure, "p"))
    hash(structure)


def test_named_tuples_keep_their_class():
    leaves = []
    assert type(unflatten(flatten(Point(1, 2), leaves), leaves)) is Point


def test_leaves_follow_keys_in_whatever_order_these_were_written():
    first, second = [], []
    one, other = flatten([{"a": 1, "b": 2}], first), flatten([{"b": 2, "a": 1}], second)
    assert first == second == [1, 2]
    assert alike(one, other)
    assert one != other
    assert one == flatten([{"a": 3, "b": 4}], [])
    assert not alike(one, flatten([{"a": 1, "c": 2}], []))
    assert not alike(flatten({1: 0}, []), flatten({1: (0,)}, []))
    assert flatten({1: 0}, []) != flatten({True: 0}, [])
    assert list(unflatten(other, second)[0]) == ["b", "a"]


def test_none_is_a_nest_without_leaves():
    leaves = []
    assert flatten((None, 1), leaves) == (tuple, None, (NONE, LEAF))
    assert leaves == [1]


def test_leaves_are_named_by_keys_fields_and_positions():
    structure = flatten({"p": Point(1, 2), "q": [3]}, [])
    assert paths(structure, "s") == ["s_p_x", "s_p_y", "s_q_0"]


def test_structures_are_shown_as_they_are_written():
    assert describe(flatten({"m": 1, "P": (2,)}, [])) == "{'P': (…,), 'm': …}"
    assert describe(flatten(Point(1, [2]), [])) == "Point(…, […])"
    assert describe(LEAF) == "an array"


def test_a_rule_may_make_leaves_of_lists():
    leaves = []
    assert flatten([[1, 2], 3], leaves, lambda value: value == [1, 2]) == (list, None, (LEAF, LEAF))
    assert leaves == [[1, 2], 3]
