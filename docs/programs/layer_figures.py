"""Draws the figures of the layers from the contracts in pyproject.toml: ``python docs/programs/layer_figures.py``."""

import re
import sys
import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
FIGURES = {"followup": "layers-sdk", "followup_mockserver": "layers-mockserver"}

CHARACTER, GAP = 8.43, 17
"""Width of a character of a name, and of the space between two names."""

LEFT, RIGHT, DESCRIPTION = 56, 478, 196
"""Where names begin, where they end, and where the description of a single name begins."""

DESCRIPTIONS = {
    "cli | _for_mockserver | django | fastapi": "the command; frameworks (public)",
    "_client | inbound": "FollowUp and AsyncFollowUp; inbound events",
    "imports | inbox": "files of a clinic; webhooks, none lost (public)",
    "outbox": "events that cannot be lost (public)",
    "_store": "database and leases of both",
    "webhooks": "verifies webhooks (public)",
    "resources": "operations, result classes, input dicts",
    "_core": "what a call is: declared, encoded, sent, decoded",
    "_version": "the version of both packages",
    "__main__": "python -m followup_mockserver",
    "cli | pytest_plugin | simulation | strategies": "what users start or import in tests",
    "lab": "simulations, strategies, programs that judge",
    "service": "MockService, MockServer: all together",
    "web": "Flask: API, control API, dashboard",
    "control": "test controls, and the engine of jobs",
    "gateway": "a request, step by step; the contract",
    "rules": "one function for each operation",
    "deliveries": "webhooks: queue, sign, send",
    "world": "objects, settings, and the forms of fields",
}
"""By layer, or by the first module of a layer."""


def main() -> None:
    """Draw both figures, with the title and the style of the files that they replace."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    for package, name in FIGURES.items():
        (layers,) = [each["layers"] for each in contracts if each.get("containers") == [package]]
        file = IMAGES / f"{name}.svg"
        file.write_text(drawn(file.read_text(), package, layers))


def drawn(old: str, package: str, layers: list[str]) -> str:
    """Return the figure with these layers."""
    rows, top = [], 42
    for layer in layers:
        row, height = _row(package, layer, top)
        rows += row
        top += height + 4
    height = top + 10
    begin = old[: old.index('  <rect class="card"')]
    begin = re.sub(
        r'viewBox="0 0 500 \d+" width="500" height="\d+"',
        f'viewBox="0 0 500 {height}" width="500" height="{height}"',
        begin,
    )
    title = re.findall(r'  <text class="title".*\n', old)[0]
    return "".join(
        [
            begin,
            f'  <rect class="card" width="500" height="{height}" rx="10"/>\n',
            title,
            *rows,
            f'  <path class="line" marker-end="url(#head)" d="M26,46 V{top - 8}"/>\n',
            f'  <text class="text" transform="translate(20 {top // 2}) rotate(-90)" text-anchor="middle">',
            "imports</text>\n",
            "</svg>\n",
        ]
    )


def _row(package: str, layer: str, top: int) -> tuple[list[str], int]:
    """Return the elements of a layer, and their height."""
    names = layer.split(" | ")
    colour = "sdk" if package == "followup" else "mock"
    texts, x, y = [], float(LEFT), top + (20 if len(names) == 1 else 22)
    for name in names:
        width = len(name) * CHARACTER
        if x + width > RIGHT:
            x, y = LEFT, y + 18
        texts.append(_text("name", x, y, name))
        x += width + GAP
    description = _description(layer)
    if len(names) == 1:
        texts.append(_text("text", DESCRIPTION, y, description))
        height = 30
    else:
        texts.append(_text("text", LEFT, y + 17, description))
        height = y + 25 - top
    return [f'  <rect class="box {colour}" x="44" y="{top}" width="440" height="{height}" rx="6"/>\n', *texts], height


def _description(layer: str) -> str:
    description = DESCRIPTIONS.get(layer)
    if description is None:
        sys.exit(f"The layer {layer!r} has no description: add one to DESCRIPTIONS in {__file__}.")
    return description


def _text(kind: str, x: float, y: int, text: str) -> str:
    return f'  <text class="{kind}" x="{x:g}" y="{y}">{escape(text)}</text>\n'


if __name__ == "__main__":
    main()
