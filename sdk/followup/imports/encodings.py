"""Finds the encoding of a text file, also of those that programs for DOS and Macs write, or that were encoded twice."""

import codecs
import re
from collections import Counter
from typing import BinaryIO, Final

import attrs

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CHUNK = 1 << 20

_TOLERATED = 1_000
"""A file is UTF-8 if fewer than one in this many characters outside of ASCII are not."""

TWICE: Final = "UTF-8 twice"
"""What is shown for a file in UTF-8 that was read in another encoding and written as UTF-8 again."""

_OTHERS = ("cp850", "cp437", "mac_roman")
_LETTERS = frozenset("áéíóúüñçãõâêôàäöèìòùîëïßÁÉÍÓÚÜÑÇÃÕÂÊÔÀÄÖÈÌÒÙÎËÏºª")
_IN_A_WORD = re.compile(rb"[A-Za-z]?[\x80-\xff][A-Za-z]?")
_ENCODED_TWICE = re.compile("[\u00c2-\u00c5][\u0080-\u00bf\u0152-\u2122]")
_OUTSIDE_ASCII = re.compile("[^\x00-\x7f]+")


@attrs.frozen
class Encoding:
    """The encoding of a file.

    Attributes:
        name: name of the codec.
        replaces: whether some bytes have to be replaced by ``�``.
        likely: what the file looks more like, such as ``cp850``; None if nothing does.
    """

    name: str
    replaces: bool
    likely: str | None = None


def encoding_of(stream: BinaryIO) -> Encoding:
    """Return the encoding of a text."""
    mark = stream.read(len(codecs.BOM_UTF8))
    if mark.startswith(_UTF_16):
        return Encoding("utf-16", replaces=True)
    stream.seek(0)
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    others = invalid = runs = twice = 0
    words: Counter[bytes] = Counter()
    is_last = False
    while not is_last:
        chunk = stream.read(_CHUNK)
        is_last = not chunk
        text = decoder.decode(chunk, is_last)
        if not text.isascii():
            others += len(text) - len(text.encode("ascii", "ignore"))
            invalid += len(text) - len(text.encode("utf-8", "ignore").decode())
            words.update(_IN_A_WORD.findall(chunk))
            runs += len(_OUTSIDE_ASCII.findall(text))
            twice += len(_ENCODED_TWICE.findall(text))
    if mark == codecs.BOM_UTF8 or invalid * _TOLERATED < others or not invalid:
        return Encoding("utf-8-sig", invalid > 0, TWICE if twice * 2 > runs else None)
    if invalid * 10 < others * 9:  # the files of two programs were joined
        return Encoding("cp1252", replaces=True, likely="utf-8")
    scores = {name: sum(map(words.__getitem__, (each for each in words if _is_word(each, name)))) for name in _OTHERS}
    best = max(_OTHERS, key=scores.__getitem__)
    usual = sum(count for each, count in words.items() if _is_word(each, "cp1252"))
    return Encoding("cp1252", replaces=True, likely=best if scores[best] > usual else None)


def _is_word(found: bytes, encoding: str) -> bool:
    """Return whether a letter outside of ASCII, with its neighbours, looks like a part of a word in an encoding."""
    text = found.decode(encoding, "replace")
    letter = next(each for each in text if each > "\x7f")
    before, _, after = text.partition(letter)
    is_odd = (letter.islower() and after.isupper()) or (letter.isupper() and before.islower())
    return letter in _LETTERS and bool(before or after) and not is_odd
