"""Decodes JSON from outside: RFC 8259 without the extensions of Python, of a limited depth."""

import json
import math
from typing import Any, NoReturn

from followup_mockserver.schema.errors import invalid


def decoded_json(text: bytes, max_depth: int) -> Any:
    """Return the JSON value of a text.

    Args:
        text: the text, in UTF-8.
        max_depth: levels of nesting that it may have.

    Raises:
        ServiceError: 400: it is not valid JSON.
    """
    try:
        decoded = text.decode()
        value = _DECODER.decode(decoded)
        if "\\u" in decoded:
            # JSON allows an escaped lone surrogate, but it cannot be encoded as UTF-8 in a response.
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        raise invalid("body_invalid", "The body must be UTF-8.") from None
    except UnicodeEncodeError:
        raise invalid("body_invalid", "The body holds a lone surrogate, such as \\ud800.") from None
    except RecursionError:
        raise invalid("body_invalid", "The body is nested too deeply.") from None
    except json.JSONDecodeError:
        raise invalid("body_invalid", "The body must be JSON.") from None
    except ValueError:  # also an integer with more digits than Python converts
        raise invalid("body_invalid", "The body holds a number that is too large.") from None
    if _deeper_than(value, max_depth):
        raise invalid("body_invalid", "The body is nested too deeply.")
    return value


def _reject_constant(constant: str) -> NoReturn:
    raise json.JSONDecodeError("it is not JSON", constant, 0)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        # JSON has no infinity, so a response could not contain it.
        raise ValueError("a number out of range")
    return number


_DECODER = json.JSONDecoder(parse_constant=_reject_constant, parse_float=_finite)


def _deeper_than(value: Any, depth: int) -> bool:
    layer = [value]
    for _ in range(depth):
        inner = (each.values() if isinstance(each, dict) else each for each in layer)
        layer = [item for each in inner if not isinstance(each, str) for item in _containers(each)]
        if not layer:
            return False
    return True


def _containers(items: Any) -> list[Any]:
    return [item for item in items if isinstance(item, (dict, list))] if not isinstance(items, _SCALARS) else []


_SCALARS = (int, float, bool, type(None))
