"""A loop with a port of every kind, made by hand."""

from types import SimpleNamespace

import numbascan as ns
import numbascan.tensor as nt
from numbascan.front.variable import Variable
from numbascan.ir.loop_node import scan_node
from numbascan.ir.node import item, new_input
from numbascan.ir.ports import Carry, LoopSpec, MitMot, NonSeq, Seq, State, Trace
from numbascan.types import TensorType


def inner(name):
    return Variable(new_input(TensorType("float64"), name))


def loop_of_every_kind():
    """The outer variables, the loop's spec and node, and its results in the order of the spec."""
    n, w, a0 = nt.lscalar("n"), nt.dscalar("w"), nt.dscalar("a0")
    x, z, m, f0 = nt.dvectors("x z m f0")
    s, c = ns.shared(2.0, "s"), ns.shared(3.0, "c")
    x_t, x_next, z_t, m_t, m_next = map(inner, ["x_t", "x_next", "z_t", "m_t", "m_next"])
    f_2, f_1, a_1, c_t, s_t, w_t = map(inner, ["f_2", "f_1", "a_1", "c_t", "s_t", "w_t"])
    a = a_1 * x_t + x_next
    spec = LoopSpec(
        n.node,
        seqs=(Seq(x.node, (0, 1), (x_t.node, x_next.node)), Seq(z.node, (0,), (z_t.node,))),
        mit_mots=(MitMot(m.node, (0, 1), (m_t.node, m_next.node), (1,), ((m_next + z_t).node,)),),
        states=(
            State(a0.node, (-1,), (a_1.node,), a.node),
            State(f0.node, (-2, -1), (f_2.node, f_1.node), (f_2 + a_1).node, has_axis=True),
        ),
        traces=(Trace((f_1 * w_t).node),),
        carries=(Carry(c.node, c_t.node, (c_t + s_t).node),),
        non_seqs=(NonSeq(w.node, w_t.node), NonSeq(s.node, s_t.node)),
        until=(a > 100.0).node,
        name="every_kind",
    )
    node = scan_node(spec)
    results = [Variable(item(node, k)) for k in range(5)]
    return SimpleNamespace(**{v.name: v for v in (n, w, a0, x, z, m, f0, s, c)}, spec=spec, node=node, results=results)
