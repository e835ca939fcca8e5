"""The contrast of every text colour of the style sheet, in both schemes."""

import re
from pathlib import Path

import pytest

import followup_mockserver.dashboard

BASE = Path(followup_mockserver.dashboard.__file__).parent / "static" / "base.css"
MINIMUM = 4.5

PAIRS = [
    *((text, "background") for text in ("text", "muted", "accent", "success", "danger", "pending")),
    *((text, "surface") for text in ("text", "muted", "accent", "success", "danger", "pending")),
    *((f"json-{kind}", "surface") for kind in ("key", "string", "number")),
    ("success", "success-tint"),
    ("danger", "danger-tint"),
    ("pending", "pending-tint"),
    ("accent", "accent-tint"),
    ("text", "bubble"),
    ("muted", "bubble"),
    ("text-on-accent", "accent"),
    ("text-on-danger", "danger"),
    ("background", "text"),
]  # fmt: skip
"""Names of a text colour, and of the colour of its background."""


def colours(scheme: str) -> dict[str, str]:
    css = BASE.read_text()
    light, _, dark = css.partition("@media (prefers-color-scheme: dark)")
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", dark if scheme == "dark" else light))


def luminance(colour: str) -> float:
    """Return the relative luminance, as WCAG 2 defines it."""
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_are_legible(scheme: str) -> None:
    found = colours(scheme)
    for text, ground in PAIRS:
        one, other = sorted((luminance(found[text]), luminance(found[ground])))
        assert (other + 0.05) / (one + 0.05) >= MINIMUM, (text, ground)


def test_both_schemes_define_the_same_colours() -> None:
    assert colours("light").keys() == colours("dark").keys()
