"""What a notebook shows of compiled objects."""

import html
from html.parser import HTMLParser

import numpy as np
import pytest

import numbascan as ns
import numbascan.tensor as nt


class Reader(HTMLParser):
    """The text of a piece of HTML, and whether its tags close in their order."""

    def __init__(self, piece):
        super().__init__()
        self.open, self.text = [], ""
        self.feed(piece)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@ns.scan
def decay(y, rate):
    """What is left <after> each step.

    More than a notebook shows.
    """
    return y * rate


@ns.jit
def norm(v):
    return np.sqrt(np.sum(v * v))


def test_what_is_not_compiled_says_so_and_is_not_compiled_for_it():
    fresh = ns.jit(lambda x: x + 1)
    text = Reader(fresh._repr_html_()).text
    assert "Not compiled yet" in text
    assert "0 kinds" in repr(fresh)


def test_a_scan_shows_what_it_computes_its_kinds_memory_graph_and_code():
    decay(outputs_info=8.0, non_sequences=0.5, n_steps=3)
    text = Reader(decay._repr_html_()).text
    assert "What is left <after> each step." in text
    assert "More than" not in text
    assert "Compiled for: " in text
    assert str(decay.memory()) in text
    assert str(ns.show(decay)) in text
    assert decay.source() in text


def test_a_function_of_arrays_shows_each_kind():
    norm(np.ones(40))
    norm(np.ones(40, "float32"))
    text = Reader(norm._repr_html_()).text
    assert "float64[?]" in text
    assert "float32[?]" in text
    assert norm.source() in text


def test_a_function_of_variables_shows_its_inputs_and_code():
    x = nt.dvector("x")
    f = ns.function([x], x * 2 < 3, name="f")
    text = Reader(f._repr_html_()).text
    assert "x: float64[?]" in text
    assert str(ns.show(f)) in text
    assert html.escape(f.source()) in f._repr_html_()


@pytest.mark.parametrize("mode", ["python", "debug"])
def test_modes_without_code_show_the_graph(mode):
    f = ns.jit(lambda x: x + 1, mode=mode)
    f(np.ones(3))
    text = Reader(f._repr_html_()).text
    assert "add(x, 1)" in text


def test_derivatives_and_lanes_are_shown():
    slope, lanes = ns.grad(lambda x: x**3), ns.vmap(lambda x: x**3)
    slope(2.0), lanes(np.ones(30))
    assert slope.source() in Reader(slope._repr_html_()).text
    assert lanes.source() in Reader(lanes._repr_html_()).text
