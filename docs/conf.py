"""How the documentation is built: `tox -e docs`."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # pictures.py

import pictures

project = "numbascan"
author = "The numbascan developers"
copyright = author
version = release = version_of("numbascan")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon", "sphinx_copybutton", "sphinx_design"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

default_role = "code"  # single backticks in docstrings

html_theme = "furo"
html_title = f"numbascan {release}"
exclude_patterns = ["_build"]

copybutton_prompt_text = r">>> |\.\.\. |\$ "  # what is copied can be run: no prompts, no results
copybutton_prompt_is_regexp = True

pictures.draw_all()
