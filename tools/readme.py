"""Makes the links of README.md absolute in the metadata of the package, because an index shows it without its files.

It is a metadata hook of hatchling. The links point to the tag of the version, so they fit the release for as long as
somebody reads its page.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE_LINK = re.compile(r"(?P<text>\[[^\]]*\]\()(?!https?:|#)")
RELATIVE_PICTURE = re.compile(r'(?P<text> src(?:set)?=")(?!https?:)')


class ReadmeHook(MetadataHookInterface):
    """Sets the field ``readme``."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Replace each relative link by one into the repository."""
        repository, tag = metadata["urls"]["Repository"], f"v{metadata['version']}"

        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        for link, kind in ((RELATIVE_LINK, "blob"), (RELATIVE_PICTURE, "raw")):
            text = link.sub(rf"\g<text>{repository}/{kind}/{tag}/", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
