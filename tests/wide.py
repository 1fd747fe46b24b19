"""Parameters of tests beyond the first ones: `pytest --wide` runs them too. `tox -e wide` runs the whole suite so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def wide(values: Iterable[Any], first: int) -> list[Any]:
    """`values` for `parametrize`: the first ones in every run, the others with `--wide`."""
    several = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*value, marks=[pytest.mark.wide] * (k >= first)) for k, value in enumerate(several)]
