"""The response of a mounted receiver, of which the beginning is kept."""

from contextlib import suppress

import httpx

from followup_mockserver.state.records import LONGEST_RESPONSE_BODY, ReceiverResponse, joined_headers
from followup_mockserver.webhooks.asgi import Headers


class MountedResponse:
    """Collects a response whose body arrives in parts.

    Args:
        status: the HTTP status.
        headers: names and values.
    """

    def __init__(self, status: int, headers: Headers) -> None:
        self._status = status
        self._headers = headers
        self._body = b""
        self._length = 0
        self._is_whole = False

    def add(self, part: bytes, is_last: bool) -> None:
        """Add a part of the body; what is beyond the limit is dropped."""
        self._length += len(part)
        self._body += part[: LONGEST_RESPONSE_BODY - len(self._body)]
        self._is_whole = is_last and self._length <= LONGEST_RESPONSE_BODY

    def read(self, response: httpx.Response) -> None:
        """Add the beginning of the body of this response, as far as it can be read."""
        if not isinstance(response.stream, httpx.SyncByteStream):
            return
        with suppress(Exception):  # the status has decided the outcome already
            for part in response.iter_bytes():
                self.add(part, False)
                if self._length > LONGEST_RESPONSE_BODY:
                    break
            self.add(b"", True)

    def kept(self) -> ReceiverResponse:
        """Return what is kept of the response."""
        return ReceiverResponse(
            status_line=f"HTTP/1.1 {self._status} {httpx.codes.get_reason_phrase(self._status)}".rstrip(),
            headers=joined_headers(self._headers),
            body=self._body,
            body_is_whole=self._is_whole,
        )
