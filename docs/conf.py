"""How the documentation is built: `tox -e docs`."""

import sys
import warnings
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # the modules beside this file

import pictures
import reference_pages

project = "numbascan"
author = "The numbascan developers"
copyright = author
version = release = version_of("numbascan")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

default_role = "code"  # single backticks in docstrings

html_theme = "furo"
html_title = f"numbascan {release}"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
exclude_patterns = ["_build", "examples"]
templates_path = ["_templates"]
autosummary_filename_map = {"numbascan.Function": "numbascan.Function-class"}  # folders may not tell it from numbascan.function
autosummary_context = {
    "shown_members": reference_pages.MEMBERS,
    "called": reference_pages.CALLED,
    "see_also": reference_pages.see_also(),
}
autodoc_typehints = "none"  # the docstrings tell shapes and kinds

copybutton_prompt_text = r">>> |\.\.\. |\$ "  # what is copied can be run: no prompts, no results
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",  # all of them are run, and an example that fails fails the pages
    "capture_repr": (),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
}

# once a day, by a file in the user's cache, ArviZ says on import that it will change; it would stand on the page, with a path
warnings.filterwarnings("ignore", r"\s*ArviZ is undergoing", FutureWarning)

pictures.draw_all()
