"""Completes the HTML of a page: anchors of arguments, methods of operations, and a sidebar of groups that open."""

import re

_METHOD = re.compile(
    r'<h2>(?=[^\n]*</h2>(?:\s|<div[^>]*>)*<p><code[^>]*><span class="pre">(GET|POST|PATCH|DELETE)</span>)'
)
"""The heading of an operation, which is followed by its method and path."""

_SECTION_OR_ARGUMENT = re.compile(
    r'<section id="([^"]+)">|<li><p>(?=<strong><code[^>]*><span class="pre">\**(\w+)</span></code></strong>)'
)
_GROUP = re.compile(r'<p class="caption"([^>]*)>(.*?)</p>(.*?)(?=<p class="caption"|\Z)', re.DOTALL)
_ALWAYS_OPEN = "Look it up"


def with_anchors(body: str) -> str:
    """Return the HTML of a page of the reference, in which each argument has an anchor and a link to it."""
    section, seen = "", set()

    def complete(found: re.Match[str]) -> str:
        nonlocal section
        section = found[1] or section
        name = f"{section}-{(found[2] or '').replace('_', '-')}"
        if found[1] or name in seen:
            return found[0]
        seen.add(name)
        return f'<li id="{name}"><p><a class="to-argument" href="#{name}" aria-label="Link to {found[2]}"></a>'

    return _SECTION_OR_ARGUMENT.sub(complete, _METHOD.sub(r'<h2><span class="method \1">\1</span> ', body))


def with_groups(navigation: str, *, is_first_page: bool) -> str:
    """Return the HTML of the navigation, in which the groups that the reader does not need now are closed."""

    def group(found: re.Match[str]) -> str:
        attributes, caption, entries = found.groups()
        is_open = "current" in entries or _ALWAYS_OPEN in caption or (is_first_page and found.start() == 0)
        opened = f'<details{" open" * is_open}><summary class="caption"{attributes}>'
        return f"{opened}{caption}</summary>{entries}</details>"

    return _GROUP.sub(group, navigation)
