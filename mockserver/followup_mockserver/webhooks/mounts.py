"""The receivers mounted in this process, which receive the webhooks of their URLs without a socket."""

import threading

from followup_mockserver.webhooks.receivers import Mount, Receiver, kind_of


class Mounts:
    """The mounted receivers, by URL. Thread-safe."""

    def __init__(self) -> None:
        self._mounts: dict[str, Mount] = {}
        self._lock = threading.Lock()

    def add(self, url: str, receiver: Receiver, *, raise_exceptions: bool = True) -> Receiver | None:
        """Mount a receiver for webhooks whose URL is ``url`` or begins with it.

        Returns:
            The receiver that this one replaced, if it is mounted nowhere else; None otherwise.

        Raises:
            TypeError: the receiver is not callable.
        """
        if not callable(receiver):
            raise TypeError("mount() requires an ASGI or WSGI application, or a function")
        url = url.rstrip("/")
        mount = Mount(url=url, receiver=receiver, kind=kind_of(receiver), raise_exceptions=raise_exceptions)
        with self._lock:
            replaced = self._mounts.get(url)
            self._mounts[url] = mount
            if replaced is None or any(each.receiver is replaced.receiver for each in self._mounts.values()):
                return None
            return replaced.receiver

    def at(self, url: str) -> Mount | None:
        """Return the mount with the longest URL that ``url`` begins with, or None."""
        with self._lock:
            matching = [each for each in self._mounts if url == each or url.startswith((f"{each}/", f"{each}?"))]
            return self._mounts[max(matching, key=len)] if matching else None

    def urls(self) -> list[str]:
        """Return the mounted URLs, in the order in which they were mounted."""
        with self._lock:
            return list(self._mounts)
