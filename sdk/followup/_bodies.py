"""Bodies of responses: decoded in bounded steps, up to a limit.

httpx decodes whatever arrives, in any number of content codings, to any size: 300 bytes can become 100 MB. The parser
of JSON then makes twenty times as much of a body like ``[[],[],...]``, and nothing can interrupt it.
"""

import zlib
from collections.abc import Iterator

import httpx

MAX_BODY_BYTES = 64 * 1024 * 1024
"""Decoded bytes that a successful response may have, and bytes on the wire."""

MAX_ERROR_BYTES = 1024 * 1024
"""The same for any other response: the results of the largest batch of events take a fraction of it."""

MAX_VALUES = 1_000_000
"""Values that a body may have, by the bytes that precede them (``,``, ``[`` and ``{``).

The 100 objects of the longest page have less than 10,000 values. The rest is room for the commas of their texts.
"""

ACCEPT_ENCODING = "gzip, deflate"

_STEP = 256 * 1024
"""Bytes that are decoded in one go: less than a millisecond's work."""

TOO_MANY_VALUES = f"has more than {MAX_VALUES:,} values"


class Body:
    """Collects a body from its raw chunks.

    Attributes:
        problem: why the body cannot be used; None as long as it can.
        is_finished: whether further chunks would be ignored: there is a problem, or bytes after the compressed data.
    """

    def __init__(self, headers: httpx.Headers, *, is_success: bool) -> None:
        self.problem: str | None = None
        self._is_followed = False
        self._limit = MAX_BODY_BYTES if is_success else MAX_ERROR_BYTES
        self._parts: list[bytes] = []
        self._size = 0
        self._raw_size = 0
        self._values = 0
        self._is_compressed = False
        self._may_be_raw = False
        self._head = b""
        self._inflater: zlib._Decompress | None = None
        coding = headers.get("content-encoding")
        if coding is not None:
            self._choose_coding([each.strip() for each in coding.lower().split(",")])

    @property
    def is_finished(self) -> bool:
        return self.problem is not None or self._is_followed

    def _choose_coding(self, codings: list[str]) -> None:
        codings = [each for each in codings if each not in ("", "identity")]
        if not codings:
            return
        if codings not in (["gzip"], ["x-gzip"], ["deflate"]):
            self.problem = f"has a content coding other than those asked for ({ACCEPT_ENCODING})"
            return
        self._is_compressed = True
        self._may_be_raw = codings == ["deflate"]

    def feed(self, chunk: bytes) -> Iterator[None]:
        """Take a raw chunk. Yields after each bounded step, so that an event loop can do other things in between."""
        self._raw_size += len(chunk)
        if self._raw_size > self._limit:
            self._reject(_too_large(self._limit))
        elif not self._is_compressed:
            self._add(chunk)
        else:
            yield from self._feed_compressed(chunk)

    def content(self) -> bytes:
        """The decoded body, once every chunk was fed; empty if there is a problem."""
        if self._raw_size and self._is_compressed and not (self._inflater and self._inflater.eof) and not self.problem:
            self._reject("ends in the middle of its compressed data")
        return b"".join(self._parts)

    def _reject(self, problem: str) -> None:
        self.problem = problem
        self._parts.clear()

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        self._values += _values_of(part)
        if self._size > self._limit:
            self._reject(_too_large(self._limit))
        elif self._values > MAX_VALUES:
            self._reject(TOO_MANY_VALUES)
        elif part:
            self._parts.append(part)

    def _feed_compressed(self, chunk: bytes) -> Iterator[None]:
        if self._inflater is None:
            chunk = self._head + chunk
            if len(chunk) < 2:
                self._head = chunk
                return
            # Some servers send deflate without the header that the standard asks for.
            is_raw = self._may_be_raw and not _has_header(chunk)
            self._inflater = zlib.decompressobj(-zlib.MAX_WBITS if is_raw else zlib.MAX_WBITS | 32)  # 32: gzip or zlib
        for start in range(0, len(chunk), _STEP):
            yield from self._inflate(self._inflater, chunk[start : start + _STEP])

    def _inflate(self, inflater: "zlib._Decompress", data: bytes) -> Iterator[None]:
        while not self.is_finished:
            if inflater.eof:
                # httpx and browsers ignore what follows, too. We also stop reading it: it may have no end.
                self._is_followed = bool(data)
                return
            try:
                part = inflater.decompress(data, _STEP)
            except zlib.error:
                self._reject("cannot be decompressed")
                return
            self._add(part)
            yield
            data = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            if not data and len(part) < _STEP:  # after a full step, more output may wait without any input
                return


def problem_of(content: bytes, *, is_success: bool) -> str | None:
    """Why a decoded body cannot be used; None if it can."""
    limit = MAX_BODY_BYTES if is_success else MAX_ERROR_BYTES
    if len(content) > limit:
        return _too_large(limit)
    return TOO_MANY_VALUES if _values_of(content) > MAX_VALUES else None


def _too_large(limit: int) -> str:
    return f"is larger than {limit // 1024 // 1024} MiB"


def _values_of(part: bytes) -> int:
    return part.count(b",") + part.count(b"[") + part.count(b"{")


def _has_header(start: bytes) -> bool:
    is_zlib = start[0] & 0x0F == zlib.DEFLATED and start[0] >> 4 <= 7 and (start[0] << 8 | start[1]) % 31 == 0
    return is_zlib or start[:2] == b"\x1f\x8b"
