"""Decodes the JSON of responses into result objects.

A result class has one plan (``plan``), which two decoders follow: ``fast_path`` and ``slow_path``.
"""

from collections.abc import Hashable
from typing import Any, TypeVar, cast

from followup._codec.fast_path import BAILS_OUT, fast_decoder
from followup._codec.plan import WireError as WireError

T = TypeVar("T")


def decode(annotation: type[T], raw: Any) -> T:
    """Decode parsed JSON into a result object.

    Args:
        annotation: a result class, or a list of one.
        raw: the value that ``json.loads`` returned.

    Raises:
        WireError: the JSON does not match the schema; its path names the field.
    """
    try:
        return cast("T", fast_decoder(cast("Hashable", annotation))(raw))
    except BAILS_OUT:
        pass
    # This imports cattrs, which a webhook receiver rarely needs. The constructor of a client has imported it already.
    from followup._codec.slow_path import decode_slowly

    return cast("T", decode_slowly(annotation, raw))
