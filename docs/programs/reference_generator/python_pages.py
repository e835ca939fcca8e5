"""The pages about the classes and functions of both packages, other than operations."""

from collections.abc import Iterator
from typing import Any

from followup.resources.groups import AsyncGroups, SyncGroups
from followup_mockserver.control import Control

from .entries import PythonNames, class_section, function_text, members_of
from .markdown import contents, page, section
from .python_page_list import CLIENT, MOCK, PAGES, Entry

_INDEX = """\
`followup` exports the client and everything that it returns, takes and raises. Outbox, inbox and imports have modules
of their own, and need extras. The classes of the mock are under [Mock server](mock/index.md).

| page | contents |
|---|---|
| [Clients](client.md) | `FollowUp` and `AsyncFollowUp`: options, closing, other options for some calls |
| [Results](results.md) | the classes that operations return, with every field |
| [Inputs](inputs.md) | the dicts that operations take |
| [Pages of lists](lists.md) | `Page`, `AsyncPage`, and the response behind a result |
| [Error classes](error_classes.md) | the tree of exceptions; [Errors](errors.md) says when each is raised |
| [Webhooks](webhooks.md) | `verify_signature`, `construct_event`, `WebhookEvent`; `followup.fastapi` |
| [Outbox](outbox.md) | `followup.outbox`: record events in your own transaction |
| [Inbox](inbox.md) | `followup.inbox`: store webhooks, and handle each once |
| [Imports](imports.md) | `followup.imports`: files of a clinic, and the codes of doubts |
"""

_IN_INDEX = ("client", "results", "inputs", "lists", "webhooks", "outbox", "inbox", "imports")


def pages() -> Iterator[tuple[str, str]]:
    """Iterate over the pages: the path of each without its suffix, and its text."""
    yield "python", page("Python classes and functions", _INDEX, contents(_IN_INDEX))
    described = {entry.described for each in PAGES for entry in each.entries}
    if lacking := [each.__name__ for each in _DESCRIBED_ELSEWHERE[: -len(_GROUPS)] if each not in described]:
        raise AssertionError(f"no page describes {', '.join(lacking)}")
    for each in PAGES:
        sections = [_section(entry, each.path) for entry in each.entries]
        yield each.path, page(each.title, each.introduction, *sections, each.more())


def _section(entry: Entry, source: str) -> str:
    if not isinstance(entry.described, type):
        return section(2, entry.title, function_text(entry.title, entry.described, source))
    return class_section(
        entry.described, entry.title, source, owner=entry.owner, constructor=entry.constructor, members=_members(entry)
    )


def _members(entry: Entry) -> list[tuple[str, Any]]:
    """Return the members that the section of a class describes; pages of their own describe the others."""
    if not entry.members:
        return []
    bases = [each for each in _DESCRIBED_ELSEWHERE if each is not entry.described and issubclass(entry.described, each)]
    elsewhere = {name for base in bases for name in vars(base)}
    return [(name, value) for name, value in members_of(entry.described) if name not in elsewhere]


_GROUPS = (SyncGroups, AsyncGroups)
_DESCRIBED_ELSEWHERE = (*Control.__mro__[1:-1], *_GROUPS)


def python_names() -> PythonNames:
    """Iterate over the classes, methods and functions of the pages that users import."""
    yield CLIENT.path, "NOT_GIVEN", "followup.NOT_GIVEN", "data"
    for each in PAGES:
        for entry in each.entries:
            if entry.package:
                kind = "class" if isinstance(entry.described, type) else "function"
                yield each.path, entry.title, f"{entry.package}.{entry.title}", kind
            for name, _ in _members(entry) if isinstance(entry.described, type) else ():
                yield each.path, f"{entry.owner}.{name}", f"{entry.package or MOCK}.{entry.owner}.{name}", "method"


def homes() -> Iterator[tuple[str, str]]:
    """Iterate over the classes: name and page."""
    for each in PAGES:
        for entry in each.entries:
            if entry.title == getattr(entry.described, "__name__", ""):
                yield entry.title, each.path
