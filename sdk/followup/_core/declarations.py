"""Reads the declarations of operations, and builds the request of each call from one.

A declaration is a typed function without a body (see ``operations``). Its signature names the parameters, its return
annotation the result, and its docstring describes both. The clients, the commands and the mock server all read it here.
"""

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, Self, TypeVar, get_args, get_origin, overload
from urllib.parse import quote, urlencode

import attrs

from followup._core.api_rules import IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_RULE, IdPrefix
from followup._core.call.pagination import Envelope, Listing, Page
from followup._core.call.steps import Call
from followup._core.codec.decode import decode
from followup._core.codec.encode import LONGEST_ID, Encoder, encoder_for, json_bytes
from followup._core.codec.kinds import NOT_GIVEN, Kinds, annotations_of, camel, kind_of, kinds_in
from followup._core.errors import APIStatusError
from followup._core.results import Model
from followup._core.time import new_uuid

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801 - reads as property does
    """``functools.cached_property`` without its lock, which Python has before 3.12.

    If another thread holds that lock during a fork, it is never released in the child. Without it, two threads may
    compute the value at the same time, which is harmless here.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        value: T = self._compute(instance)
        instance.__dict__[self._name] = value  # shadows this descriptor, which has no __set__
        return value


def _without_citations(text: str) -> str:
    """Return a docstring without what it cites, such as ``(specification, section 4)``, which only developers have."""
    return re.sub(r"\s*\([Ss]pecification,[^)]*\)", "", text)


def description_of(documented: Any) -> str:
    """Return a docstring up to its first section, without citations; its first paragraph is a summary."""
    return _without_citations(re.split(r"\n(?:Args|Returns|Raises):\n", inspect.getdoc(documented) or "")[0]).strip()


def descriptions_in(documented: Any, section: str = "Args") -> dict[str, str]:
    """Return the descriptions in a section of a docstring, each on one line, by the names that they belong to.

    Args:
        documented: a function or class with a docstring in Google style.
        section: the heading of the section.
    """
    _, _, rest = (inspect.getdoc(documented) or "").partition(f"\n{section}:\n")
    found = re.findall(r"^    (\w+): (.+(?:\n {8}.+)*)", rest.partition("\n\n")[0], re.MULTILINE)
    return {name: " ".join(_without_citations(text).split()) for name, text in found}


_NOT_IN_AN_ID = re.compile(r"[\s/\\?#%…\x00-\x1f\x7f\ud800-\udfff]")
_WITHOUT = "without spaces, line breaks, half characters or any of / \\ ? # % …"
_KEY = re.compile(IDEMPOTENCY_KEY)


def checked_path_id(operation: str, kind: IdPrefix, value: Any) -> str:
    """Check the id in a path, and return it quoted. It cannot be more than one segment of the path.

    Raises:
        ValueError: it is not an id of this type; neither the message nor the exception's context contains it.
    """
    if not isinstance(value, str) or not value.startswith(kind.prefix):
        found = "; it is empty" if value == "" else "" if isinstance(value, str) else f", not {kind_of(value)}"
        raise ValueError(f"{operation}: id must be a string that begins with {kind.prefix!r}{found}")
    if len(value) > LONGEST_ID or _NOT_IN_AN_ID.search(value):
        raise ValueError(f"{operation}: id must have at most {LONGEST_ID} characters, {_WITHOUT}")
    return quote(value, safe="")


def checked_key(key: object) -> str:
    """Check an idempotency key, and return it; generate one for None.

    Raises:
        ValueError: it is not a valid key; the message does not contain it.
    """
    if key is None:
        return str(new_uuid())
    # The key is not quoted: some derive it from a document or a phone.
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise ValueError(f"idempotency_key {IDEMPOTENCY_KEY_RULE}")
    return str.__str__(key)


def _query_value(value: Any) -> str:
    # `true` and `false` (section 4, Doctors), and not Python's names.
    return str(value).lower() if isinstance(value, bool) else str(value)


def _event_ids(name: str, body: Any) -> list[str]:
    events = body if isinstance(body, list) else [body]
    if missing := [position for position, each in enumerate(events) if "id" not in each]:
        raise ValueError(f"{name}[{missing[0]}].id is required")
    return [each["id"] for each in events]


_CURSORS = ("starting_after", "ending_before")


@attrs.frozen(eq=False, slots=False, repr=False)
class Parameter:
    """A parameter of an operation, and the part of the request that carries it.

    Attributes:
        kinds: what the values on the wire are. None is one only where it is sent as null, which is in updates; anywhere
            else None means that the argument is omitted.
        place: the part of the request; ``whole_body`` for the parameter that is the body.
    """

    name: str
    wire_name: str
    kinds: Kinds
    place: Literal["path", "query", "body", "whole_body"]
    required: bool

    @lazy
    def encode(self) -> Encoder:
        """The function that checks an argument and returns it as JSON, made when the first argument is passed."""
        return encoder_for(self.kinds)


class Declaration:
    """A declared operation. Its signature and docstring are read when they are first needed.

    Attributes:
        name: name of the operation, such as ``patients.create``; its group sets it.
        batch_error: the error of a batch of which nothing was accepted; None where the operation takes no batch.
        one_of: the parameters of which at least one is needed, with at least one of these keys.
    """

    name: str

    def __init__(
        self,
        method: str,
        path: str,
        declared: Callable[..., Any],
        *,
        batch_error: type[APIStatusError] | None = None,
        one_of: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.method = method
        self.path = path
        self.declared = declared
        self.batch_error = batch_error
        self.one_of: Mapping[str, tuple[str, ...]] = one_of or {}
        self.method_name: str = declared.__name__

    @property
    def idempotent(self) -> bool:
        """Whether the operation takes an idempotency key."""
        return "idempotency_key" in self._signature

    @lazy
    def description(self) -> str:
        """The docstring up to its first section, without citations; its first paragraph is a summary."""
        return description_of(self.declared)

    @lazy
    def meanings(self) -> dict[str, str]:
        """The description of each parameter, from the docstring."""
        return descriptions_in(self.declared)

    @lazy
    def returns(self) -> Any:
        """The annotation of the result: a result class, or ``Page[...]`` of one."""
        return annotations_of(self.declared)["return"]

    @lazy
    def item_type(self) -> type[Model] | None:
        """The class of the items of a list; None for operations that return one object."""
        return get_args(self.returns)[0] if get_origin(self.returns) is Page else None

    @property
    def _sends_null(self) -> bool:
        return self.method == "PATCH"

    @lazy
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters, in the order of the signature, except for the idempotency key."""
        kinds = kinds_in(self.declared)
        return tuple(
            Parameter(
                name=name,
                wire_name=camel(name),
                kinds=kinds[name] if self._sends_null else kinds[name].without_none(),
                place=self._place(parameter),
                required=parameter.default is inspect.Parameter.empty,
            )
            for name, parameter in self._signature.items()
            if name not in ("self", "idempotency_key")
        )

    @lazy
    def id_prefix(self) -> IdPrefix | None:
        """The type of the id in the path; None where the path has none."""
        for parameter in self.parameters:
            if parameter.place == "path":
                return parameter.kinds.mark(IdPrefix)
        return None

    @lazy
    def _returns_its_object(self) -> bool:
        """Whether the result is the object in the path; a ping returns a delivery."""
        if self.id_prefix is None:
            return False
        return kinds_in(self.returns)["id"].mark(IdPrefix) in (self.id_prefix, None)

    @lazy
    def _signature(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.declared).parameters

    @lazy
    def _keyword_parameters(self) -> dict[str, Parameter]:
        return {parameter.name: parameter for parameter in self.parameters if parameter.place != "path"}

    def _place(self, parameter: inspect.Parameter) -> Literal["path", "query", "body", "whole_body"]:
        if f"{{{parameter.name}}}" in self.path:
            return "path"
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            return "whole_body"  # the events of a batch; every other argument has to be named
        return "query" if self.method == "GET" else "body"

    def call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call[Any]:
        """Return the call for these arguments.

        Raises:
            TypeError, ValueError: an argument cannot be sent; the message names it.
        """
        arguments = dict(kwargs)
        path = self.path
        if self.id_prefix is not None:  # the one positional argument; Python has checked that it is there
            path = path.replace("{id}", checked_path_id(self.name, self.id_prefix, args[0]))
        elif args:
            arguments[next(iter(self._keyword_parameters))] = args[0]
        idempotency_key = arguments.pop("idempotency_key", None)
        placed: dict[str, list[tuple[Parameter, Any]]] = {"query": [], "body": [], "whole_body": []}
        for name, value in arguments.items():
            parameter = self._keyword_parameters[name]
            encoded = self._encoded(parameter, value)
            if encoded is not NOT_GIVEN:
                placed[parameter.place].append((parameter, encoded))
        return Call(
            operation=self.name,
            method=self.method,
            path_template=self.path,
            path=path,
            query=urlencode([(each.wire_name, _query_value(value)) for each, value in placed["query"]]),
            content=self._content(placed),
            idempotency_key=checked_key(idempotency_key) if self.idempotent else None,
            decode=self.decode,
            batch_error=self.batch_error,
            when_gone=functools.partial(self._deleted, args[0]) if self.method == "DELETE" else None,
            object_id=args[0] if self._returns_its_object else None,
            event_ids=next((_event_ids(each.name, body) for each, body in placed["whole_body"]), None),
        )

    def listing(self, kwargs: Mapping[str, Any]) -> Listing[Any]:
        """Return the first page of a list with these arguments, without fetching it.

        Raises:
            TypeError, ValueError: as in ``call``, or because both cursors were passed.
        """
        filters = {name: value for name, value in kwargs.items() if name not in _CURSORS}
        cursors = {name: kwargs[name] for name in _CURSORS if kwargs.get(name) not in (None, NOT_GIVEN)}
        if len(cursors) > 1:
            raise ValueError(f"{self.name} takes starting_after or ending_before, not both")
        direction = next(iter(cursors), "starting_after")

        def call_from(cursor: str | None) -> Call[Envelope[Any]]:
            return self.call((), {**filters, direction: cursor})

        return Listing(
            operation=self.name,
            call_from=call_from,
            cursor=cursors.get(direction),
            backwards=direction == "ending_before",
        )

    def decode(self, raw: Any) -> Any:
        """Return the result of the operation from the decoded JSON of a response."""
        envelope: Any = Envelope  # a type checker would take the subscript for an annotation
        return decode(self.returns if self.item_type is None else envelope[self.item_type], raw)

    def _encoded(self, parameter: Parameter, value: Any) -> Any:
        """Return the argument as JSON; NOT_GIVEN if it is omitted."""
        if not parameter.required and (value is NOT_GIVEN or (value is None and not self._sends_null)):
            return NOT_GIVEN
        return None if value is None and self._sends_null else parameter.encode(value, parameter.name)

    def _content(self, placed: Mapping[str, list[tuple[Parameter, Any]]]) -> bytes | None:
        for parameter, value in placed["whole_body"]:
            return json_bytes(value, parameter.name)
        body = {parameter.wire_name: value for parameter, value in placed["body"]}
        # An update without a field is a request too, whose body is `{}`; a ping has no body at all.
        return json_bytes(body, "") if body or self.method == "PATCH" else None

    def _deleted(self, path_id: str) -> Any:
        assert self.id_prefix is not None
        return self.returns(id=path_id, object=self.id_prefix.object, deleted=True)
