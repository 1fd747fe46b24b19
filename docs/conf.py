"""How the documentation is built: `tox -e docs`."""

from importlib.metadata import version as version_of

project = "numbascan"
author = "The numbascan developers"
copyright = author
version = release = version_of("numbascan")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

default_role = "code"  # single backticks in docstrings

html_theme = "furo"
html_title = f"numbascan {release}"
