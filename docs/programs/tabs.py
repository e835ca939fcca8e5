"""Shows alternatives as tabs, of which the site remembers a reader's choice.

A page has them one below the other, each under its name in bold, so that they can be read in the repository too::

    <!-- tabs -->

    **Sync**

    …

    **Async**

    …

    <!-- end of tabs -->

Tabs whose first names are the same change together, on all pages.
"""

import re

_TABS = re.compile(r"^<!-- tabs -->\n(.*?)^<!-- end of tabs -->$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"^\*\*(.+)\*\*$", re.MULTILINE)


def prepared(text: str) -> str:
    """Return the text of a page with directives of sphinx-design instead of the marks."""
    return _TABS.sub(lambda found: _tab_set(found[1]), text)


def _tab_set(content: str) -> str:
    _, *parts = _NAME.split(content)
    names, texts = parts[::2], parts[1::2]
    items = [
        f"`````{{tab-item}} {name}\n:sync: {name.lower()}\n{text}`````" for name, text in zip(names, texts, strict=True)
    ]
    return f"``````{{tab-set}}\n:sync-group: {names[0].lower()}\n\n" + "\n".join(items) + "\n``````"
