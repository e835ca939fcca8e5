"""Shows a picture in the mode of the page, and a figure in the width of the screen.

A page names ``NAME.png`` or ``NAME.svg`` alone, as a reader of the repository sees it. Beside these there may be
``NAME-dark.png``, which the site shows in dark mode, and ``NAME-narrow.svg``, which it shows on narrow screens.
"""

import re
import struct
from pathlib import Path

_PICTURE = re.compile(r"^!\[([^\]]*)\]\((\S+)\.(png|svg)\)$", re.MULTILINE)
_OTHERS = {"png": ("dark", "only-light", "only-dark"), "svg": ("narrow", "only-wide", "only-narrow")}
"""By suffix: the name of the other picture, and the classes of both."""

_DENSITY = 2
"""Pixels of a screenshot for each pixel of a page."""


def prepared(text: str, folder: Path) -> str:
    """Return the text of a page in which each picture has its alternative beside it.

    Args:
        text: the page.
        folder: the folder of the page.
    """

    def both(found: re.Match[str]) -> str:
        described, name, suffix = found.groups()
        other, first, second = _OTHERS[suffix]
        pictures = {f"{name}.{suffix}": first, f"{name}-{other}.{suffix}": second}
        if not all((folder / each).exists() for each in pictures):
            return found[0]
        return "\n\n".join(_image(each, described, kind, folder) for each, kind in pictures.items())

    return _PICTURE.sub(both, text)


def _image(name: str, described: str, kind: str, folder: Path) -> str:
    width = f":width: {_width(folder / name) // _DENSITY}px\n" if name.endswith(".png") else ""
    return f"```{{image}} {name}\n:alt: {described}\n:class: {kind}\n{width}```"


def _width(picture: Path) -> int:
    with picture.open("rb") as file:
        width: int = struct.unpack(">I", file.read(20)[16:])[0]
    return width
