"""Graphs as text, as DOT, as pictures."""

import contextlib
import re
import shutil
import stat
import sys
import warnings

import numpy as np
import pytest
from random_programs.compare import Run
from random_programs.draw import draw_program
from random_programs.generate import RandomChooser
from snapshots.programs import recorded
from structure_loops import loop_of_every_kind

import numbascan as ns
import numbascan.tensor as nt


def test_a_graph_has_a_line_per_value():
    x = nt.dvector("x")
    y = np.tanh(x) * 2.0
    y.name = "y"
    assert str(ns.show([y, y + np.arange(5.0)])) == "\n".join(
        [
            "input x: float64[?]",
            "v0: float64[?] = tanh(x)",
            "y: float64[?] = multiply(v0, 2.0)",
            "v1: float64[5] = constant(float64[5])",
            "v2: float64[5] = add(y, v1)",
            "return y, v2",
        ]
    )


def test_the_text_shows_itself():
    text = ns.show(nt.fscalar("x"))
    assert repr(text) == str(text) == "input x: float32[]\nreturn x"


def test_a_loop_shows_its_ports_and_its_step():
    lines = str(ns.show(loop_of_every_kind().results)).splitlines()
    body = [line for line in lines if line.startswith("    ")]
    assert body == [
        "    seq x_t: float64[] = x[t]",
        "    seq x_next: float64[] = x[t+1]",
        "    seq z_t: float64[] = z[t]",
        "    mit_mot m_t: float64[] = every_kind[0][t], at first m",
        "    mit_mot m_next: float64[] = every_kind[0][t+1], at first m",
        "    state a_1: float64[] = every_kind[1][t-1], at first a0",
        "    state f_2: float64[] = every_kind[2][t-2], at first f0",
        "    state f_1: float64[] = every_kind[2][t-1], at first f0",
        "    shared c_t: float64[] = at first c",
        "    non_seq w_t: float64[] = w",
        "    non_seq s_t: float64[] = s",
        "    v0: float64[] = add(m_next, z_t)",
        "    v1: float64[] = multiply(a_1, x_t)",
        "    v2: float64[] = add(v1, x_next)",
        "    v3: float64[] = add(f_2, a_1)",
        "    v4: float64[] = multiply(f_1, w_t)",
        "    v5: float64[] = add(c_t, s_t)",
        "    v6: bool[] = greater(v2, 100.0)",
        "    write every_kind[0][t+1] = v0",
        "    write every_kind[1][t] = v2",
        "    write every_kind[2][t] = v3",
        "    write every_kind[3][t] = v4",
        "    write every_kind[4] = v5, next c_t",
        "    until v6",
    ]
    assert "shared c: float64[]" in lines
    assert "every_kind: float64[?], float64[?], float64[?], float64[?], float64[] = scan 'every_kind' (n_steps=n)" in lines


def test_a_choice_shows_both_branches():
    x, y = nt.dscalars("x y")
    lines = str(ns.show(nt.ifelse(x > y, x * 2.0, y + 3.0))).splitlines()
    assert [line.strip().split(":")[0] for line in lines if line.startswith("    ")] == [
        "where it holds",
        "v0",
        "return v0",
        "else",
        "v0",
        "return v0",
    ]


def test_compiled_functions_show_their_graph():
    x = nt.dvector("x")
    assert "add(x, 1.0)" in ns.show(ns.function([x], x + 1.0, mode="python"))


@pytest.mark.parametrize("thing", [3.0, "text", np.ones(3), []])
def test_what_has_no_graph_is_refused(thing):
    with pytest.raises(TypeError, match="has no graph"):
        ns.show(thing)


def test_a_python_function_is_told_what_it_lacks():
    with pytest.raises(TypeError, match=r"has no graph; .* under @ns\.jit, once it has been called"):
        ns.show(lambda x: x)


def labels(x, folder, **options):
    """Of a picture's nodes the labels, by their numbers; and its edges, as pairs of labels."""
    text = ns.draw(x, folder / "graph.dot", **options).read_text(encoding="utf-8")
    nodes = dict(re.findall(r'^ *"([^"]+)" \[label="([^"]*)"', text, re.MULTILINE))
    edges = re.findall(r'^ *"([^"]+)" -> "([^"]+)"(?: \[(.*)\])?$', text, re.MULTILINE)
    return nodes, [(nodes[a], nodes.get(b, b), look) for a, b, look in edges]


def test_a_picture_holds_what_is_read_and_the_loop_in_a_box(tmp_path):
    nodes, edges = labels(loop_of_every_kind().results, tmp_path)
    text = (tmp_path / "graph.dot").read_text(encoding="utf-8")
    assert text.startswith("digraph {")
    assert text.count("{") == text.count("}") == 2
    assert 'label="loop every_kind, n_steps = n"' in text
    assert {r"x\nfloat64[?]", r"shared c\nfloat64[]", r"x[t+1]\nfloat64[]", r"m_t[t+1]\nfloat64[]"} <= set(nodes.values())
    at_first = [(source, target) for source, target, look in edges if "at first" in look]
    assert (r"a0\nfloat64[]", r"a_1[t-1]\nfloat64[]") in at_first
    assert [source.split(" > ")[1] for source, target, _ in edges if target == "ends where this holds"] == [r"100.0\nbool[]"]


def test_a_dashed_edge_leads_to_what_the_next_step_reads(tmp_path):
    @ns.jit
    def falling(x, n):
        for _ in range(n):
            x = x * 0.5
        return x

    falling(1.0, 3)
    _, edges = labels(falling, tmp_path, rewritten=True)
    dashed = [(source, target) for source, target, look in edges if "dashed" in look]
    assert dashed == [(r"x_2 = x[t-1] * 0.5\nfloat64[]", r"x[t-1]\nfloat64[]")]


def test_what_a_step_reads_unchanged_comes_straight_from_outside(tmp_path):
    w, n = nt.dscalar("w"), nt.lscalar("n")
    powers = ns.scan(lambda x, w: x * w, outputs_info=1.0, non_sequences=w, n_steps=n, return_updates=False)
    nodes, edges = labels(powers, tmp_path)
    assert [target for source, target, _ in edges if source == r"w\nfloat64[]"] == [r"v0 = x[t-1] * w\nfloat64[]"]
    assert sum(label.startswith("w") for label in nodes.values()) == 1


def test_casts_to_wider_dtypes_and_small_constants_have_no_node(tmp_path):
    k, x = nt.iscalar("k"), nt.fvector("x")
    nodes, _ = labels([k.astype("float64") * 2.0, x.astype("int32")], tmp_path)
    assert list(nodes.values()) == [
        *(r"k\nint32[]", r"x\nfloat32[?]"),
        *(r"v0 = k * 2.0\nfloat64[]", r"v1 = cast(x)\nint32[?]"),
    ]


def test_places_are_written_as_a_user_writes_them(tmp_path):
    x, i = nt.dmatrix("x"), nt.lscalar("i")
    shown = [x[i, 1:], x[::-1, None], nt.set_subtensor(x[0], 3.0), x[nt.lvector("rows")]]
    nodes, _ = labels(shown, tmp_path)
    written = [label.split(r"\n")[0].partition(" = ")[2] for label in nodes.values() if " = " in label]
    assert written == ["x[i, 1:]", "x[::-1, None]", "x with [0] = 3.0", "x[rows]"]


def test_a_choice_is_drawn_with_both_branches(tmp_path):
    x, y = nt.dscalars("x y")
    nodes, edges = labels(nt.ifelse(x > y, x * 2.0, y + 3.0), tmp_path)
    text = (tmp_path / "graph.dot").read_text(encoding="utf-8")
    assert 'label="where it holds"' in text
    assert 'label="else"' in text
    (choice,) = [label for label in nodes.values() if "ifelse" in label]
    assert {source.split(" = ")[1] for source, target, _ in edges if target == choice} == {
        *(r"x > y\nbool[]", r"x * 2.0\nfloat64[]", r"y + 3.0\nfloat64[]"),
    }


def test_operations_and_choices_of_several_results_are_drawn_once(tmp_path):
    a, x = nt.dmatrix("a"), nt.dvector("x")
    sign, logarithm = np.linalg.slogdet(a)
    both = nt.ifelse(logarithm > 0.0, [x * 2.0, x + 1.0], [x, -x])
    nodes, edges = labels([sign, logarithm, *both], tmp_path)
    assert [label.split(r"\n")[1] for label in nodes.values() if "slogdet" in label] == ["float64[], float64[]"]
    assert {target for _, target, _ in edges} >= {"result 0", "result 1", "result 2", "result 3"}


def test_no_node_of_a_derivative_is_drawn_twice_or_hangs_loose(tmp_path):
    @ns.jit
    def loss(p, y):
        level, total = 0.0, 0.0
        for value in y:
            level = level + p[0] * (value - level)
            total = total + (value - level) ** 2 * p[1]
        return total

    gradient = ns.jit(ns.grad(loss))
    gradient(np.array([0.5, 1.0]), np.arange(5.0))
    nodes, edges = labels(gradient, tmp_path, rewritten=True)
    named = [label.split(r"\n")[0].split(" = ")[0] for label in nodes.values()]
    assert len(named) == len(set(named))
    ends = {label for edge in edges for label in edge[:2]}
    assert set(nodes.values()) <= ends


def test_every_edge_of_random_programs_leads_from_a_node_to_a_node(tmp_path):
    with recorded() as kernels, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(12):
            with contextlib.suppress(Exception):  # Recorded, or refused
                Run(draw_program(RandomChooser(seed))).called()
    assert len(kernels) >= 10
    for kernel in kernels:
        for rewritten in (False, True):
            text = ns.draw(kernel.graph, tmp_path / "graph.dot", rewritten=rewritten).read_text(encoding="utf-8")
            nodes = re.findall(r'^ *"([^"]+)" \[', text, re.MULTILINE)
            edges = re.findall(r'^ *"([^"]+)" -> "([^"]+)"', text, re.MULTILINE)
            assert len(nodes) == len(set(nodes))
            assert {end for edge in edges for end in edge} <= set(nodes)


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz")
def test_graphviz_reads_the_text(tmp_path):
    assert ns.draw(loop_of_every_kind().results, tmp_path / "g.png").read_bytes().startswith(b"\x89PNG")


def test_pictures_come_from_graphviz(tmp_path, monkeypatch):
    fake = tmp_path / "dot"
    fake.write_text(f"#!{sys.executable}\nimport sys\nopen(sys.argv[3], 'w').write(sys.argv[1] + sys.stdin.read())\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    x = nt.dvector("x")
    assert ns.draw(x * 2.0, tmp_path / "g.svg").read_text().startswith("-Tsvgdigraph {")
    fake.write_text(f"#!{sys.executable}\nimport sys\nsys.exit('no such format')\n")
    with pytest.raises(RuntimeError, match=r"could not write .*g\.xyz.*no such format"):
        ns.draw(x, tmp_path / "g.xyz")


def test_a_missing_graphviz_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"needs Graphviz's program dot for \.png files.*g\.dot"):
        ns.draw(nt.dvector("x"), tmp_path / "g.png")
    with pytest.raises(ValueError, match="no suffix"):
        ns.draw(nt.dvector("x"), tmp_path / "g")
