"""The command `numbascan`. Exit codes: 0 done, 1 not done (the reason is on stderr), 2 wrong usage. `run` has more of them."""

from __future__ import annotations

import argparse
import ctypes.util
import importlib.metadata
import importlib.util
import platform
import sys
import traceback
from collections.abc import Sequence
from datetime import datetime
from inspect import isfunction
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .front.scan.scan import ScanFunction


class CommandError(Exception):
    """A command that cannot be done, with the reason in words for its user."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options) or 0)
    except CommandError as error:
        print(f"numbascan {options.command}: {error}", file=sys.stderr)
        return 2 if options.command == "run" else 1
    except BrokenPipeError:  # the reader, such as head, has seen enough
        sys.stderr.close()
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="numbascan", description="Loops in plain Python, compiled, and run for many cases.")
    parser.add_argument("--version", action="version", version=f"numbascan {importlib.metadata.version('numbascan')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("demo", help="a tour on real data, with its own checks and timings").set_defaults(run=_demo)
    _add_batches(commands)
    shown = commands.add_parser("show", help="what a compiled object or a variable of a file is made of")
    shown.add_argument("place", metavar="FILE.py:NAME", help="the file, which is run, and the name of the object in it")
    what = shown.add_mutually_exclusive_group()
    what.add_argument("--graph", action="store_true", help="the graph as text (the default)")
    what.add_argument("--source", choices=("cpu", "cuda"), help="the generated code")
    what.add_argument("--memory", action="store_true", help="bytes stored for results and work space")
    what.add_argument("--html", action="store_true", help="all of these as one page")
    shown.set_defaults(run=_show)
    exported = commands.add_parser("export", help="a compiled object of a file as a Python module that needs NumPy and Numba alone")
    exported.add_argument("place", metavar="FILE.py:NAME", help="the file, which is run, and the name of the object in it")
    exported.add_argument("-o", "--output", required=True, metavar="MODULE.py", help="the module to write; one that is there is replaced")
    exported.set_defaults(run=_export)
    commands.add_parser("info", help="versions, CPU features, vector math, GPU, cache").set_defaults(run=_info)
    cache = commands.add_parser("cache", help="the generated code kept on disk")
    cache.add_argument("action", choices=("list", "clear"))
    cache.set_defaults(run=lambda options: _cache(options.action))
    completion = commands.add_parser("completion", help="what a shell needs to complete this command, on stdout")
    completion.add_argument("shell", choices=("bash", "zsh", "tcsh"))
    completion.set_defaults(run=lambda options: print(_completion(parser, options.shell)))
    return parser


def _add_batches(commands: Any) -> None:
    from .batches.command import add_run, run, status

    batch = commands.add_parser("run", help="a function of a file for many cases, into a store")
    add_run(batch)
    batch.set_defaults(run=lambda options: run(options, _object_at))
    done = commands.add_parser("status", help="what a store has: done, failed, left")
    done.add_argument("store", help="the folder of the store")
    done.set_defaults(run=status)


def _demo(options: argparse.Namespace) -> int:
    from .demo import main as tour

    return int(tour() or 0)


def _completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script by which a shell completes commands, options and files."""
    try:
        import shtab
    except ImportError:
        raise CommandError('shtab writes it, which is not installed: pip install "numbascan[completion]"') from None
    commands = next(action.choices for action in parser._actions if isinstance(action.choices, dict))
    for command in commands.values():
        for action in command._actions:
            if action.metavar in ("FILE.py:NAME", "MODULE.py") or action.dest == "store":
                action.complete = shtab.FILE
    return str(shtab.complete(parser, shell))


# show and export ------------------------------------------------------------------------------------------------------


def _show(options: argparse.Namespace) -> None:
    found = _object_at(options.place)
    try:
        print(_shown(found, options))
    except (TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise CommandError(f"{options.place}: {error}") from error


def _shown(found: Any, options: argparse.Namespace) -> str:
    from .front.function import function
    from .front.page import page
    from .front.scan.scan import ScanFunction as Scan
    from .front.show import show
    from .front.variable import Variable
    from .ir.graph import free_inputs

    if isinstance(found, Scan) and not found.is_compiled:
        _lower(found)
    if not (options.source or options.memory or options.html):
        return show(found)
    compiled = found
    if isinstance(found, Variable):
        inputs = [Variable(node) for node in free_inputs([found.node]) if "container" not in node.params]
        compiled = function(inputs, found, name=found.name or "variable")
    if not hasattr(compiled, "source"):
        advice = "; put @ns.jit above it, and call it in the file" if isfunction(found) else ""
        raise TypeError(f"{found!r} ({type(found).__name__}) is neither a variable nor compiled by numbascan{advice}")
    if options.html:
        return page(options.place, found, compiled)
    return str(compiled.source(options.source) if options.source else compiled.memory())


def _lower(found: ScanFunction) -> None:
    """Compiles a scan that the file defines but never calls, for the arguments that its decorator has."""
    try:
        found.lower()
    except (TypeError, ValueError) as error:
        hint = f"give the arguments to its decorator, @ns.scan(outputs_info=…, n_steps=…), or write {found.name}.lower(…) below it"
        raise ValueError(f"the file does not say for which arguments: {hint} ({error})") from error


def _export(options: argparse.Namespace) -> None:
    from .front.scan.scan import ScanFunction as Scan

    found = _object_at(options.place)
    try:
        if isinstance(found, Scan) and not found.is_compiled:
            _lower(found)
        if not hasattr(found, "export"):
            raise TypeError(f"{found!r} ({type(found).__name__}) is not compiled by numbascan, as by ns.function, ns.jit or ns.scan")
        text = found.export(options.output).read_text(encoding="utf-8")
    except (TypeError, ValueError, AttributeError, RuntimeError, OSError) as error:
        raise CommandError(f"{options.place}: {error}") from error
    heads = [line.removesuffix(":") for line in text.splitlines() if line.startswith("def ")]
    print(f"{options.output}: {heads[-1]}")


def _object_at(place: str) -> Any:
    """The object of `FILE.py:NAME`, found by running the file."""
    file, colon, name = place.rpartition(":")
    if not colon or not name:
        raise CommandError(f"{place!r} names no object; write FILE.py:NAME")
    path = Path(file)
    if not path.is_file():
        raise CommandError(f"there is no file {file!r}")
    found: Any = _run_file(path)
    for part in name.split("."):
        if not hasattr(found, part):
            raise CommandError(
                f"{file} has no {name!r}; it has {', '.join(key for key in vars(found) if not key.startswith('_')) or 'no names'}"
            )
        found = getattr(found, part)
    return found


def _run_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise CommandError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # as an import would: what the file defines can be pickled
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path]
        at = f", line {lines[-1]}" if lines else ""
        raise CommandError(f"{path}{at}: {type(error).__name__}: {error}") from error
    return module


# info and cache -------------------------------------------------------------------------------------------------------


def _info(options: argparse.Namespace) -> None:
    for label, text in information():
        print(f"{label:14}{text}")


def information() -> list[tuple[str, str]]:
    """What decides how numbascan runs on this machine, as pairs of a label and a text."""
    import llvmlite.binding as llvm

    from .emit.cache import cache_folder, entries
    from .emit.cache_bound import VARIABLE, bound, size_of
    from .errors import gpu

    versions = [(name, _version(name)) for name in ("numbascan", "numpy", "numba", "llvmlite", "scipy")]
    features = llvm.get_host_cpu_features()
    known = [name for name in ("sse4.2", "avx", "avx2", "fma", "avx512f", "neon", "sve") if features.get(name)]
    files = entries()
    return [
        *versions,
        ("python", f"{platform.python_version()} on {platform.platform()}"),
        ("cpu", f"{llvm.get_host_cpu_name()}: {', '.join(known) or 'no vector unit known'}"),
        ("vector math", _vector_math()),
        ("gpu", gpu()),
        ("cache", f"{cache_folder()}: {len(files)} modules, {size_of(cache_folder()) / 1e6:.1f} of {bound() / 1e6:g} MB ({VARIABLE})"),
    ]


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _vector_math() -> str:
    return "libmvec (glibc)" if ctypes.util.find_library("mvec") else "none: scalar calls"


def _cache(action: str) -> None:
    from .emit.cache import cache_folder, clear, entries
    from .emit.cache_bound import VARIABLE, bound, last_use, size_of, size_of_entry

    if action == "clear":
        print(f"{clear()} modules removed from {cache_folder()}")
        return
    for path in entries():
        print(f"{size_of_entry(path):9}  {datetime.fromtimestamp(last_use(path)):%Y-%m-%d %H:%M}  {path}")
    print(f"{size_of(cache_folder()):9}  of {bound():,} bytes that the cache may take ({VARIABLE})", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
