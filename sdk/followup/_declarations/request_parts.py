"""The parts of a request besides its body: the id in its path, its query and its idempotency key."""

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode

from followup._annotations import IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_RULE, IdPrefix
from followup._codec.body import text_problem
from followup._codec.encode import LONGEST_ID
from followup._codec.names import kind_of
from followup._randomness import new_uuid

LONGEST_QUERY = 32_768
"""Characters, once encoded. httpx rejects URLs of more than 65,536."""

_NOT_IN_AN_ID = re.compile(r"[\s/\\?#%\x00-\x1f\x7f]")
_KEY = re.compile(IDEMPOTENCY_KEY)


def checked_path_id(operation: str, kind: IdPrefix, value: Any) -> str:
    """Check the id in a path, and return it quoted. It cannot be more than one segment of the path.

    Raises:
        ValueError: it is not an id of this type; neither the message nor the exception's context contains it.
    """
    if not isinstance(value, str) or not value.startswith(kind.prefix):
        found = "; it is empty" if value == "" else "" if isinstance(value, str) else f", not {kind_of(value)}"
        raise ValueError(f"{operation}: id must be a string that begins with {kind.prefix!r}{found}")
    if len(value) > LONGEST_ID:
        raise ValueError(f"{operation}: id must have at most {LONGEST_ID} characters")
    if _NOT_IN_AN_ID.search(value):
        raise ValueError(f"{operation}: id must not contain spaces, line breaks or any of / \\ ? # %")
    if problem := text_problem(value):
        raise ValueError(f"{operation}: id {problem}")
    return quote(value, safe="")


def checked_key(key: object) -> str:
    """Check an idempotency key, and return it; generate one for None.

    Raises:
        ValueError: it is not a valid key; the message does not contain it.
    """
    if key is None:
        return str(new_uuid())
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise ValueError(f"idempotency_key {IDEMPOTENCY_KEY_RULE}")
    return key


def query_string(values: Sequence[tuple[str, str, Any]]) -> str:
    """Return the query of a URL.

    Args:
        values: name, wire name and value of each argument.

    Raises:
        ValueError: the query is too long for a URL; the message names the longest argument.
    """
    query = urlencode([(wire_name, _query_value(value)) for _, wire_name, value in values])
    if len(query) > LONGEST_QUERY:
        longest = max(values, key=lambda each: len(_query_value(each[2])))[0]
        raise ValueError(f"{longest} is too long: a query may have {LONGEST_QUERY:,} characters once URL-encoded")
    return query


def _query_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
