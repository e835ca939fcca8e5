"""Generates the reference of operations, results and inputs from the declarations, whenever Sphinx runs.

Types are taken from the source, because the names of aliases (``DoctorId``) are lost at run time.
"""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, is_typeddict

from sphinx.ext.napoleon import Config, GoogleDocstring

import followup
from followup import _annotations, inbound
from followup._annotations import IdPrefix
from followup._declarations import Declaration
from followup._model import Model
from followup._operations import Resource, declarations_of, group_name
from followup.resources import all_groups

FOLDER = Path(__file__).parent / "reference"

_ARGUMENTS = Config(napoleon_use_rtype=False)
_ATTRIBUTES = Config(napoleon_use_ivar=True, napoleon_custom_sections=[("Keys", "attributes")])

OPERATIONS = """\
# Operations

These are the methods of `FollowUp`. `AsyncFollowUp` has the same methods; they are awaited, and lists can also be
iterated over with `async for`. `events.send_all` is not awaited, but iterated over with `async for`. The id in the path
is a positional argument; all other arguments are keyword-only. An omitted argument is not sent.

Every operation can raise the [errors of a call](sdk.md#errors): an `APIStatusError` for an error response, an
`APIConnectionError` if there was no response, and a `ResponseDecodeError` for a response that does not match the
contract. An invalid argument raises a `ValueError` or `TypeError` that names it. Additional errors are listed below.
"""

INBOUND = """\
# Inbound events

The functions of `followup.inbound` build inbound events, one function for each type (specification, section 6.1). The
arguments are those of the operation, where there is one, in snake_case, and are checked alike. An optional argument
that is None is omitted. Send the events with `client.events.create` or `client.events.send_all`.

"""

OBJECTS = """\
# Results and inputs

Import these classes from `followup`. The names of ids and enumerations are type aliases, which `followup`
does not export.

"""

RESULTS = """\
## Results

Besides its fields, every result has `last_response` (status, headers and request id of the response) and `extra`
(fields that this version does not know, by the names that the API uses). Two methods export it, with its personal data:
`to_dict()` returns a dict with snake_case keys and Python values, and `to_json()` JSON text with the names of the API.
`repr` shows no personal data, except within [`show_personal_data()`](sdk.md#display).
"""

INPUTS = """\
## Inputs

Inputs are plain dicts with these keys. All keys are optional, except those of an event that are marked.
"""

ENUMERATIONS = """\
## Ids and enumerations

Every type of id has its own prefix. An enumeration value that this version does not know is returned as a plain string.

| name | value |
|---|---|
"""


def write() -> None:
    """Write operations.md, inbound.md and objects.md."""
    sections = [_group(each) for each in all_groups()]
    (FOLDER / "operations.md").write_text("\n".join([OPERATIONS, *sections]), encoding="utf-8")
    # In the order of the module, which is that of the specification.
    builders = [_builder(name) for name in vars(inbound) if name in inbound.__all__]
    (FOLDER / "inbound.md").write_text("\n".join([INBOUND, *builders]), encoding="utf-8")
    results = [_data_class(each) for each in _public(lambda value: issubclass(value, Model))]
    inputs = [_data_class(each) for each in _public(is_typeddict)]
    pages = [OBJECTS, RESULTS, *results, INPUTS, *inputs, ENUMERATIONS + "\n".join(_enumerations())]
    (FOLDER / "objects.md").write_text("\n".join(pages) + "\n", encoding="utf-8")


def _group(group: type[Resource]) -> str:
    name = group_name(group)
    operations = [_operation(name, each) for each in declarations_of(group).values()]
    others = [_method(name, each) for each in vars(group).values() if inspect.isfunction(each)]
    return "\n".join([f"## {name}", "", inspect.getdoc(group) or "", "", *operations, *others])


def _operation(group: str, declaration: Declaration) -> str:
    name = f"FollowUp.{group}.{declaration.method_name}"
    return _function("method", name, declaration.declared, _complete_docstring(declaration))


def _method(group: str, method: Callable[..., Any]) -> str:
    """Return the entry of a method that is no operation."""
    return _function("method", f"FollowUp.{group}.{method.__name__}", method, inspect.getdoc(method) or "")


def _builder(name: str) -> str:
    declared = inspect.unwrap(getattr(inbound, name))
    heading = f"## {name.replace('_', '.')}\n\n"
    return heading + _function("function", f"inbound.{name}", declared, inspect.getdoc(declared) or "")


def _function(directive: str, name: str, declared: Callable[..., Any], docstring: str) -> str:
    """Return the entry of a function, with its signature as a user would write it."""
    function = _source(declared).body[0]
    assert isinstance(function, ast.FunctionDef)
    arguments = function.args
    arguments.posonlyargs = [each for each in arguments.posonlyargs if each.arg != "self"]
    arguments.args = [each for each in arguments.args if each.arg != "self"]
    for each in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        if each.annotation is not None:
            each.annotation = _type(declared, each.annotation)
    returns = ast.unparse(function.returns) if function.returns else "None"
    text = str(GoogleDocstring(docstring, _ARGUMENTS))
    if ":returns:" not in text:
        text = f"{text.rstrip()}\n\n:returns: :py:class:`{returns.partition('[')[0]}`\n"
    return _rst(f".. py:{directive}:: {name}({ast.unparse(arguments)}) -> {returns}", text)


def _complete_docstring(declaration: Declaration) -> str:
    """Return the docstring of an operation, with the id in the path among its arguments."""
    text = inspect.getdoc(declaration.declared) or ""
    if declaration.id_prefix is None or "id" in declaration.meanings:
        return text
    kind = declaration.id_prefix
    line = f"    id: id of the {kind.object.replace('_', ' ')}, begins with ``{kind.prefix}``."
    if "\nArgs:\n" in text:
        return text.replace("\nArgs:\n", f"\nArgs:\n{line}\n", 1)
    return f"{text}\n\nArgs:\n{line}\n"


class _PublicNames(ast.NodeTransformer):
    """Simplifies annotations for readers: ``NonEmpty | NotGiven`` becomes ``str``."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self._names.get(node.id)
        if get_origin(value) is not Annotated or any(isinstance(each, IdPrefix) for each in value.__metadata__):
            return node
        inner = get_args(value)[0]
        text = inner.__name__ if isinstance(inner, type) else _without_modules(str(inner))
        return ast.parse(text, mode="eval").body

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if ast.unparse(node.value) == "Annotated" and isinstance(node.slice, ast.Tuple):
            return self.visit(node.slice.elts[0])
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        if ast.unparse(node.right) == "NotGiven":
            return self.visit(node.left)
        return self.generic_visit(node)


def _without_modules(text: str) -> str:
    """Remove the modules of names: ``collections.abc.Iterable`` becomes ``Iterable``. Strings stay as they are."""
    return re.sub(r"('[^']*')|[\w.]+\.(\w+)", lambda found: found[1] or found[2], text)


def _type(declared: Any, annotation: ast.expr) -> ast.expr:
    """Return the annotation as a user would write it."""
    return _PublicNames(vars(sys.modules[declared.__module__])).visit(annotation)


def _public(accepts: Callable[[type[Any]], bool]) -> list[type[Any]]:
    values = (getattr(followup, name) for name in followup.__all__)
    return [value for value in values if isinstance(value, type) and accepts(value)]


def _data_class(cls: type[Any]) -> str:
    parsed = str(GoogleDocstring(inspect.getdoc(cls) or "", _ATTRIBUTES))
    text, *described = parsed.split(":ivar ")
    pairs = (each.partition(":") for each in described)
    meanings = {name.strip(): " ".join(meaning.partition(":vartype")[0].split()) for name, _, meaning in pairs}
    rows = [f"* **{name}** (``{kind}``){_suffix(meanings.get(name))}" for name, kind in _fields(cls)]
    return _rst(f".. py:class:: {cls.__name__}", "\n".join([text.strip(), "", *rows]))


def _suffix(meaning: str | None) -> str:
    return f" – {meaning}" if meaning else ""


def _fields(cls: type[Any]) -> Iterator[tuple[str, str]]:
    definition = _source(cls).body[0]
    assert isinstance(definition, ast.ClassDef)
    for each in definition.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            yield each.target.id, ast.unparse(_type(cls, each.annotation))


def _enumerations() -> Iterator[str]:
    for group in all_groups():
        for name, value in vars(sys.modules[group.__module__]).items():
            if get_origin(value) is Literal and not name.startswith("_"):
                yield f"| `{name}` | {', '.join(f'`{each}`' for each in get_args(value))} |"
    for name, value in vars(_annotations).items():
        for each in getattr(value, "__metadata__", ()):
            if isinstance(each, IdPrefix):
                yield f"| `{name}` | begins with `{each.prefix}` |"


def _source(declared: Any) -> ast.Module:
    return ast.parse(textwrap.dedent(inspect.getsource(declared)))


def _rst(directive: str, text: str) -> str:
    body = textwrap.indent(text.rstrip(), "   ")
    return f"```{{eval-rst}}\n.. py:currentmodule:: followup\n\n{directive}\n\n{body}\n```\n"
