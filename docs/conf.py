"""How Sphinx builds the documents."""

import importlib
import sys
from pathlib import Path

from followup import __version__

project = "followup"
author = copyright = "the followup authors"  # noqa: A001 - the name that Sphinx reads
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"followup {__version__}"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": True}
napoleon_custom_sections = [("Keys", "params_style")]

sys.path.insert(0, str(Path(__file__).parent))
command_pages = importlib.import_module("command_pages")
command_pages.write()
