"""The command `numbascan`."""

import html
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from numbascan.cli import main
from numbascan.emit import cache

FILE = """
import numpy as np
import numbascan as ns
import numbascan.tensor as nt

x = nt.dvector("x")
w = ns.shared(2.0, "w")
y = np.tanh(x) * w

@ns.jit
def norm(v):
    return np.sqrt(np.sum(v * v))

norm.lower(np.ones(40))

@ns.scan
def decay(y, rate):
    return y * rate

decay.lower(outputs_info=np.ones(3), non_sequences=0.5, n_steps=4)

@ns.jit
def uncalled(v):
    return v + 1.0
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBASCAN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_loaded", {})  # as in a process of its own
    path = tmp_path / "model.py"
    path.write_text(FILE)
    return path


def test_show_prints_the_graph_of_a_variable(file, capsys):
    assert main(["show", f"{file}:y"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "input x: float64[?]",
        "shared w: float64[]",
        "v0: float64[?] = tanh(x)",
        "v1: float64[?] = multiply(v0, w)",
        "return v1",
    ]


@pytest.mark.parametrize("name, words", [("norm", "sqrt("), ("decay", "scan 'decay'")])
def test_show_prints_the_graph_of_a_compiled_function(file, capsys, name, words):
    assert main(["show", f"{file}:{name}", "--graph"]) == 0
    assert words in capsys.readouterr().out


@pytest.mark.parametrize("name", ["y", "norm", "decay"])
def test_show_prints_generated_code(file, capsys, name):
    assert main(["show", f"{file}:{name}", "--source", "cpu"]) == 0
    assert "def " in capsys.readouterr().out


@pytest.mark.parametrize("name, head", [("norm", "norm(v)"), ("decay", "decay(y, rate, n_steps)")])
def test_export_writes_a_module(file, tmp_path, capsys, name, head):
    module = tmp_path / "exported.py"
    assert main(["export", f"{file}:{name}", "-o", str(module)]) == 0
    assert capsys.readouterr().out == f"{module}: def {head}\n"
    assert f"\ndef {head}:\n" in module.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name, words",
    [
        ("uncalled", "uncalled has not been compiled yet"),
        ("x", "is not compiled by numbascan"),
        ("nothing", "has no 'nothing'"),
    ],
)
def test_export_tells_why_it_wrote_nothing(file, tmp_path, capsys, name, words):
    module = tmp_path / "exported.py"
    assert main(["export", f"{file}:{name}", "-o", str(module)]) == 1
    assert (words in capsys.readouterr().err, module.exists()) == (True, False)


def test_show_prints_memory(file, capsys):
    assert main(["show", f"{file}:norm", "--memory"]) == 0
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("name, words", [("y", "tanh(x)"), ("norm", "return"), ("decay", "scan &#x27;decay&#x27;")])
@pytest.mark.parametrize("program", [None, sys.executable])
def test_show_writes_a_page(file, capsys, monkeypatch, name, words, program):
    """Without Graphviz there is no picture; nothing else is missing."""
    monkeypatch.setattr("shutil.which", lambda _: program and picture_by(file.parent))
    assert main(["show", f"{file}:{name}", "--html"]) == 0
    page = ElementTree.fromstring(capsys.readouterr().out.partition("\n")[2].replace('<meta charset="utf-8">', ""))
    headings = [heading.text for heading in page.iter("h2")]
    assert headings == ["Graph", *(["Picture"] if program else []), "Generated code", *(["Memory"] if name != "y" else [])]
    assert html.unescape(words) in next(page.iter("pre")).text
    assert "def " in list(page.iter("pre"))[1].text


def picture_by(folder):
    """A program that writes a picture as Graphviz does, from whatever it is given."""
    program = folder / "dot"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nopen(sys.argv[sys.argv.index('-o') + 1], 'w').write('<?xml version=\"1.0\"?>\\n<svg></svg>')\n"
    )
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    "place, words",
    [
        ("{file}:nothing", "has no 'nothing'; it has np, ns, nt, x, w, y, norm, decay, uncalled"),
        ("{file}:norm.nothing", "has no 'norm.nothing'"),
        ("{file}", "write FILE.py:NAME"),
        ("missing.py:x", "there is no file 'missing.py'"),
        ("{file}:uncalled", "has not been compiled yet; call it, or uncalled.lower"),
        ("{file}:np", "has no graph"),
    ],
)
def test_show_says_what_is_wrong_on_stderr(file, capsys, place, words):
    assert main(["show", place.format(file=file)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err


def test_show_of_a_plain_function_says_what_it_lacks(tmp_path, capsys):
    (tmp_path / "plain.py").write_text("def twice(x):\n    return 2 * x\n")
    for options, words in (([], "has one under @ns.jit, once it has been called"), (["--source", "cpu"], "put @ns.jit above it")):
        assert main(["show", f"{tmp_path / 'plain.py'}:twice", *options]) == 1
        assert words in capsys.readouterr().err


def test_show_names_the_line_where_a_file_fails(tmp_path, capsys):
    path = tmp_path / "broken.py"
    path.write_text("x = 1\ny = x / 0\n")
    assert main(["show", f"{path}:x"]) == 1
    assert "broken.py, line 2: ZeroDivisionError: division by zero" in capsys.readouterr().err


def test_wrong_usage_exits_with_2(capsys):
    for arguments in ([], ["dance"], ["show"], ["show", "f.py:x", "--graph", "--memory"], ["cache", "eat"]):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 2
        assert "usage: numbascan" in capsys.readouterr().err


def test_info_tells_what_matters(capsys):
    assert main(["info"]) == 0
    labels = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert labels == ["numbascan", "numpy", "numba", "llvmlite", "scipy", "python", "cpu", "vector", "gpu", "cache"]


def test_cache_lists_and_clears_generated_modules(file, tmp_path, capsys):
    assert main(["show", f"{file}:norm"]) == 0
    capsys.readouterr()
    assert main(["cache", "list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed
    assert all(str(tmp_path / "cache") in line and line.endswith(".py") for line in listed)
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out.startswith(f"{len(listed)} modules removed")
    assert main(["cache", "list"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("module", ["numbascan", "numbascan.cli"])
def test_the_module_runs_as_a_command(module):
    done = subprocess.run([sys.executable, "-m", module, "cache"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage: numbascan cache" in done.stderr


def test_a_shell_completes_commands_and_options(capsys, tmp_path):
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "completion"
    script.write_text(capsys.readouterr().out, encoding="utf-8")
    for words, expected in (
        (["numbascan", "ca"], "cache"),
        (["numbascan", "cache", "cl"], "clear"),
        (["numbascan", "show", "--me"], "--memory"),
    ):
        asked = f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _shtab_numbascan; echo ${{COMPREPLY[@]}}"
        done = subprocess.run(["bash", "-c", f"source {script}; {asked}"], capture_output=True, text=True, check=True)
        assert done.stdout.split() == [expected]


def test_completion_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "zsh"]) == 1
    assert 'pip install "numbascan[completion]"' in capsys.readouterr().err
