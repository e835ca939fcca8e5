"""From JSON to Python: the result objects of responses.

A result class has one plan (``plan``), and two decoders that follow it: ``fast_path`` and ``slow_path``.
"""

from collections.abc import Hashable
from typing import Any, TypeVar, cast

from followup._codec.fast_path import BAILS_OUT, fast_decoder
from followup._codec.plan import WireError as WireError

T = TypeVar("T")


def decode(annotation: type[T], raw: Any) -> T:
    """Return the result object of decoded JSON.

    Args:
        annotation: a result class, or a list of one.
        raw: what ``json.loads`` returned.

    Raises:
        WireError: the JSON is not what the contract says; its path names the field.
    """
    try:
        return cast("T", fast_decoder(cast("Hashable", annotation))(raw))
    except BAILS_OUT:
        pass
    # Imports cattrs, which a receiver of webhooks hardly ever needs; a client has imported it before its first call.
    from followup._codec.slow_path import decode_slowly

    return cast("T", decode_slowly(annotation, raw))
