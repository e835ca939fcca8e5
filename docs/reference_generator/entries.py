"""Entries of functions and classes: signature, arguments, result and errors, from annotations and docstrings."""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .docstrings import Docstring, docstring_of
from .markdown import block, bullets, link, section
from .signatures import Signature, fields_of, signature_of

HOMES: dict[str, str] = {}
"""The page of each public class, by its name; the section of the class has the name as its title."""

_SELF_EVIDENT = {"NOT_GIVEN", "None"}
"""Defaults that the type or the description explains."""


def link_to(name: str, source: str) -> str | None:
    """Return a link to the entry of a class; None if it has none.

    Args:
        name: the name of the class.
        source: the page with the link.
    """
    return link(f"`{name}`", HOMES[name], name, source=source) if name in HOMES else None


def function_text(
    shown: str,
    function: Callable[..., Any],
    source: str,
    *,
    owner: type[Any] | None = None,
    access: str = "",
    errors: tuple[str, ...] = (),
) -> str:
    """Return the text of the entry of a function.

    Args:
        shown: the name to call it by.
        function: the function.
        source: the page of the entry.
        owner: the class whose method it is.
        access: a line about the request that it makes.
        errors: further items of the list of errors.
    """
    text, signature = docstring_of(function), signature_of(function, owner)
    awaited = "await " if inspect.iscoroutinefunction(function) else ""
    return _paragraphs(
        text.summary,
        access,
        text.details,
        block("py", awaited + signature.code(shown)),
        _listed("Arguments", _arguments(signature, text, source)),
        _returns(signature, text, source),
        _listed("Errors", [*_errors(text, source), *errors]),
    )


def class_section(
    cls: type[Any],
    title: str,
    source: str,
    *,
    owner: str = "",
    constructor: bool = False,
    members: Iterable[tuple[str, Any]] = (),
) -> str:
    """Return the section of a class, with its methods in sections below it.

    Args:
        cls: the class.
        title: the title of the section.
        source: the page of the section.
        owner: the name before that of each method.
        constructor: whether users call the constructor.
        members: the names of methods and properties, and these.
    """
    return section(
        2,
        title,
        docstring_of(cls).text,
        _constructor(cls, title, source) if constructor else "",
        fields_text(cls, source),
        *(_member(f"{owner}.{name}", value, source, cls) for name, value in members),
    )


def members_of(cls: type[Any]) -> Iterator[tuple[str, Any]]:
    """Iterate over the public methods and properties of a class and its private bases, the most basic class last."""
    seen = set()
    for base in cls.__mro__:
        if not base.__module__.startswith("followup"):
            continue
        for name, value in vars(base).items():
            is_described = isinstance(value, property | classmethod) or inspect.isfunction(value)
            if is_described and not name.startswith("_") and name not in seen:
                seen.add(name)
                yield name, value


def fields_text(cls: type[Any], source: str) -> str:
    """Return the list of the annotated attributes or keys of a class, with their types."""
    bases = [each for each in cls.__mro__[1:] if each.__name__ == f"_{cls.__name__.removeprefix('Async')}"]
    meanings = {name: text for each in (*bases, cls) for name, text in docstring_of(each).items.items()}
    # The errors name ``followup`` as their module, where their source is not.
    is_error = issubclass(cls, Exception)
    kinds = {} if is_error else dict(fields_of(cls))
    names = [*kinds, *(each for each in meanings if each not in kinds)]
    if _takes_arguments(cls) and not is_error:
        names = [each for each in names if each not in inspect.signature(cls.__init__).parameters]
    title = "Keys" if hasattr(cls, "__required_keys__") else "Attributes"
    return _listed(title, [_item(each, kinds.get(each, ""), meanings.get(each, ""), source) for each in names])


def _takes_arguments(cls: type[Any]) -> bool:
    return inspect.isfunction(vars(cls).get("__init__")) and not hasattr(cls, "__attrs_attrs__")


def _constructor(cls: type[Any], name: str, source: str) -> str:
    init = next(vars(base)["__init__"] for base in cls.__mro__ if "__init__" in vars(base))
    signature = signature_of(init, cls)
    text = docstring_of(init) if init.__doc__ else docstring_of(cls)
    return _paragraphs(
        block("py", signature.code(name, returns=False)),
        _listed("Arguments", _arguments(signature, text, source)),
        _listed("Errors", _errors(docstring_of(init), source)),
    )


def _member(title: str, value: Any, source: str, cls: type[Any]) -> str:
    if isinstance(value, property):
        kind = signature_of(value.fget).returns  # type: ignore[arg-type]
        return section(3, title, docstring_of(value).text, f"**Type** `{kind}`.{_see(kind, source)}")
    function = value.__func__ if isinstance(value, classmethod) else value
    return section(3, title, function_text(title, function, source, owner=cls))


def _arguments(signature: Signature, text: Docstring, source: str) -> list[str]:
    lines = []
    for each in signature.parameters:
        details = "required" if each.default is None else ""
        if each.default is not None and each.default not in _SELF_EVIDENT:
            details = f"default `{each.default}`"
        meaning = text.items.get(each.name.lstrip("*"), "")
        lines.append(_item(each.name, each.type, meaning, source, "" if each.name.startswith("*") else details))
    return lines


def _item(name: str, kind: str, meaning: str, source: str, details: str = "") -> str:
    described = ", ".join(part for part in (f"`{kind}`" if kind else "", details) if part)
    parts = [f"**`{name}`**", f" ({described})" if described else "", f": {meaning}" if meaning else ""]
    return "".join(parts) + _see(kind, source)


def _see(annotation: str, source: str) -> str:
    """Return a sentence with links to the classes in a type."""
    names = dict.fromkeys(re.findall(r"\w+", annotation))
    found = [linked for name in names if (linked := link_to(name, source))]
    return f" See {', '.join(found)}." if found else ""


def _returns(signature: Signature, text: Docstring, source: str) -> str:
    if not text.returns:
        return ""
    meaning = " ".join(text.returns.split())
    linked = link_to(signature.returns, source)
    if linked:
        return f"**Returns** {linked}: {meaning}"
    return f"**Returns** `{signature.returns}`: {meaning}{_see(signature.returns, source)}"


def _errors(text: Docstring, source: str) -> list[str]:
    return [
        f"{', '.join(link_to(each, source) or f'`{each}`' for each in names.split(', '))}: {condition}"
        for names, condition in text.raises
    ]


def _listed(title: str, items: list[str]) -> str:
    return _paragraphs(f"**{title}**", bullets(items)) if items else ""


def _paragraphs(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


PythonNames = Iterator[tuple[str, str, str, str]]
"""Python objects of the pages: page, title of the section, full name and kind."""
