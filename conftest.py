"""Every ``python`` block of README.md and docs/ is a test: blocks with prompts are compared, the others only run.

The blocks of a page share their names, from top to bottom. Define steps in blocks without prompts: errors can then quote their lines.
``<!-- skip: next if(condition, reason="…") -->`` leaves a block out.
"""

from doctest import ELLIPSIS, NORMALIZE_WHITESPACE

from sybil import Sybil
from sybil.evaluators.doctest import NUMBER
from sybil.parsers.myst import PythonCodeBlockParser, SkipParser

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=ELLIPSIS | NORMALIZE_WHITESPACE | NUMBER), SkipParser()],
    patterns=["README.md", "docs/*.md", "docs/**/*.md"],
).pytest()
