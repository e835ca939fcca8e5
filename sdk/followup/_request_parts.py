"""What a request carries besides its body: the id in its path, its query and its idempotency key."""

import re
import uuid
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode

from followup._annotations import IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_RULE, IdPrefix
from followup._codec.body import kind_of, text_problem
from followup._codec.encode import LONGEST_ID

LONGEST_QUERY = 32_768
"""Characters, once encoded. httpx takes no URL of more than 65,536."""

_NOT_IN_AN_ID = re.compile(r"[\s/\\?#%\x00-\x1f\x7f]")
_KEY = re.compile(IDEMPOTENCY_KEY)


def checked_path_id(operation: str, kind: IdPrefix, value: Any) -> str:
    """Return the id as it goes into a path, once it is certain that it stays one segment of it.

    Raises:
        ValueError: it is no such id; neither the text nor its context holds it.
    """
    if not isinstance(value, str) or not value:
        found = "an empty one" if value == "" else kind_of(value)
        raise ValueError(
            f"{operation} needs the id of the {kind.object}: a string that begins with {kind.prefix!r}, not {found}"
        )
    if not value.startswith(kind.prefix):
        raise ValueError(f"{operation} needs an id that begins with {kind.prefix!r}; this one does not")
    if len(value) > LONGEST_ID:
        raise ValueError(f"{operation} needs an id of at most {LONGEST_ID} characters")
    if _NOT_IN_AN_ID.search(value):
        raise ValueError(f"{operation} needs an id without spaces and without any of / \\ ? # %")
    if problem := text_problem(value):
        raise ValueError(f"{operation} needs another id: this one {problem}")
    return quote(value, safe="")


def checked_key(key: object) -> str:
    """Return the idempotency key, or a new one for None.

    Raises:
        ValueError: it is no key; the text does not hold it.
    """
    if key is None:
        return str(uuid.uuid4())
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise ValueError(f"idempotency_key {IDEMPOTENCY_KEY_RULE}")
    return key


def query_string(values: Sequence[tuple[str, str, Any]]) -> str:
    """Return the query of a URL.

    Args:
        values: the name of each argument, its name on the wire, and its value.

    Raises:
        ValueError: it is too long for a URL; the text names the longest argument.
    """
    query = urlencode([(wire_name, _query_value(value)) for _, wire_name, value in values])
    if len(query) > LONGEST_QUERY:
        longest = max(values, key=lambda each: len(_query_value(each[2])))[0]
        raise ValueError(f"{longest} is too long: a query takes {LONGEST_QUERY:,} characters once it is encoded")
    return query


def _query_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
