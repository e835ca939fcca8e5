"""Looks into a workbook of Excel 97 (``.xls``) before calamine reads it.

Calamine follows a chain of sectors until it ends, and allocates as many cells as the largest row and column numbers
say, so a damaged file would take all memory.
"""

import struct
from collections.abc import Callable, Iterator, Sequence

_HEADER = struct.Struct("<30xH16xI8xI4xI4x109I")
_END = 0xFFFF_FFFA
"""The first number that is no sector: it ends a chain, or means that a sector is unused."""

_ENTRY = struct.Struct("<64s52xII4x")
_SMALLEST = 4096
"""Bytes of a stream. Smaller ones are in sectors of 64 bytes within the stream of the first entry."""

_WORKBOOKS = tuple(f"{each}\0".encode("utf-16-le") for each in ("Workbook", "Book"))
_NEW_SHEET, _DIMENSIONS = 0x0809, 0x0200
_CELLS = frozenset((0x0006, 0x00BD, 0x00BE, 0x00D6, 0x00FD, 0x0201, 0x0203, 0x0204, 0x0205, 0x027E))
"""The kinds of records that begin with a row and a column."""


def most_cells(content: bytes) -> int:
    """Return the number of cells of the largest sheet, with the empty ones between others.

    Raises:
        ValueError, IndexError, struct.error: the file is damaged.
    """
    power, directory, small, more, *numbers = _HEADER.unpack_from(content)
    size = 1 << power
    body = content[size:]
    while more < _END and len(numbers) < len(body):
        *found, more = _links(_joined(body, [more], size))
        numbers += found
    chain = _follower(_links(_joined(body, [each for each in numbers if each < _END], size)))
    chain_of_small = _follower(_links(_joined(body, chain(small), size)))
    entries = [*_ENTRY.iter_unpack(_joined(body, chain(directory), size))]
    within = _joined(body, chain(entries[0][1]), size)
    largest = 0
    for name, start, length in entries[1:]:
        is_small = length < _SMALLEST
        sectors = (chain_of_small if is_small else chain)(start if length else _END)
        if name.startswith(_WORKBOOKS):
            stream = _joined(within, sectors, 64) if is_small else _joined(body, sectors, size)
            largest = max(largest, *_sizes(stream))
    return largest


def _joined(content: bytes, sectors: Sequence[int], size: int) -> bytes:
    return b"".join(content[each * size : (each + 1) * size] for each in sectors)


def _links(content: bytes) -> list[int]:
    return [*struct.unpack(f"<{len(content) // 4}I", content[: len(content) // 4 * 4])]


def _follower(links: Sequence[int]) -> Callable[[int], list[int]]:
    """Return a function that follows chains; a sector that is in two of them, or twice in one, is an error."""
    left = set(range(len(links)))

    def follow(sector: int) -> list[int]:
        found = []
        while sector < _END:
            if sector not in left:
                raise ValueError("a chain of sectors does not end")
            left.remove(sector)
            found.append(sector)
            sector = links[sector]
        return found

    return follow


def _sizes(stream: bytes) -> Iterator[int]:
    """Iterate over the numbers of cells that the records of a workbook need."""
    yield 0
    position = rows = columns = 0
    while position + 8 <= len(stream):
        kind, length, row, column = struct.unpack_from("<4H", stream, position)
        if kind == _NEW_SHEET:
            rows = columns = 0
        elif kind in _CELLS:
            rows, columns = max(rows, row + 1), max(columns, column + 1)
            yield rows * columns
        elif kind == _DIMENSIONS:
            numbers = "<2I2H" if length >= 14 else "<4H"  # since Excel 97, and before
            first, last, left, right = struct.unpack_from(numbers, stream, position + 4)
            if last < first or right < left:
                raise ValueError("a sheet ends before it begins")
            yield (last - first) * (right - left)
        position += 4 + length
