"""Bodies of responses: decoded in bounded steps, up to a limit.

httpx decodes whatever arrives, in any number of content codings, to any size: 300 bytes can become 100 MB.
"""

import zlib
from collections.abc import Iterator

import httpx

MAX_BODY_BYTES = 64 * 1024 * 1024
"""Decoded bytes that a response may have."""

ACCEPT_ENCODING = "gzip, deflate"

_STEP = 256 * 1024
"""Bytes that are decoded in one go: less than a millisecond's work."""

TOO_LARGE = f"is larger than {MAX_BODY_BYTES // 1024 // 1024} MiB"


class Body:
    """Collects a body from its raw chunks.

    Attributes:
        problem: why the body cannot be used; None as long as it can.
    """

    def __init__(self, headers: httpx.Headers) -> None:
        self.problem: str | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._inflater: zlib._Decompress | None = None
        self._may_be_raw = False
        coding = headers.get("content-encoding")
        if coding is not None:
            self._choose_inflater([each for each in coding.lower().replace(" ", "").split(",") if each])

    def _choose_inflater(self, codings: list[str]) -> None:
        if codings in ([], ["identity"]):
            return
        if codings not in (["gzip"], ["x-gzip"], ["deflate"]):
            self.problem = f"has a content coding other than those asked for ({ACCEPT_ENCODING})"
            return
        self._inflater = zlib.decompressobj(zlib.MAX_WBITS | 32)  # 32: gzip or zlib, whichever the header shows
        self._may_be_raw = codings == ["deflate"]

    def feed(self, chunk: bytes) -> Iterator[None]:
        """Take a raw chunk. Yields after each bounded step, so that an event loop can do other things in between."""
        if self._inflater is None:
            self._add(chunk)
            return
        for start in range(0, len(chunk), _STEP):
            yield from self._inflate(chunk[start : start + _STEP])

    def content(self) -> bytes:
        """The decoded body, once every chunk was fed; empty if there is a problem."""
        if self._inflater is not None and self._parts and not self._inflater.eof and self.problem is None:
            self.problem = "ends in the middle of its compressed data"
        return b"" if self.problem else b"".join(self._parts)

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > MAX_BODY_BYTES:
            self.problem = TOO_LARGE
            self._parts.clear()
        if self.problem is None:
            self._parts.append(part)

    def _inflate(self, data: bytes) -> Iterator[None]:
        assert self._inflater is not None
        while self.problem is None and not self._inflater.eof:
            try:
                part = self._inflater.decompress(data, _STEP)
            except zlib.error:
                if not self._may_be_raw or self._parts:
                    self.problem = "cannot be decompressed"
                    return
                # Some servers send deflate without the header that the standard asks for.
                self._inflater, self._may_be_raw = zlib.decompressobj(-zlib.MAX_WBITS), False
                continue
            self._add(part)
            yield
            data = self._inflater.unconsumed_tail
            if not data and len(part) < _STEP:
                return
