"""`numbascan run` and `numbascan status`."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from numbascan.batches import inputs
from numbascan.batches.command import IN_THE_SHELL
from numbascan.cli import main

zarr = pytest.importorskip("zarr")

MODEL = """
import numpy as np
import numbascan as ns

@ns.scan(outputs_info=np.ones(2), n_steps=3)
def decay(y, rate, gain):
    return y * rate + gain

@ns.scan(n_steps=3)
def growth(y, r):
    return y * r

@ns.scan(n_steps=3)
def lowered(y, r):
    return y * r

lowered.lower(outputs_info=1.0, non_sequences=1.0)

def line(x, slope=2.0, label="up"):
    return {"y": x * slope if label == "up" else -x, "k": (x * 10).astype("int64")}

def inverse(x):
    return np.linalg.inv(x * np.ones((1, 1)))

def product(x, factor, *, power):
    return x * factor**power

def slow(x):
    return ns.scan(lambda y: np.sin(y) + x, outputs_info=x, n_steps=300_000, keep_last=1, return_updates=False)

def wrong(x):
    return {}["rate"] * x

number = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL.replace(", keep_last=1, return_updates=False)", ", return_updates=False)[-1]"))
    return tmp_path


def run(*arguments: str) -> int:
    return main(["run", *arguments])


def test_a_grid_of_a_scan_function_with_its_keywords(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("model.py:decay", "--grid", "rate=0:1:5", "--grid", "gain=1,2", "--set", "keep_last=1", "--set", "n_steps=2") == 0
    out, err = capsys.readouterr()
    rate, gain = np.linspace(0, 1, 5)[:, None], np.array([1, 2])
    end = rate * (rate + gain) + gain
    assert out == f"result        float64 (5, 2, 2)  min {end.min():.6g}  mean {end.mean():.6g}  max {end.max():.6g}\n"
    assert "10 of 10 cases" in err


def test_a_state_goes_by_its_name_once_the_file_says_that_it_is_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("model.py:growth", "--grid", "y=5,1", "--set", "r=2") == 2
    assert "nothing says which parameters of growth are states" in capsys.readouterr().err
    assert run("model.py:lowered", "--grid", "y=5.0,1.0", "--set", "r=2.0") == 0
    assert capsys.readouterr().out == f"result        float64 (2, 3)  min 2  mean {84 / 6:.6g}  max 40\n"


def test_arguments_without_a_default_may_be_set(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("model.py:product", "--grid", "x=1,2", "--set", "factor=3", "--set", "power=2") == 0
    assert "min 9  mean 13.5  max 18" in capsys.readouterr().out
    assert run("model.py:product", "--grid", "x=1,2", "--set", "factor=3") == 2
    err = capsys.readouterr().err
    assert "product(x, *, factor=3, power) does not take these inputs: give --set NAME=VALUE, --grid NAME=VALUES or a column for" in err
    assert err.endswith("the argument 'power'\n")


def test_a_store_is_filled_part_by_part_and_its_status_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = ("model.py:line", "--grid", "x=0:1:10", "--set", "slope=3", "--store", "out.zarr", "--chunk", "3")
    assert run(*sweep, "--part", "1/2", "--memory", "2MB") == 0
    assert capsys.readouterr().out.splitlines() == ["done    2 of 4 chunks, 4 of 10 cases", "failed  0 cases", "left    2 chunks, 6 cases"]
    assert run(*sweep) == 0
    capsys.readouterr()
    assert main(["status", "out.zarr"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "done    4 of 4 chunks, 10 of 10 cases"
    np.testing.assert_array_equal(zarr.open_group("out.zarr", mode="r")["y"][:], 3 * np.linspace(0, 1, 10))
    assert run(*sweep[:3], "--set", "label=down", "--store", "out.zarr") == 2
    assert "another program" in capsys.readouterr().err
    assert run(*sweep[:3], "--set", "label=down", "--store", "out.zarr", "--no-resume", "--mode", "python") == 0
    assert zarr.open_group("out.zarr", mode="r")["y"][-1] == -1


def test_columns_that_are_no_arguments_are_left_out_with_a_note(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "in.csv").write_text("date,x,slope,note\n2020-01-01,1,3,good\n2020-01-02,2,3,\n")
    assert run("model.py:line", "--inputs", "in.csv") == 0
    out, err = capsys.readouterr()
    assert "numbascan run: --inputs in.csv: left out, since model.py:line has no such argument: date, note\n" in err
    assert "min 3  mean 4.5  max 6" in out
    (folder / "in.csv").write_text("r,day\n2,1\n3,2\n")
    assert run("model.py:lowered", "--inputs", "in.csv", "--set", "y=1.0") == 0
    out, err = capsys.readouterr()
    assert "left out, since model.py:lowered has no such argument: day\n" in err
    assert "min 2" in out
    (folder / "in.csv").write_text("a,b\n2,1\n3,2\n")
    assert run("model.py:line", "--inputs", "in.csv") == 2
    assert "no column is an argument of model.py:line, which has x, slope, label; the columns are a, b" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("--part", "1/2"), "ValueError: --part needs --store, and --chunk with a number"),
        (("--part", "2/2", "--store", "out.zarr", "--chunk", "3"), "ValueError: --part is (2, 2); write I/N with 0 <= I < N"),
        (("--chunk", "0"), "ValueError: --chunk is 0; give a number of cases, or auto"),
        (("--memory", "much"), "ValueError: --memory is 'much'"),
    ],
)
def test_messages_speak_of_options(folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str) -> None:
    assert run("model.py:line", "--grid", "x=0:1:10", *arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"numbascan run: {words}")
    assert "ns.batch" not in err


def test_messages_about_inputs_speak_of_options(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez("in.npz", x=np.arange(3.0), slope=np.arange(2.0))
    assert run("model.py:line", "--inputs", "in.npz") == 2
    assert "slope has 2, x has 3; give equally many, or --set NAME=VALUE for what is the same for all" in capsys.readouterr().err
    np.savez("in.npz", x=1.0)
    assert run("model.py:line", "--inputs", "in.npz") == 2
    assert "no input has an axis of cases; give --inputs a file with a row for each case" in capsys.readouterr().err
    assert run("model.py:lowered", "--grid", "y=5,1", "--set", "r=2.0") == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("the inputs y are whole numbers")


def test_words_that_are_replaced_are_words_of_messages() -> None:
    texts = "".join(path.read_text() for path in Path(inputs.__file__).parent.glob("*.py") if path.name != "command.py")
    joined = re.sub(r'"\s*\n\s*f?"', "", texts)
    missing = [words for words in IN_THE_SHELL if words not in joined and not words.startswith("missing a required")]  # Python's own
    assert missing == []


@pytest.mark.parametrize("kind", ["npz", "zarr", "csv", "npy", "parquet"])
def test_inputs_are_read_from_files(folder: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    x = np.arange(4.0)
    if kind == "npz":
        np.savez("in.npz", x=x, slope=3.0)
    elif kind == "zarr":
        zarr.open_group("in.zarr", mode="a").create_array("x", data=x)
    elif kind == "parquet":
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.table({"x": x, "slope": np.full(len(x), 3.0)}), "in.parquet")
    elif kind == "csv":
        Path("in.csv").write_text("x,slope\n0,3\n1,3\n2,3\n3,3.0\n")
    else:
        np.save("in.npy", x)
    assert run("model.py:line", "--inputs", f"in.{kind}", "--set", "label='up'", "--store", "out.zarr") == 0
    y = zarr.open_group("out.zarr", mode="r")["y"][:]
    np.testing.assert_array_equal(y, x * (3 if kind in ("npz", "csv", "parquet") else 2))


def test_numbers_that_are_missing_in_a_table_are_nan(folder: Path) -> None:
    Path("in.csv").write_text("x,slope\n1,2\n2,\n,3\n", encoding="utf-8-sig")
    assert run("model.py:line", "--inputs", "in.csv", "--store", "out.zarr") == 0
    np.testing.assert_array_equal(zarr.open_group("out.zarr", mode="r")["y"][:], [2.0, np.nan, np.nan])


@pytest.mark.parametrize(
    "cells, expected",
    [
        (["9223372036854775809", "1"], np.array([2**63 + 1, 1], "uint64")),
        (["18446744073709551615", " 0 "], np.array([2**64 - 1, 0], "uint64")),
        (["-9223372036854775808", "9007199254740993"], np.array([-(2**63), 2**53 + 1])),
        (["1e300", "18446744073709551616"], np.array([1e300, 2.0**64])),
        (["9007199254740992", ""], np.array([2.0**53, np.nan])),
        (["inf", "-1"], np.array([np.inf, -1.0])),
    ],
)
def test_integers_of_a_table_keep_their_digits(folder: Path, cells: list[str], expected: Any) -> None:
    Path("in.csv").write_text("k,id\n" + "".join(f"{k},{cell}\n" for k, cell in enumerate(cells)))
    Path("model.py").write_text("def f(k, id): return id")
    assert run("model.py:f", "--inputs", "in.csv", "--store", "out.zarr") == 0
    got = zarr.open_group("out.zarr", mode="r")["result"][:]
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    "cells",
    [
        ["1", "18446744073709551617"],
        ["-1", "9223372036854775809"],
        ["2.5", "9007199254740993"],
        ["", "9007199254740993"],
        ["1j", "-9007199254740993"],
        ["0", "1" + 400 * "0"],
    ],
)
def test_integers_of_a_table_that_would_be_rounded_are_refused(folder: Path, capsys: pytest.CaptureFixture[str], cells: list[str]) -> None:
    Path("in.csv").write_text("k,x\n" + "".join(f"{k},{cell}\n" for k, cell in enumerate(cells)))
    assert run("model.py:line", "--inputs", "in.csv") == 2
    assert f"--inputs in.csv: x has {cells[1]} in row 2, which" in capsys.readouterr().err


def test_integers_of_parquet_beside_gaps_that_would_be_rounded_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"x": pyarrow.array([None, 2**53 + 1, 1])}), "in.parquet")
    assert run("model.py:line", "--inputs", "in.parquet") == 2
    assert f"--inputs in.parquet: x has {2**53 + 1} in row 2, which float64 would round" in capsys.readouterr().err
    parquet.write_table(pyarrow.table({"x": pyarrow.array([None, 2**53, 1])}), "in.parquet")
    assert run("model.py:line", "--inputs", "in.parquet") == 0


def test_columns_may_have_names_that_numpy_keeps_for_itself(folder: Path) -> None:
    Path("model.py").write_text("def f(file, file_, print): return file + 10 * file_ + 100 * print")
    Path("in.csv").write_text("# file, print\n1,2\n")
    Path("both.csv").write_text("file_,print\n1,2\n")
    assert run("model.py:f", "--inputs", "in.csv", "--set", "file_=3", "--store", "a.zarr") == 0
    assert run("model.py:f", "--inputs", "both.csv", "--set", "file=3", "--store", "b.zarr") == 0
    assert [zarr.open_group(name, mode="r")["result"][:].tolist() for name in ("a.zarr", "b.zarr")] == [[231], [213]]


@pytest.mark.parametrize("place, words", [("nothing.py:f", "there is no file 'nothing.py'"), ("model.py:nope", "model.py has no 'nope'")])
def test_a_function_that_is_not_there_is_told_in_words(folder: Path, capsys: pytest.CaptureFixture[str], place: str, words: str) -> None:
    assert run(place, "--grid", "x=1,2") == 2
    assert capsys.readouterr().err.startswith(f"numbascan run: {words}")


def test_a_disk_that_is_full_has_an_exit_code_of_its_own_and_the_same_command_goes_on(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = ("model.py:line", "--grid", "x=0:1:100", "--store", "out.zarr", "--chunk", "10")
    put = zarr.storage.LocalStore.set

    async def full(self: Any, key: str, value: Any) -> None:
        if key == "y/c/5":
            raise OSError(errno.ENOSPC, "No space left on device")
        await put(self, key, value)

    with monkeypatch.context() as patch:
        patch.setattr(zarr.storage.LocalStore, "set", full)
        assert run(*sweep) == 4
    assert "stopped after 50 of 100 cases, which out.zarr keeps" in capsys.readouterr().err
    assert run(*sweep) == 0
    assert run(*sweep, "--set", "slope=3") == 2


def test_cases_that_fail_say_so_by_the_exit_code(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("model.py:inverse", "--grid", "x=-1:1:3", "--store", "out.zarr") == 3
    assert "case 1 failed: LinAlgError" in capsys.readouterr().err
    assert run("model.py:inverse", "--grid", "x=-1:1:3", "--store", "out.zarr", "--on-error", "record") == 1
    assert "failed  1 cases" in capsys.readouterr().out


def test_a_dry_run_tells_cases_bytes_chunks_and_time(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("model.py:line", "--grid", "x=0:1:1000", "--chunk", "300", "--store", "out.zarr", "--dry-run") == 0
    lines = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert list(lines) == ["cases", "chunks", "inputs", "results", "memory", "time"]
    assert (lines["cases"], lines["chunks"]) == ("1,000", "4 of 300 cases")
    assert lines["results"] == "16,000 bytes"
    assert not Path("out.zarr").exists()


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["nothing.py:f", "--grid", "x=1,2"], "there is no file 'nothing.py'"),
        (["model.py:number", "--grid", "x=1,2"], "cannot be called"),
        (["model.py:line"], "there are no cases"),
        (["model.py:line", "--grid", "x=1,2", "--inputs", "in.npz"], "not both"),
        (["model.py:line", "--inputs", "in.npz"], "there is no file 'in.npz'"),
        (["model.py:line", "--inputs", "model.py"], "the kinds of files are"),
        (["model.py:line", "--grid", "x=1:2"], "FIRST:LAST:COUNT"),
        (["model.py:line", "--grid", "x"], "NAME=VALUE"),
        (["model.py:line", "--grid", "z=1,2"], "unexpected keyword argument|or a column for the argument"),
        (["model.py:line", "--grid", "x=1,2", "--set", "z=1"], "unexpected keyword argument"),
        (["model.py:line", "--grid", "x=1,2", "--chunk", "few"], "--chunk few"),
        (["model.py:line", "--grid", "x=1,2", "--part", "1"], "--part 1: write I/N"),
        (["model.py:line", "--grid", "x=1,2", "--part", "1/2"], "--part needs --store"),
        (["model.py:line", "--grid", "x=1,2", "--mode", "fast"], "mode 'fast' is not known"),
        (["model.py:decay", "--grid", "rate=1,2"], "needs gain as well"),
        (["model.py:line", "--grid", "x=1,2", "--grid", "x=3"], "--grid x=3: x is given twice"),
        (["model.py:line", "--grid", "x=1,2", "--set", "slope=3", "--set", "slope=4"], "--set slope=4: slope is given twice"),
        (["model.py:line", "--grid", "x=1,2", "--set", "x=3"], "--set x: x is given twice"),
        (["model.py:decay", "--grid", "rate=1,2", "--grid", "gain=1,2", "--set", "gain=3"], "--set gain: gain is given twice"),
        (["model.py:wrong", "--grid", "x=1,2"], "in wrong"),
        (["model.py:line", "--inputs", "empty.npy"], "--inputs empty.npy: the file is empty"),
        (["model.py:line", "--inputs", "half.npz"], "BadZipFile"),
        (["model.py:line", "--grid", f"x={2**64 - 1},-1"], f"--grid x={2**64 - 1},-1: {2**64 - 1} would be rounded"),
        (["model.py:line", "--grid", "x=1,2", "--set", f"slope=[{2**53 + 1}, 0.5]"], f"{2**53 + 1} would be rounded"),
        (["model.py:line", "--grid", "x=1,2", "--store", "out.zarr", "--scheduler", "there"], "scheduler is 'there', which is no address"),
        (["model.py:line", "--inputs", "flags.csv"], "--inputs flags.csv: slope has no value in row 2"),
    ],
)
def test_wrong_use_is_told_and_nothing_runs(folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    Path("empty.npy").touch()
    Path("half.npz").write_bytes(b"PK\x03\x04")
    Path("flags.csv").write_text("x,slope\n1,True\n2,\n")
    assert run(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert any(word in err for word in words.split("|"))


def test_the_status_of_a_store_that_was_not_begun_to_the_end_and_of_one_that_is_damaged(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = ("model.py:line", "--grid", "x=0:1:10", "--store", "out.zarr", "--chunk", "3")
    assert run(*sweep) == 0
    capsys.readouterr()
    Path("out.zarr/chunks/done/zarr.json").write_text("")
    assert main(["status", "out.zarr"]) == run(*sweep) == 2
    assert capsys.readouterr().err.count("metadata in the store out.zarr are damaged") == 2
    shutil.rmtree("out.zarr/chunks")
    assert main(["status", "out.zarr"]) == 0
    assert capsys.readouterr().out.splitlines() == ["done    0 of 4 chunks, 0 of 10 cases", "failed  0 cases", "left    4 chunks, 10 cases"]


def test_a_store_that_is_not_there_has_no_status(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "out.zarr"]) == 2
    assert "there is no store 'out.zarr'" in capsys.readouterr().err


def test_stopped_by_control_c_it_exits_as_shells_expect(folder: Path) -> None:
    command = [sys.executable, "-c", "import sys; from numbascan.cli import main; sys.exit(main())", "run", "model.py:slow"]
    options = ["--grid", "x=0:1:20000", "--store", "out.zarr", "--chunk", "20"]
    process = subprocess.Popen([*command, *options], cwd=folder, text=True, stderr=subprocess.PIPE, env=os.environ)
    while not (folder / "out.zarr/result/c/2").exists():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "the same call goes on from there" in err
