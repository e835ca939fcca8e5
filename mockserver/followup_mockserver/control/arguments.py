"""Arguments of test controls that the API takes too: checked as the API checks them, in Python as over HTTP."""

import contextlib
import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from followup._for_mockserver import Declaration, Parameter
from followup_mockserver.world.schema.errors import InvalidArgument, ServiceError
from followup_mockserver.world.schema.shapes import shape_of_parameters
from followup_mockserver.world.schema.validation import Shape

F = TypeVar("F", bound=Callable[..., Any])


def arguments_of(names: Mapping[str, Any], *others: str) -> dict[str, Any]:
    """Return the keyword arguments of a method except ``others``.

    Args:
        names: the ``locals()`` of the method, before it assigns names of its own.
        others: arguments that are used in another way.
    """
    return {name: value for name, value in names.items() if name not in ("self", "id", *others)}


def rule_arguments(declaration: Declaration, **arguments: Any) -> dict[str, Any]:
    """Return arguments as a rule takes them: copied, and converted as those of a request.

    None means omitted, except for a required argument.

    Args:
        declaration: the operation of the API that has these arguments.
        arguments: the arguments, as the method of a client takes them.

    Raises:
        TypeError: an argument of the wrong type.
        ValueError: an invalid argument; the message names it.
    """
    parameters = {each.name: each for each in declaration.parameters}
    encoded = {
        parameters[name].wire_name: encoded_argument(parameters[name], value)
        for name, value in arguments.items()
        if value is not None or parameters[name].required
    }
    try:
        checked: dict[str, Any] = _body_of(declaration).argument_of(encoded)
    except ServiceError as error:
        raise _invalid_argument(error) from None
    return checked


def encoded_argument(parameter: Parameter, value: Any) -> Any:
    """Return an argument as the SDK sends it.

    Raises:
        TypeError: an argument of the wrong type.
        InvalidArgument: the SDK rejects the value.
    """
    try:
        return parameter.encode(value, parameter.name)
    except ValueError as error:
        problem = str(error)
    # Both packages write these errors in one form, so the words after the name of the argument can be taken over.
    argument, is_rule, expected = problem.partition(" must be ")
    raise InvalidArgument(argument, expected) if is_rule else InvalidArgument(parameter.name, f"valid: {problem}")


def takes_body_of(declaration: Declaration) -> Callable[[F], F]:
    """Mark a method whose input over HTTP is the body of an operation: null is invalid there, and omitted in Python."""

    def mark(method: F) -> F:
        vars(method)["body_of"] = declaration
        return method

    return mark


@contextlib.contextmanager
def naming_arguments() -> Iterator[None]:
    """Raise the error of a rule about an invalid value as a ``ValueError`` that names the argument."""
    try:
        yield
    except ServiceError as error:
        if error.param is not None and error.code.startswith("parameter_"):
            raise _invalid_argument(error) from None
        raise


def json_object(argument: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a copy of a JSON object.

    Raises:
        InvalidArgument: it contains something that is not JSON.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()  # a lone surrogate passes json.dumps and cannot be encoded as UTF-8
    except (TypeError, ValueError, RecursionError):
        raise InvalidArgument(argument, "an object of JSON values") from None
    decoded: Mapping[str, Any] = json.loads(text)
    return decoded


@functools.cache
def _body_of(declaration: Declaration) -> Shape:
    return shape_of_parameters((each for each in declaration.parameters if each.place == "body"), partial=True)


def _invalid_argument(error: ServiceError) -> InvalidArgument:
    """Return the error of a validator with the name of the argument in Python."""
    argument = re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", error.param or "")
    expected = error.message.removesuffix(".")
    stated = expected.removeprefix("This must be ")
    return InvalidArgument(argument, stated if stated != expected else f"valid: {expected}")
