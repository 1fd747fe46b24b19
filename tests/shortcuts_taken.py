"""Tests of a shortcut through Numba's inside skip where it is not in force."""

import sys

import pytest

from numbascan.emit.inside.shortcuts import SHORTCUTS


def needs(*names: str) -> pytest.MarkDecorator:
    """A mark that skips a test where one of these shortcuts is not taken."""
    left_out = [name for name in names if not SHORTCUTS[name].is_taken()]
    return pytest.mark.skipif(bool(left_out), reason=f"shortcuts that are not in force: {', '.join(left_out)}")


_LOADED = ("object_code", "object_code_loaded", "array_class")
needs_object_code = pytest.mark.skipif(
    not sys.platform.startswith("linux") or not all(SHORTCUTS[name].is_taken() for name in _LOADED), reason="Numba loads the machine code"
)
