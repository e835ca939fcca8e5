"""Files of packages, read as modules are: a test may have replaced the file system, as pyfakefs does."""

import functools
import os
import sys
from importlib.machinery import SourceFileLoader
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo


def package_data(module: str, name: str) -> bytes:
    """Return the content of a file beside a module that has been imported.

    Args:
        module: name of the module.
        name: name of the file; in folders below, with slashes.

    Raises:
        OSError: there is no such file.
    """
    spec: Any = sys.modules[module].__spec__
    path = os.path.join(os.path.dirname(spec.origin), *name.split("/"))  # noqa: PTH118, PTH120 - pathlib may be replaced
    try:
        return SourceFileLoader(module, path).get_data(path)
    except OSError:  # the package is in an archive, which its own loader reads
        content: bytes = spec.loader.get_data(path)
        return content


def package_text(module: str, name: str) -> str:
    """Return the text of a file beside a module that has been imported; see ``package_data``."""
    return package_data(module, name).decode().replace("\r\n", "\n")


@functools.cache
def zone_of(name: str) -> "ZoneInfo":
    """Return the time zone with an IANA name, of the operating system or else of the package ``tzdata``.

    Raises:
        ZoneInfoNotFoundError, ValueError, OSError: there is no such time zone.
    """
    import io  # imported late, as zoneinfo, because every start would wait for it
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except ZoneInfoNotFoundError:
        try:
            import tzdata

            content = package_data(tzdata.__name__, f"zoneinfo/{name}")
        except (ImportError, OSError):
            content = b""
        if not content:
            raise
        return ZoneInfo.from_file(io.BytesIO(content), key=name)
