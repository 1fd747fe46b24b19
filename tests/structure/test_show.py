"""Graphs as text, as DOT, as pictures."""

import stat
import sys

import numpy as np
import pytest
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


def test_dot_holds_every_value_and_the_loop_in_a_box(tmp_path):
    path = ns.draw(loop_of_every_kind().results, tmp_path / "loop.dot")
    text = path.read_text(encoding="utf-8")
    assert text.startswith("digraph {")
    assert text.count("{") == text.count("}") == 2
    for words in [
        'label="input x: float64[?]"',
        'label="shared c: float64[]"',
        'label="greater: bool[]"',
        '[label="row t+1"]',
        'subgraph "cluster',
    ]:
        assert words in text


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
