"""Entries of functions and classes: signature, arguments, result and errors, from annotations and docstrings."""

import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from .docstrings import Docstring, docstring_of
from .markdown import block, bullets, link, section, table
from .signatures import Signature, fields_of, signature_of

HOMES: dict[str, list[str]] = defaultdict(list)
"""The pages that describe a class or type of a name, by this name; outbox and inbox have classes of the same names."""

_TITLES = {"EventType": "Inbound events", "OutboundEventType": "Outbound events", "EnabledEvent": "Outbound events"}
"""The title of the section of a type, where it is not the name of the type."""

VALUES: dict[str, tuple[str, ...]] = {}
"""The values of each enumeration, by the name of its type alias."""

_MOST_VALUES = 7
"""The number of values that the description of an argument lists; for more, it has a link."""

_SELF_EVIDENT = {"NOT_GIVEN", "None"}
"""Defaults that the type or the description explains."""


def link_to(name: str, source: str) -> str | None:
    """Return a link to the entry of a class; None if it has none.

    Args:
        name: the name of the class.
        source: the page with the link.
    """
    return _link(name, name, source) if name in HOMES else None


def _link(shown: str, name: str, source: str) -> str:
    pages = HOMES[name]
    return link(f"`{shown}`", source if source in pages else pages[0], _TITLES.get(name, name), source=source)


def function_text(
    shown: str,
    function: Callable[..., Any],
    source: str,
    *,
    owner: type[Any] | None = None,
    request: str = "",
    access: Mapping[str, str] | None = None,
    errors: tuple[str, ...] = (),
) -> str:
    """Return the text of the entry of a function.

    Args:
        shown: the name to call it by.
        function: the function.
        source: the page of the entry.
        owner: the class whose method it is.
        request: the method and the path of the request that it makes.
        access: what the request needs, by the titles of a table.
        errors: further items of the list of errors.
    """
    text, signature = docstring_of(function), signature_of(function, owner)
    awaited = "await " if inspect.iscoroutinefunction(function) else ""
    needed = ""
    if access:
        rules = f"specification, {text.specification}"
        needed, text = table([*access, "Rules"], [[*access.values(), rules]]), text.without_specification
    return _paragraphs(
        request,
        text.summary,
        text.details,
        needed,
        block("py", awaited + signature.code(shown)),
        _listed("Arguments", _arguments(signature, text, source)),
        _returns(signature, text, source),
        _listed("Errors", [*_errors(text, source), *errors]),
        _listed("Warnings", [f"`{name}`: {condition}" for name, condition in text.warns]),
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
    described = [_member(f"{owner}.{name}", value, source, cls) for name, value in members]
    return section(
        2,
        title,
        docstring_of(cls).text,
        _constructor(cls, title, source) if constructor else "",
        fields_text(cls, source, titled=constructor or bool(described)),
        *described,
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


def fields_text(cls: type[Any], source: str, *, titled: bool) -> str:
    """Return the list of the annotated attributes or keys of a class, with their types.

    Args:
        cls: the class.
        source: the page of the list.
        titled: whether the list needs a title, because the class has more than attributes.
    """
    bases = [each for each in cls.__mro__[1:] if each.__name__ == f"_{cls.__name__.removeprefix('Async')}"]
    meanings = {name: text for each in (*bases, cls) for name, text in docstring_of(each).items.items()}
    # The errors name ``followup`` as their module, where their source is not.
    is_error = issubclass(cls, Exception)
    kinds = {} if is_error else dict(fields_of(cls))
    names = [*kinds, *(each for each in meanings if each not in kinds)]
    if _takes_arguments(cls) and not is_error:
        names = [each for each in names if each not in inspect.signature(cls.__init__).parameters]
    return _listed(
        "Attributes" if titled else "",
        [_item(each, kinds.get(each, ""), meanings.get(each, ""), source) for each in names],
    )


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
        shown, links = _type(kind, source)
        return section(3, title, docstring_of(value).text, f"**Type** {shown}. {links}".strip())
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
    shown, links = _type(kind, source)
    described = ", ".join(part for part in (shown, details) if part)
    meaning = " ".join(part for part in (meaning, _values(kind, meaning), links) if part)
    return "".join([f"**`{name}`**", f" ({described})" if described else "", f": {meaning}" if meaning else ""])


def _type(annotation: str, source: str) -> tuple[str, str]:
    """Return a type, which is a link if it contains one class; and a sentence with links if it contains several."""
    words = re.findall(r"(?<![\w.])\w+(?![\w.])", annotation)  # not Event in threading.Event
    names = [name for name in dict.fromkeys(words) if name in HOMES]
    if len(names) == 1:
        return _link(annotation, names[0], source), ""
    links = ", ".join(link_to(name, source) or "" for name in names)
    return f"`{annotation}`" if annotation else "", f"See {links}." if links else ""


def _values(annotation: str, meaning: str) -> str:
    """Return a sentence with the values of the enumerations in a type, unless the description names them."""
    values = [each for name in re.findall(r"\w+", annotation) for each in VALUES.get(name, ())]
    if not values or all(each in meaning for each in values) or len(values) > _MOST_VALUES:
        return ""
    return f"{'One' if meaning else 'one'} of {', '.join(f'`{each}`' for each in values)}."


def _returns(signature: Signature, text: Docstring, source: str) -> str:
    shown, links = _type(signature.returns, source)
    if not text.returns:
        return f"**Returns** {shown}." if "](" in shown else ""
    meaning = " ".join(text.returns.split())
    return " ".join(part for part in (f"**Returns** {shown}: {meaning}", links) if part)


def _errors(text: Docstring, source: str) -> list[str]:
    return [
        f"{', '.join(link_to(each, source) or f'`{each}`' for each in names.split(', '))}: {condition}"
        for names, condition in text.raises
    ]


def _listed(title: str, items: list[str]) -> str:
    return _paragraphs(f"**{title}**" if title else "", bullets(items)) if items else ""


def _paragraphs(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


PythonNames = Iterator[tuple[str, str, str, str]]
"""Python objects of the pages: page, title of the section, full name and kind."""
