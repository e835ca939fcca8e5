"""The configuration of Sphinx."""

import html
import importlib
import importlib.util
import re
import shutil
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from followup import __version__

project = "followup"
author = copyright = "the followup authors"  # noqa: A001 - Sphinx requires this name
release = version = __version__

extensions = ["myst_parser"]
if importlib.util.find_spec("sphinx_copybutton"):  # optional, so that Sphinx and its theme suffice to build the pages
    extensions.append("sphinx_copybutton")
    copybutton_prompt_text = "$ "
if has_tabs := importlib.util.find_spec("sphinx_design") is not None:  # without it, alternatives are below each other
    extensions.append("sphinx_design")
exclude_patterns = ["_build", "programs", "try"]
smartquotes_action = "qe"  # no dashes: options begin with two hyphens
highlight_options = {"php": {"startinline": True}}  # examples without <?php
html_theme = "furo"
html_title = f"followup {__version__}"
html_static_path = ["_static"]
templates_path = ["_templates"]
html_css_files = ["followup.css"]
html_js_files = [(each, {"defer": "defer"}) for each in ("search.js", "pictures.js")]
html_scaled_image_link = False  # the links of hidden pictures would have no text
html_use_index = False
html_favicon = "_static/favicon.svg"
html_extra_path = ["llms.txt"]

sys.path.insert(0, str(Path(__file__).parent / "programs"))
reference_pages = importlib.import_module("reference_pages")
anchor = importlib.import_module("reference_generator.markdown").anchor
narrow_tables = importlib.import_module("narrow_tables")
page_parts = importlib.import_module("page_parts")
powershell = importlib.import_module("powershell")
pictures = importlib.import_module("pictures")
tabs = importlib.import_module("tabs")
llms_text = importlib.import_module("llms_text")
search_index = importlib.import_module("search_index")
try_page = importlib.import_module("try_page")

myst_heading_anchors = 3
myst_heading_slug_func = "reference_generator.markdown.anchor"

CHANGELOG = Path(__file__).parent.parent / "CHANGELOG.md"
REDIRECTS = {
    "concepts/time": "how-to/time-travel",
    "control-api": "reference/control_api/index",
    "how-to/pagination": "how-to/clients",
    "versioning": "project",
}
"""Pages that have moved into others, by their old path."""

_SCROLLS = re.compile(r'<(pre|p(?=><img [^>]*\.svg")|div(?= class="table-wrapper))')
_ANCHOR = re.compile(r'^<a id="[a-z0-9-]+"></a>\n\n', re.MULTILINE)


def setup(app: Any) -> None:
    """Register the Python objects of the reference, for the search and for the references of other projects."""
    objects = defaultdict(list)
    for page, title, name, kind in reference_pages.python_names():
        objects[f"reference/{page}"].append((name, kind, anchor(title)))

    def show_changelog(_: object, page: str, source: list[str]) -> None:
        # In the repository, the page has a link to the file, which would not be a link on a site.
        if page == "changelog":
            source[0] = CHANGELOG.read_text()

    def show_alternatives(app: Any, page: str, source: list[str]) -> None:
        source[0] = pictures.prepared(source[0], Path(app.env.doc2path(page)).parent)
        if has_tabs:
            source[0] = tabs.prepared(powershell.with_tabs(source[0]))

    def remove_anchors(_: object, page: str, source: list[str]) -> None:
        # Sphinx gives each heading the same anchor. It is spelled out for readers of the repository.
        if page.startswith("reference/"):
            source[0] = _ANCHOR.sub("", source[0])

    def register(app: Any, _: object) -> None:
        for name, kind, target in objects[app.env.docname]:
            app.env.get_domain("py").note_object(name, kind, target)

    def prepare(app: Any, page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
        body = narrow_tables.prepared(context.get("body", ""))
        body = _SCROLLS.sub(r'<\1 tabindex="0"', body)  # so that a keyboard can scroll it
        context["body"] = page_parts.with_anchors(body) if page.startswith("reference/") else body
        context["furo_hide_toc"] |= page == "index" or '<div class="beside">' in body  # which need the room
        tree = context.get("furo_navigation_tree", "").replace('role="heading"', "")
        context["furo_navigation_tree"] = page_parts.with_groups(tree, is_first_page=page == "index")
        if page in app.env.found_docs:
            text = html.escape(llms_text.description(page))
            context["metatags"] = f'{context.get("metatags", "")}<meta name="description" content="{text}">'

    def copy_sources(app: Any, problem: Exception | None) -> None:
        # llms.txt links to the Markdown of the pages.
        if problem is None and app.builder.name == "html":
            for page in app.env.found_docs:
                source = CHANGELOG if page == "changelog" else app.env.doc2path(page)
                shutil.copy(source, Path(app.outdir, f"{page}.md"))

    def index(app: Any, problem: Exception | None) -> None:
        if problem is None and app.builder.name == "html":
            search_index.write(app)

    def redirect(app: Any, problem: Exception | None) -> None:
        for old, new in REDIRECTS.items() if problem is None and app.builder.name == "html" else ():
            target = f"{'../' * old.count('/')}{new}.html"
            moved = f'<meta http-equiv="refresh" content="0; url={target}"><a href="{target}">This page has moved.</a>'
            head = f'<title>Moved</title><meta name="description" content="This page has moved to {new}.">'
            Path(app.outdir, f"{old}.html").write_text(f"<!doctype html>{head}{moved}", encoding="utf-8")

    try_page.setup(app)
    app.connect("build-finished", copy_sources)
    app.connect("build-finished", redirect)
    app.connect("build-finished", index)
    app.connect("source-read", show_changelog)
    app.connect("source-read", show_alternatives)
    app.connect("html-page-context", prepare, priority=900)  # after the theme
    app.connect("source-read", remove_anchors)
    app.connect("doctree-read", register)
