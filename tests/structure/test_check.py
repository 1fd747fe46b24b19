"""Legality of graphs."""

from dataclasses import replace

import numpy as np
import pytest
from structure_loops import loop_of_every_kind

import numbascan.tensor as nt
from numbascan.ir.check import IllegalGraphError, check
from numbascan.ir.graph import Graph, free_inputs
from numbascan.ir.loop_node import scan_node
from numbascan.ir.node import item, make, new_input
from numbascan.types import TensorType


def closed(*outputs):
    return Graph(tuple(free_inputs(outputs)), outputs)


def test_graphs_made_by_variables_are_legal():
    x = nt.dvector("x")
    check(closed((np.tanh(x) * 2.0 + [1.0, 2.0]).node))
    check(closed(*(result.node for result in loop_of_every_kind().results)))


def test_a_graph_that_is_not_closed_is_illegal():
    x, y = nt.dvectors("x y")
    with pytest.raises(IllegalGraphError, match=r"'y' .* is no input"):
        check(Graph((x.node,), ((x + y).node,)))


def test_a_type_that_the_op_does_not_infer_is_illegal():
    x = nt.dvector("x")
    total = (x + 1.5).node
    wrong = make(total.op, total.inputs, (TensorType("float32", (None,)),), total.attrs)
    with pytest.raises(IllegalGraphError, match=r"has types float32\[\?\], but its inputs give float64\[\?\]"):
        check(Graph((x.node,), (wrong,)))


def test_an_output_with_several_values_is_illegal():
    with pytest.raises(IllegalGraphError, match="has 5 values"):
        check(closed(loop_of_every_kind().node))


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda spec: replace(spec, n_steps=new_input(TensorType("float64"))), r"n_steps is float64\[\]"),
        (lambda spec: replace(spec, until=spec.states[0].write), r"until is float64\[\]"),
        (lambda spec: replace(spec, seqs=(replace(spec.seqs[0], taps=(0,)), spec.seqs[1])), r"seq 0 has taps \[0\] and 2 inner values"),
        (lambda spec: replace(spec, states=(replace(spec.states[0], taps=(0,)), spec.states[1])), "must be negative"),
        (lambda spec: replace(spec, states=(spec.states[0], replace(spec.states[1], has_axis=False))), "without a leading axis"),
        (
            lambda spec: replace(spec, states=(replace(spec.states[0], initial=new_input(TensorType("int64"))), spec.states[1])),
            "state 0 at its start",
        ),
        (lambda spec: replace(spec, carries=(replace(spec.carries[0], write=spec.until),)), "update of shared 0"),
        (lambda spec: replace(spec, non_seqs=(replace(spec.non_seqs[0], outer=spec.seqs[0].outer), spec.non_seqs[1])), "non_seq 0 is"),
        (lambda spec: replace(spec, mit_mots=(replace(spec.mit_mots[0], out_taps=(0, 1)),)), "writes of mit_mot 0"),
    ],
)
def test_a_port_out_of_order_is_illegal(change, words):
    with pytest.raises(IllegalGraphError, match=words):
        check(closed(item(scan_node(change(loop_of_every_kind().spec)), 0)))
