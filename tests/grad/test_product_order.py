"""Products of three operands in a backward step: the same value in fewer multiplications."""

import numpy as np
import pytest

import numbascan as ns
from numbascan.grad.product_order import in_cheap_order
from numbascan.ir.graph import Graph, toposort
from numbascan.ir.node import Node, new_input
from numbascan.ops.algebra import add, call, neg
from numbascan.ops.contract import multiplications
from numbascan.oracle.interpret import interpret
from numbascan.types import TensorType

RNG = np.random.default_rng(31)


def work(output: Node) -> float:
    return sum(multiplications(node) for node in toposort([output]) if node.op.name == "contract")


def assert_equal_values(inputs: list[Node], before: Node, after: Node) -> None:
    assert before.type == after.type
    arrays = [(RNG.normal(size=x.type.shape) + 1j * RNG.normal(size=x.type.shape)).astype(x.type.dtype) for x in inputs]
    graph = Graph(tuple(inputs), (before, after))
    np.testing.assert_allclose(*interpret(graph, arrays), rtol=1e-10, atol=1e-10)


def inputs_of(*shapes: tuple[int | None, ...], dtype: str = "complex128") -> list[Node]:
    return [new_input(TensorType(dtype, shape), name) for name, shape in zip("abcd", shapes, strict=False)]


def product(a: Node, b: Node, text: str) -> Node:
    """`text` as in einsum."""
    operands, out = text.split("->")
    return call("contract", a, b, labels=tuple(tuple(ord(letter) - 97 for letter in part) for part in (*operands.split(","), out)))


def test_a_matrix_times_a_column_comes_first() -> None:
    a, b, c = inputs_of((4, 4), (4, 4), (4, 1))
    before = product(product(a, b, "ik,kj->ij"), c, "ij,jm->im")
    (after,) = in_cheap_order([before], [])
    assert (work(before), work(after)) == (80, 32)
    assert_equal_values([a, b, c], before, after)


def test_an_outer_product_is_not_made_where_a_product_of_vectors_is_enough() -> None:
    k, h, w = inputs_of((4, 1), (1, 4), (4, 4))
    before = product(w, product(k, h, "ik,kj->ij"), "im,ij->jm")
    (after,) = in_cheap_order([before], [])
    assert work(after) < work(before)
    assert_equal_values([k, h, w], before, after)


def shuffled(rng: np.random.Generator, letters: str, summed: list[str]) -> str:
    """The labels of a product of two operands, in any order, without those that are summed over."""
    return "".join(rng.permutation([one for one in dict.fromkeys(letters) if one not in summed]))


@pytest.mark.parametrize("seed", range(40))
def test_any_three_operands(seed: int) -> None:
    """Random labels: batch axes, sums over several axes, results in any order, the inner product on either side."""
    rng = np.random.default_rng(seed)
    extents = {letter: int(rng.integers(1, 6)) for letter in "ijkmn"}

    def letters(least: int) -> str:
        return "".join(rng.permutation([*"ijkmn"])[: rng.integers(least, 4)])

    x, y, z = (letters(1) for _ in range(3))
    inner = shuffled(rng, x + y, [one for one in x if one in y and one not in z and rng.random() < 0.5])
    out = shuffled(rng, inner + z, [one for one in inner if one in z and rng.random() < 0.6])
    a, b, c = inputs_of(*(tuple(extents[one] for one in part) for part in (x, y, z)))
    within = product(a, b, f"{x},{y}->{inner}")
    before = product(within, c, f"{inner},{z}->{out}") if seed % 2 else product(c, within, f"{z},{inner}->{out}")
    (after,) = in_cheap_order([before], [])
    assert work(after) <= work(before)
    assert_equal_values([a, b, c], before, after)


def test_operands_of_another_dtype_stay_where_they_are() -> None:
    """Two float32 matrices would be multiplied in float32."""
    (a,), (b, c) = inputs_of((4, 4), dtype="float64"), inputs_of((4, 4), (4, 1), dtype="float32")
    before = product(product(a, b, "ik,kj->ij"), c, "ij,jm->im")
    assert in_cheap_order([before], []) == [before]


def test_what_is_read_twice_or_is_a_leaf_stays() -> None:
    a, b, c = inputs_of((4, 4), (4, 4), (4, 1))
    within = product(a, b, "ik,kj->ij")
    before = product(within, c, "ij,jm->im")
    assert in_cheap_order([before], [within]) == [before]
    assert in_cheap_order([before, within], []) == [before, within]
    both = add(before, product(neg(within), c, "ij,jm->im"))
    assert in_cheap_order([both], []) == [both]


def test_an_open_dimension_says_nothing_of_the_cost() -> None:
    a, b, c = inputs_of((None, 4), (4, 4), (4, 1))
    before = product(product(a, b, "ik,kj->ij"), c, "ij,jm->im")
    assert in_cheap_order([before], []) == [before]


def test_a_longer_chain_is_taken_from_its_cheap_end() -> None:
    a, b, c, d = inputs_of((4, 4), (4, 4), (4, 4), (4, 1))
    before = product(product(product(a, b, "ij,jk->ik"), c, "ij,jk->ik"), d, "ij,jk->ik")
    (after,) = in_cheap_order([before], [])
    assert_equal_values([a, b, c, d], before, after)
    assert work(after) < work(before)


def test_the_gradient_of_a_low_rank_update() -> None:
    """(u h) @ P, from which the derivative makes (u h)^T @ W and (W @ P^T) @ h^T."""

    def cost(P, U):
        def step(u, P, h):
            return P - u @ h @ P + 0.1 * P * P

        return ns.scan(step, U, outputs_info=P, non_sequences=np.ones((1, 4)), return_updates=False)[-1].sum()

    ns.verify_grad(cost, [RNG.normal(size=(4, 4)) / 9, RNG.normal(size=(3, 4, 1)) / 9])
