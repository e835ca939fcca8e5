"""The error about an invalid snapshot."""

from followup_mockserver.schema.errors import ServiceError

LONGEST_PATH = 200
"""Characters of a path that an error shows; the names in a hostile snapshot may be long."""


class SnapshotError(ServiceError, ValueError):
    """An invalid snapshot: a ``ValueError`` in Python, a 400 over HTTP.

    Args:
        path: place of the invalid value, such as ``organizations[0].patients[3].phone``; empty for the whole snapshot.
        message: one sentence, which describes a valid value. It never contains the value.
        code: code of the error over HTTP.
        status: HTTP status.
    """

    def __init__(self, path: str, message: str, *, code: str = "snapshot_invalid", status: int = 400) -> None:
        super().__init__(status, "invalid_request_error", code, message, param=path[:LONGEST_PATH] or None)
