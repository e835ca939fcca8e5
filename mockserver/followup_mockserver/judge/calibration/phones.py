"""The phone numbers of the invented patients.

North American numbers from 555-0100 to 555-0199 belong to nobody: they are reserved for fiction, in every area code.
"""

from collections.abc import Iterator

AREA_CODES = (
    202, 205, 212, 213, 214, 215, 303, 304, 305, 312, 313, 314, 404, 405, 412, 414, 415, 502, 503, 505, 512, 513, 515,
    602, 603, 605, 612, 614, 615, 617, 619, 702, 713, 716, 717, 801, 802, 803, 804, 808, 816, 817, 901, 904, 907, 914,
)  # fmt: skip
"""North American area codes; there are many more."""

NUMBERS = 100
"""Numbers of each area code."""


def invented(tag: str) -> Iterator[str]:
    """Iterate over invented numbers in E.164, in an order of this run.

    Args:
        tag: hexadecimal digits that differ from run to run, so that a run finds numbers that no other has used.
    """
    total = len(AREA_CODES) * NUMBERS
    start = int(tag, 16) % total
    for position in range(total):
        area, number = divmod((start + position) % total, NUMBERS)
        yield f"+1{AREA_CODES[area]}55501{number:02}"
