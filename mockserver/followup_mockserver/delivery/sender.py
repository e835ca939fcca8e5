"""One attempt over a real socket (specification, section 6.2, Delivery and retries).

urllib3 rather than httpx: tests patch httpx for their whole process, and their patches must not catch the mock's own
webhooks. Proxy variables of the environment are not for webhooks either.
"""

import threading
from typing import Any

import urllib3

from followup_mockserver.clock import RealTime
from followup_mockserver.rules.deliveries import Outcome, Outgoing

ATTEMPT_TIMEOUT = 10.0
"""Seconds within which an endpoint has to answer (specification, section 8)."""


class Sender:
    """Sends attempts; each thread that does has connections of its own."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._pools: list[urllib3.PoolManager] = []
        self._lock = threading.Lock()

    def send(self, outgoing: Outgoing) -> Outcome:
        """Post the body; whatever goes wrong is the outcome."""
        started = RealTime.monotonic()
        status, error = self._post(outgoing)
        seconds = RealTime.monotonic() - started
        if error is None and seconds > ATTEMPT_TIMEOUT:
            status, error = None, _TOO_LATE
        return Outcome(status_code=status, error=error, seconds=seconds)

    def close(self) -> None:
        """Close the connections of all threads."""
        with self._lock:
            pools, self._pools = self._pools, []
        for pool in pools:
            pool.clear()

    def _post(self, outgoing: Outgoing) -> tuple[int | None, str | None]:
        try:
            response: Any = self._pool().request(
                "POST",
                outgoing.url,
                body=outgoing.body,
                headers=outgoing.headers,
                timeout=urllib3.Timeout(total=ATTEMPT_TIMEOUT),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            status = int(response.status)
            _leave(response)
        except Exception as error:  # noqa: BLE001 - an attempt fails, the mock does not
            return None, _TOO_LATE if _is_timeout(error) else f"No answer ({_kind(error)})."
        return status, None if 200 <= status < 300 else f"HTTP status {status}."

    def _pool(self) -> urllib3.PoolManager:
        pool: urllib3.PoolManager | None = getattr(self._local, "pool", None)
        if pool is None:
            pool = self._local.pool = urllib3.PoolManager(num_pools=32, maxsize=1)
            with self._lock:
                self._pools.append(pool)
        return pool


_TOO_LATE = f"No answer within {ATTEMPT_TIMEOUT:g} s."


def _leave(response: Any) -> None:
    """Keep the connection if the answer has no body. One that has is not waited for: it might never end."""
    if response.length_remaining == 0:
        response.release_conn()
    else:
        response.close()


def _is_timeout(error: Exception) -> bool:
    # urllib3 counts a refused connection among the time-outs.
    refused = isinstance(error, urllib3.exceptions.NewConnectionError)
    return isinstance(error, urllib3.exceptions.TimeoutError) and not refused


def _kind(error: BaseException) -> str:
    """The error in a word: the operating system's, where there is one, says more than urllib3's."""
    cause = error.__cause__ or error.__context__
    return type(cause or error).__name__
