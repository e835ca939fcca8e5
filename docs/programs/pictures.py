"""Shows a picture in the mode of the page and for the width of the screen.

A page names ``NAME.png`` or ``NAME.svg`` alone, as a reader of the repository sees it. The site shows ``NAME-dark.png``
in dark mode, and ``NAME-narrow.svg`` or ``NAME-narrow.png`` on narrow screens, if there is such a file.
"""

import re
import struct
from pathlib import Path

_PICTURE = re.compile(r"^!\[([^\]]*)\]\((\S+)\.(png|svg)\)$", re.MULTILINE)
_MODES = {"": "only-light", "-dark": "only-dark"}
_WIDTHS = {"": "only-wide", "-narrow": "only-narrow"}
"""Classes of pictures, by the ends of their names."""

_DENSITY = 2
"""Pixels of a screenshot for each pixel of a page."""


def prepared(text: str, folder: Path) -> str:
    """Return the text of a page in which each picture has its alternatives beside it.

    Args:
        text: the page.
        folder: the folder of the page.
    """

    def all_of(found: re.Match[str]) -> str:
        described, name, suffix = found.groups()
        modes, widths = (
            ends if all((folder / f"{name}{end}.{suffix}").exists() for end in ends) else {"": ""}
            for ends in (_MODES, _WIDTHS)
        )
        if len(modes) == len(widths) == 1:
            return found[0]
        return "\n\n".join(
            _image(f"{name}{width}{mode}.{suffix}", described, f"{modes[mode]} {widths[width]}", folder)
            for width in widths
            for mode in modes
        )

    return _PICTURE.sub(all_of, text)


def _image(name: str, described: str, kind: str, folder: Path) -> str:
    width = f":width: {_width(folder / name) // _DENSITY}px\n" if name.endswith(".png") else ""
    image = f"```{{image}} {name}\n:alt: {described}\n:class: {kind}\n{width}```"
    return f"````{{container}} picture\n{image}\n````"  # which scrolls on narrow screens


def _width(picture: Path) -> int:
    with picture.open("rb") as file:
        width: int = struct.unpack(">I", file.read(20)[16:])[0]
    return width
