"""Loops by position: owner, ScanArgs, the twelve mappings, the connection pattern. Expected values are derived by hand."""

import gc
import weakref

import numpy as np
import pytest
from structure_loops import loop_of_every_kind

import numbascan as ns
import numbascan.tensor as nt

#        inputs outside: n  x  z  m  f0 a0 c  n  s  w     results: m  f  a  trace  c
#               position 0  1  2  3  4  5  6  7  8  9              0  1  2  3      4
# inputs inside: x_t x_next z_t m_t m_next f_2 f_1 a_1 c_t s_t w_t, outputs inside: m f a trace c condition
#       position 0   1      2   3   4      5   6   7   8   9   10                   0 1 2 3     4 5


@pytest.fixture(scope="module")
def loop():
    return loop_of_every_kind()


def names(variables):
    return [variable.name for variable in variables]


def test_owner_gives_inputs_and_outputs_in_the_documented_order(loop):
    owner = loop.results[0].owner
    assert names(owner.inputs) == ["n", "x", "z", "m", "f0", "a0", "c", "n", "s", "w"]
    m, a, f, trace, c = loop.results
    assert [variable.node for variable in owner.outputs] == [variable.node for variable in (m, f, a, trace, c)]
    assert owner.inputs[6] is loop.c


def test_owner_of_an_ordinary_op(loop):
    product = loop.x * 2.0
    assert product.owner.op.name == "multiply"
    assert product.owner.inputs[0].node is loop.x.node
    assert product.owner.outputs[0].node is product.node
    assert loop.x.owner is None
    assert loop.s.owner is None


def test_mappings(loop):
    mappings = loop.results[0].owner.op.get_oinp_iinp_iout_oout_mappings()
    expected = {
        "outer_out_from_outer_inp": {0: -1, 1: -1, 2: -1, 3: 0, 4: 1, 5: 2, 6: 4, 7: 3, 8: -1, 9: -1},
        "inner_inp_from_outer_inp": {0: [], 1: [0, 1], 2: [2], 3: [3, 4], 4: [5, 6], 5: [7], 6: [8], 7: [], 8: [9], 9: [10]},
        "inner_out_from_outer_inp": {0: [], 1: [], 2: [], 3: [0], 4: [1], 5: [2], 6: [4], 7: [3], 8: [], 9: []},
        "outer_inp_from_outer_out": {0: 3, 1: 4, 2: 5, 3: 7, 4: 6},
        "inner_inp_from_outer_out": {0: [3, 4], 1: [5, 6], 2: [7], 3: [], 4: [8]},
        "inner_out_from_outer_out": {0: [0], 1: [1], 2: [2], 3: [3], 4: [4]},
        "outer_inp_from_inner_inp": {0: 1, 1: 1, 2: 2, 3: 3, 4: 3, 5: 4, 6: 4, 7: 5, 8: 6, 9: 8, 10: 9},
        "inner_out_from_inner_inp": {0: [], 1: [], 2: [], 3: [0], 4: [0], 5: [1], 6: [1], 7: [2], 8: [4], 9: [], 10: []},
        "outer_out_from_inner_inp": {0: -1, 1: -1, 2: -1, 3: 0, 4: 0, 5: 1, 6: 1, 7: 2, 8: 4, 9: -1, 10: -1},
        "outer_inp_from_inner_out": {0: 3, 1: 4, 2: 5, 3: 7, 4: 6},
        "inner_inp_from_inner_out": {0: [3, 4], 1: [5, 6], 2: [7], 3: [], 4: [8]},
        "outer_out_from_inner_out": {0: 0, 1: 1, 2: 2, 3: 3, 4: 4},
    }
    assert mappings == expected


def test_connection_pattern(loop):
    owner = loop.results[0].owner
    pattern = owner.op.connection_pattern(owner)
    connected = [[result for result, hit in zip("mfatc", row, strict=True) if hit] for row in pattern]
    # t: the trace. a uses x and itself, f uses itself and a, the trace uses f and w, c uses itself and s
    assert connected == [[], ["f", "a", "t"], ["m"], ["m"], ["f", "t"], ["f", "a", "t"], ["c"], [], ["c"], ["t"]]


def test_scan_args(loop):
    args = ns.ScanArgs(loop.results[0])
    assert args.n_steps.node is loop.n.node
    outer = {
        kind: names(getattr(args, f"outer_in_{kind}"))
        for kind in ("seqs", "mit_mot", "mit_sot", "sit_sot", "shared", "nit_sot", "non_seqs")
    }
    assert outer == {
        "seqs": ["x", "z"],
        "mit_mot": ["m"],
        "mit_sot": ["f0"],
        "sit_sot": ["a0"],
        "shared": ["c"],
        "nit_sot": ["n"],
        "non_seqs": ["s", "w"],
    }
    assert all(names(getattr(args, kind)) == found for kind, found in outer.items())
    assert names(args.inner_in_seqs) == ["x_t", "x_next", "z_t"]
    assert [names(reads) for reads in args.inner_in_mit_mot] == [["m_t", "m_next"]]
    assert [names(reads) for reads in args.inner_in_mit_sot] == [["f_2", "f_1"]]
    assert names(args.inner_in_sit_sot) == ["a_1"]
    assert names(args.inner_in_shared) == ["c_t"]
    assert names(args.inner_in_non_seqs) == ["s_t", "w_t"]
    assert (args.mit_mot_in_slices, args.mit_mot_out_slices, args.mit_sot_in_slices) == ([(0, 1)], [(1,)], [(-2, -1)])
    assert [len(getattr(args, f"inner_out_{kind}")) for kind in ("mit_mot", "mit_sot", "sit_sot", "nit_sot", "shared")] == [1] * 5
    assert args.cond[0].node is args.inner_outputs[-1].node
    assert (len(args.inner_inputs), len(args.inner_outputs), len(args.outer_inputs), len(args.outer_outputs)) == (11, 6, 10, 5)
    _, _, f, trace, _ = loop.results
    assert [args.outer_out_mit_sot[0].node, args.outer_out_nit_sot[0].node] == [f.node, trace.node]


def test_the_inner_values_compute_the_step(loop):
    args = ns.ScanArgs(loop.results[0].owner)
    (a,) = args.inner_out_sit_sot
    step = ns.function([*args.inner_in_sit_sot, *args.inner_in_seqs[:2]], a, mode="python")
    assert step(2.0, 3.0, 5.0) == 11.0


def test_scan_args_of_a_scan_made_by_ns_scan():
    x = nt.dvector("x")
    total, _ = ns.scan(lambda x_t, before: before + x_t, sequences=x, outputs_info=np.float64(0.0))
    args = ns.ScanArgs(total)
    assert names(args.seqs) == ["x"]
    assert [len(args.sit_sot), len(args.mit_sot), len(args.nit_sot), len(args.cond)] == [1, 0, 0, 0]


def test_scan_args_refuses_what_no_scan_made(loop):
    with pytest.raises(TypeError, match="needs the result of a scan"):
        ns.ScanArgs(loop.x * 2.0)
    with pytest.raises(TypeError, match="needs the result of a scan"):
        ns.ScanArgs(loop.x)


def test_outputs_share_their_owner_which_holds_the_variables_handed_in():
    x, start, first = nt.dmatrix("x"), nt.tensor("float64", shape=(2,), name="start"), nt.dscalar("first")
    n, k, doubled = nt.lscalar("n"), nt.dvector("k"), 2 * nt.dvector("half")
    w, count = ns.shared(2.0, "w"), ns.shared(1, "count")

    def step(a, b, before, last, z, k):
        return [last + a.sum() + b, before * w, z + k.sum(), a * 2], {count: count + 1}

    initial = [{"initial": start, "taps": [-2, -1]}, None, first, None]
    outputs, updates = ns.scan(step, [x, doubled], initial, [k], n)
    owner = outputs[0].owner
    results = [*outputs, updates[count]]
    assert all(result.owner is owner for result in results)
    in_order = [outputs[0], outputs[2], outputs[1], outputs[3], updates[count]]
    inputs = [n, x, doubled, start, first, count, n, n, w, k]
    args, again = ns.ScanArgs(owner), ns.ScanArgs(outputs[3])
    for listed in (owner.outputs, args.outer_outputs, again.outer_outputs):
        assert list(map(id, listed)) == list(map(id, in_order))
    assert list(map(id, args.outer_inputs)) == list(map(id, inputs))
    assert args.n_steps is n
    assert args.seqs[0] is x
    assert args.outer_out_nit_sot[1] is outputs[3]
    assert list(map(id, args.inner_inputs)) == list(map(id, again.inner_inputs))

    kept = weakref.ref(owner), weakref.ref(outputs[1])
    del owner, outputs, results, args, again, in_order, listed, updates
    gc.collect()
    assert [reference() for reference in kept] == [None, None]
