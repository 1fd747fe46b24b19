"""Every program of the gallery runs, and the number that it checks is right."""

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "docs" / "examples").glob("*.py"))


def test_there_are_twenty_programs():
    assert len(EXAMPLES) >= 20


# once a day, by a file in the user's cache, ArviZ says on import that it will change
@pytest.mark.filterwarnings(r"ignore:\s*ArviZ is undergoing:FutureWarning")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_program_draws_one_picture_and_its_number_is_right(path, capsys, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")  # of the extra plot: `tox -e docs` has it
    matplotlib.use("Agg")
    from matplotlib import pyplot

    monkeypatch.setattr(pyplot, "show", lambda: None)  # a window waits for its reader

    program = path.read_text(encoding="utf-8")
    assert re.search(r"^ *assert ", program, re.MULTILINE)
    if "import nutpie" in program:
        pytest.importorskip("nutpie")  # of the extra docs
    try:
        runpy.run_path(str(path))
        assert len(pyplot.get_fignums()) == 1
        assert capsys.readouterr().out
    finally:
        pyplot.close("all")
