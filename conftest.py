"""Every ``python`` block of README.md and docs/ is a test: blocks with prompts are compared, the others only run.

The blocks of a page share their names, from top to bottom. Define steps in blocks without prompts: errors can then quote their lines.
``<!-- skip: next if(condition, reason="…") -->`` leaves a block out; the condition may call `has_gpu()`, and `has("torch")` of a package.
"""

import os
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE
from importlib.util import find_spec

from sybil import Sybil
from sybil.evaluators.doctest import NUMBER
from sybil.parsers.myst import PythonCodeBlockParser, SkipParser


def has_gpu() -> bool:
    """Whether there is a device; the simulator would take days for the sizes of the pages."""
    from numbascan.emit.inside import cuda_package

    return os.environ.get("NUMBA_ENABLE_CUDASIM", "0") == "0" and not cuda_package.missing()


def has(package: str) -> bool:
    """Whether a package is installed."""
    return find_spec(package) is not None


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=ELLIPSIS | NORMALIZE_WHITESPACE | NUMBER), SkipParser()],
    setup=lambda names: names.update(has_gpu=has_gpu, has=has),
    patterns=["README.md", "docs/*.md", "docs/**/*.md"],
).pytest()
