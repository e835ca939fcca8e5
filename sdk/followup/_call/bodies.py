"""Reads and decompresses the bodies of responses in small steps, up to a limit.

httpx decompresses a body to any size, in any number of content codings: 300 bytes can become 100 MB. For a body like
``[[],[],...]`` the JSON parser then needs twenty times as much memory, and nothing can interrupt it.
"""

import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

MAX_BODY_BYTES = 64 * 1024 * 1024
"""Maximum size of a successful response, both compressed and decompressed."""

MAX_ERROR_BYTES = 8 * 1024 * 1024
"""Maximum size of any other response: 80 KiB for the reason of each event of the largest batch."""

LONGEST_ERROR_TEXT = 10_000
"""Characters that an error keeps of a body that is not JSON, or is too large."""

MAX_VALUES = 1_000_000
"""Maximum number of values in a body, estimated by counting ``,``, ``[`` and ``{``.

The 100 objects of the longest page have less than 10,000 values; the rest allows for commas in their texts.
"""

ACCEPT_ENCODING = "gzip, deflate"

_STEP = 256 * 1024
"""Bytes to decompress at once, in less than a millisecond."""

TOO_MANY_VALUES = f"has more than {MAX_VALUES:,} values"


class Body:
    """Collects a body from its raw chunks.

    Attributes:
        problem: reason why the body cannot be used; None as long as there is none.
        is_finished: whether further chunks are ignored: after a problem, or once bytes follow the compressed data.
    """

    def __init__(self, headers: "httpx.Headers", *, is_success: bool) -> None:
        self.problem: str | None = None
        self._has_trailing_bytes = False
        self._limit = MAX_BODY_BYTES if is_success else MAX_ERROR_BYTES
        self._kept = 0 if is_success else 4 * LONGEST_ERROR_TEXT  # a character has at most four bytes
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
        return self.problem is not None or self._has_trailing_bytes

    def _choose_coding(self, codings: list[str]) -> None:
        codings = [each for each in codings if each not in ("", "identity")]
        if not codings:
            return
        if codings not in (["gzip"], ["x-gzip"], ["deflate"]):
            self.problem = "has a content coding other than gzip or deflate alone"
            return
        self._is_compressed = True
        self._may_be_raw = codings == ["deflate"]

    def feed(self, chunk: bytes) -> Iterator[None]:
        """Add a raw chunk, and yield after each small step, so that an event loop can do other work in between."""
        self._raw_size += len(chunk)
        if self._raw_size > self._limit:
            self._reject(_too_large(self._limit), b"" if self._is_compressed else chunk)
        elif not self._is_compressed:
            self._add(chunk)
        else:
            yield from self._feed_compressed(chunk)

    def content(self) -> bytes:
        """Return the decompressed body, after the last chunk; its beginning or nothing if there is a problem."""
        if self._raw_size and self._is_compressed and not (self._inflater and self._inflater.eof) and not self.problem:
            self._reject("ends in the middle of its compressed data")
        return b"".join(self._parts)

    def _reject(self, problem: str, part: bytes = b"") -> None:
        self.problem = problem
        self._parts = [b"".join([*self._parts, part[: self._kept]])[: self._kept]] if self._kept else []

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        self._values += _values_of(part)
        if self._size > self._limit:
            self._reject(_too_large(self._limit), part)
        elif self._values > MAX_VALUES:
            self._reject(TOO_MANY_VALUES, part)
        elif part:
            self._parts.append(part)

    def _feed_compressed(self, chunk: bytes) -> Iterator[None]:
        if self._inflater is None:
            chunk = self._head + chunk
            if len(chunk) < 2:
                self._head = chunk
                return
            # Some servers send deflate without the zlib header that the standard requires.
            is_raw = self._may_be_raw and not _has_header(chunk)
            self._inflater = zlib.decompressobj(-zlib.MAX_WBITS if is_raw else zlib.MAX_WBITS | 32)  # 32: gzip or zlib
        for start in range(0, len(chunk), _STEP):
            yield from self._inflate(self._inflater, chunk[start : start + _STEP])

    def _inflate(self, inflater: "zlib._Decompress", data: bytes) -> Iterator[None]:
        while not self.is_finished:
            if inflater.eof:
                # Like httpx and browsers, ignore any bytes that follow, and stop reading: they may be endless.
                self._has_trailing_bytes = bool(data)
                return
            try:
                part = inflater.decompress(data, _STEP)
            except zlib.error:
                self._reject("cannot be decompressed")
                return
            self._add(part)
            yield
            data = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            if not data and len(part) < _STEP:  # after a full step, there may be more output without input
                return


def problem_of(content: bytes, *, is_success: bool) -> str | None:
    """Return the reason why a decompressed body cannot be used; None if it can."""
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
