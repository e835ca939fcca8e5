"""The pages of the operations: one for each group, and an index."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from followup._core.declarations import Declaration
from followup._core.operations import Resource, declarations_of, group_name
from followup.resources import all_groups
from followup_mockserver.gateway.operations import FOLLOW_UP, OPERATIONS, Operation

from .docstrings import docstring_of
from .entries import PythonNames, function_text
from .markdown import block, contents, division, folded, link, page, section, table, tabs
from .operation_examples import EXAMPLES, OBJECTS, asynchronous
from .traffic import Examples

FOLDER = "operations"

_INTRODUCTION = """\
These are the methods of [`FollowUp`](../client.md). `AsyncFollowUp` has the same methods; they are awaited, and lists
can also be iterated over with `async for`. The id in the path is a positional argument; all other arguments are
keyword-only. An omitted argument is not sent.

Every operation can raise the [errors of a call](../errors.md). An invalid argument raises a `ValueError` or `TypeError`
that names it, before anything is sent. Each request carries the API key, the version and, if it is a POST, an
idempotency key.

Operations that only read need the scope `read` of their resource, such as `patients:read`; all others need `write`.
Endpoints and deliveries share the resource `webhooks`, and `account.retrieve` needs no scope. Where an operation names
a service line, the organization needs it, too.
"""

_CLIENT = """\
from followup import FollowUp{other}

client = FollowUp()  # close it in the end, or use it in a with block
"""

_BEGINNING = "The asynchronous examples stand in a coroutine. All begin with:"


def pages() -> Iterator[tuple[str, str]]:
    """Iterate over the pages: the path of each without its suffix, and its text."""
    yield f"{FOLDER}/index", _index()
    for group in all_groups():
        yield _page_of(group_name(group)), _group(group)


def _page_of(group: str) -> str:
    return f"{FOLDER}/{group}"


def _index() -> str:
    source = f"{FOLDER}/index"
    rows = []
    for operation in OPERATIONS.values():
        text = docstring_of(operation.declaration.declared).without_specification
        rows.append((*_row(operation, source), text.summary))
    return page(
        "Operations",
        _INTRODUCTION,
        table(["Operation", "Request", "Description"], rows),
        contents(group_name(each) for each in all_groups()),
    )


def _row(operation: Operation, source: str) -> tuple[str, str]:
    name = operation.declaration.name
    linked = link(f"`{name}`", _page_of(operation.group), name, source=source)
    return linked, f"`{operation.method} {operation.path}`"


def _group(group: type[Resource]) -> str:
    name = group_name(group)
    examples, awaited = Examples(), Examples(asynchronous=True)
    first = _first_block(name)
    examples.run(first, name)
    awaited.run(asynchronous(first), name)
    declared = declarations_of(group).values()
    operations = [_operation(each, examples, awaited) for each in declared]
    others = [_method(name, each, awaited) for each in vars(group).values() if inspect.isfunction(each)]
    rows = [_row(OPERATIONS[each.name], _page_of(name)) for each in declared]
    contents = table(["Operation", "Request"], rows)
    return page(name, inspect.getdoc(group) or "", contents, _BEGINNING, _example(first), *operations, *others)


def _first_block(group: str) -> str:
    code = OBJECTS.get(group, "") + "".join(each for name, each in EXAMPLES.items() if name.startswith(f"{group}."))
    standard = [name for name in ("UTC", "datetime", "timedelta") if name in code]
    imports = f"from datetime import {', '.join(standard)}\n\n" if standard else ""
    other = ", inbound" if "inbound." in code else ""
    return imports + _CLIENT.format(other=other) + OBJECTS.get(group, "").rstrip()


def _example(code: str) -> str:
    """Return code for both clients; a test runs the blocks of the kind ``python``."""
    return tabs({"Sync": block("python", code), "Async": block("py", asynchronous(code))})


def _operation(declaration: Declaration, examples: Examples, awaited: Examples) -> str:
    name = declaration.name
    operation = OPERATIONS[name]
    examples.run(EXAMPLES[name].lstrip(), name)
    awaited.run(asynchronous(EXAMPLES[name].lstrip()), name)
    request, response = examples.last_call(name)
    source = _page_of(operation.group)
    text = function_text(
        f"client.{name}",
        declaration.declared,
        source,
        request=f"`{operation.method} {operation.path}`",
        access=_access(operation),
        errors=(f"Those of {link('every call', 'errors', 'Statuses', source=source)}.",),
    )
    shown = ("**Example**", _example(EXAMPLES[name]), "**Response**", response, folded("Request", request))
    return section(2, name, division("text", text), division("beside", *shown))


def _access(operation: Operation) -> dict[str, str]:
    """Return what a request of the operation needs, by the titles of a table."""
    return {
        "Scope": f"`{operation.row.scope}`" if operation.row.scope else "any key",
        "Service line": f"`{FOLLOW_UP}`" if operation.row.line else "any",
        "Idempotency key": "yes" if operation.declaration.idempotent else "no",
    }


def _method(group: str, method: Callable[..., Any], awaited: Examples) -> str:
    """Return the section of a method that is no operation, but makes calls of one."""
    name = f"{group}.{method.__name__}"
    awaited.run(asynchronous(EXAMPLES[name].lstrip()), name)
    text = function_text(f"client.{name}", method, _page_of(group))
    return section(2, name, division("text", text), division("beside", "**Example**", _example(EXAMPLES[name])))


def python_names() -> PythonNames:
    """Iterate over the operations, and the methods that make calls of one."""
    for group in all_groups():
        name = group_name(group)
        methods = [f"{name}.{each}" for each, value in vars(group).items() if inspect.isfunction(value)]
        for operation in [*declarations_of(group), *methods]:
            yield _page_of(name), operation, f"followup.FollowUp.{operation}", "method"
