"""The page of measured figures: what it says of figures that are known."""

import importlib.util
import sys
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("benches_page", Path(__file__).parents[2] / "benches" / "page.py")
page = sys.modules["benches_page"] = importlib.util.module_from_spec(spec)  # dataclasses look their module up
spec.loader.exec_module(page)


def row(name, ours, by_hand=1.0, jax=2.0, pytensor=8.0, faults=None):
    others = {"by hand": by_hand, "JAX": jax, "PyTensor": pytensor}
    times_ours = {other: ratio for other, ratio in others.items() if other not in (faults or {})}
    ns = {"numbascan": ours, **{other: ours * ratio for other, ratio in times_ours.items()}}
    return {"name": name, "ns": ns, "times_ours": times_ours, "faults": faults or {}}


@pytest.fixture
def figures():
    led = [row(name, 10.0, by_hand=1.5) for name in ("garch", "hmm", "rnn", "lstm")]
    gradients = [row("garch-grad", 20.0, by_hand=0.75), row("hmm-grad", 45.0, faults={"PyTensor": "other numbers"})]
    return {
        "date": "2026-01-02",
        "machine": {"cpu": "a CPU", "cores": 2, "system": "Linux x86_64", "python": "3.11.7"},
        "versions": {"numbascan": {"numbascan": "0.1.0"}, "JAX": {"jax": "0.10.2"}},
        "rows": led + gradients,
        "call_us": {"numbascan": 4.0, "by hand": 0.5},
        "fresh": [
            {"name": "lorenz", "cache": cache, "seconds": {"numbascan": 1.0, "JAX": ratio}, "times_ours": ratio}
            for cache, ratio in (("none", 1.5), ("warm", 1.5))
        ],
        "growth": 4096,
    }


def goal(figures, words):
    return next(goal for goal in page.goals(figures) if goal.text.startswith(words))


def test_the_least_ratio_names_its_workload(figures):
    least = goal(figures, "time by hand over ours, least of")
    assert (least.found, least.where, least.is_met) == (0.75, "garch-grad", False)


def test_gradients_are_set_against_their_forward_computation(figures):
    cost = goal(figures, "gradient over forward")
    assert cost.found == pytest.approx((2.0 * 4.5) ** 0.5)
    assert not cost.is_met


def test_a_candidate_without_a_right_result_counts_in_no_mean(figures):
    assert goal(figures, "time PyTensor over ours, geometric mean").found == pytest.approx(8.0)
    assert "| other numbers |" in page.text(figures, "chart.svg")


def test_a_fresh_process_is_judged_by_its_cache(figures):
    assert goal(figures, "fresh process to first result without a cache").is_met
    assert not goal(figures, "fresh process to first result from the disk cache").is_met


def test_a_call_counts_beyond_that_of_the_kernel(figures):
    assert goal(figures, "call on two small arrays").found == 3.5


def test_the_page_keeps_what_stands_outside_the_marks():
    before = f"above\n{page.START}\nold\n{page.END}\nbelow\n"
    after = page.placed(before, "new")
    assert after == f"above\n{page.START}\n\nnew\n{page.END}\nbelow\n"
    assert page.placed(after, "new") == after


def test_who_is_faster_is_told(figures):
    assert "* by hand: garch-grad (0.75)" in page.text(figures, "chart.svg")
    assert "* JAX: none" in page.text(figures, "chart.svg")
