"""The configuration of Sphinx."""

import importlib
import re
import sys
from pathlib import Path
from typing import Any

from followup import __version__

project = "followup"
author = copyright = "the followup authors"  # noqa: A001 - Sphinx requires this name
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"followup {__version__}"
html_static_path = ["_static"]
html_css_files = ["followup.css"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": True}
napoleon_custom_sections = [("Keys", "params_style")]

maximum_signature_line_length = 80
add_module_names = False
toc_object_entries_show_parents = "hide"

sys.path.insert(0, str(Path(__file__).parent))
for module in ("command_pages", "reference_pages"):
    importlib.import_module(module).write()


_NOT_CONSTRUCTED = ("followup.Page", "followup.AsyncPage", "followup.ResponseInfo")
"""Classes that only the package instantiates, besides the errors."""


def setup(app: Any) -> None:
    """Simplify signatures: hide ``NotGiven``, which the default shows, and constructors that users never call."""

    def signature(_: object, what: str, name: str, *event: Any) -> tuple[str | None, str | None]:
        arguments, returns = event[-2:]
        if what == "exception" or name in _NOT_CONSTRUCTED:
            return "", None
        return arguments and re.sub(r" \| ~?[\w.]*NotGiven\b", "", arguments), returns

    app.connect("autodoc-process-signature", signature)
