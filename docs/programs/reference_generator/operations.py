"""The pages of the operations: one for each group, and an index."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from followup._core.declarations.declarations import Declaration
from followup._core.declarations.operations import Resource, declarations_of, group_name
from followup.resources import all_groups
from followup_mockserver.gateway.contract.openapi import document
from followup_mockserver.gateway.contract.operations import FOLLOW_UP, OPERATIONS, Operation

from .docstrings import docstring_of
from .entries import PythonNames, function_text
from .markdown import block, contents, folded, link, page, section, table
from .operation_examples import EXAMPLES, OBJECTS
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
    for name, operation in OPERATIONS.items():
        rows.append(
            (
                link(f"`{name}`", _page_of(operation.group), name, source=source),
                f"`{operation.method} {operation.path}`",
                docstring_of(operation.declaration.declared).without_specification.summary,
            )
        )
    return page(
        "Operations",
        _INTRODUCTION,
        table(["Operation", "Request", "Description"], rows),
        contents(group_name(each) for each in all_groups()),
    )


def _group(group: type[Resource]) -> str:
    name = group_name(group)
    examples = Examples()
    first = _first_block(name)
    examples.run(first, name)
    operations = [_operation(each, examples) for each in declarations_of(group).values()]
    others = [_method(name, each) for each in vars(group).values() if inspect.isfunction(each)]
    introduction = f"{inspect.getdoc(group)} The examples on this page begin with:"
    return page(name, introduction, block("python", first), *operations, *others)


def _first_block(group: str) -> str:
    code = OBJECTS.get(group, "") + "".join(each for name, each in EXAMPLES.items() if name.startswith(f"{group}."))
    standard = [name for name in ("UTC", "datetime", "timedelta") if name in code]
    imports = f"from datetime import {', '.join(standard)}\n\n" if standard else ""
    other = ", inbound" if "inbound." in code else ""
    return imports + _CLIENT.format(other=other) + OBJECTS.get(group, "").rstrip()


def _operation(declaration: Declaration, examples: Examples) -> str:
    name = declaration.name
    operation = OPERATIONS[name]
    examples.run(EXAMPLES[name].lstrip(), name)
    request, response = examples.last_call(name)
    source = _page_of(operation.group)
    text = function_text(
        f"client.{name}",
        declaration.declared,
        source,
        access=_access(operation),
        example=EXAMPLES[name],
        errors=(_statuses(operation, source),),
    )
    return section(2, name, text, folded("Request and response", request, response))


def _access(operation: Operation) -> dict[str, str]:
    """Return what a request of the operation needs, by the titles of a table."""
    return {
        "Request": f"`{operation.method} {operation.path}`",
        "Scope": f"`{operation.row.scope}`" if operation.row.scope else "any key",
        "Service line": f"`{FOLLOW_UP}`" if operation.row.line else "any",
        "Idempotency key": "yes" if operation.declaration.idempotent else "no",
    }


def _method(group: str, method: Callable[..., Any]) -> str:
    """Return the section of a method that is no operation, but makes calls of one."""
    name = f"{group}.{method.__name__}"
    return section(2, name, function_text(f"client.{name}", method, _page_of(group), example=EXAMPLES[name]))


def _statuses(operation: Operation, source: str) -> str:
    responses = document()["paths"][operation.path][operation.method.lower()]["responses"]
    statuses = ", ".join(each for each in responses if each != "200")
    return f"Statuses {statuses}: see {link('errors', 'errors', 'Statuses', source=source)}."


def python_names() -> PythonNames:
    """Iterate over the operations, and the methods that make calls of one."""
    for group in all_groups():
        name = group_name(group)
        methods = [f"{name}.{each}" for each, value in vars(group).items() if inspect.isfunction(value)]
        for operation in [*declarations_of(group), *methods]:
            yield _page_of(name), operation, f"followup.FollowUp.{operation}", "method"
