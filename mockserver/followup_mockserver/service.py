"""``MockService``: the whole service in this process. The one place where everything is put together."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import httpx

from followup import AsyncFollowUp, FollowUp
from followup_mockserver.control import Control, checked_instant
from followup_mockserver.delivery.mounts import Mounts
from followup_mockserver.engine import Engine
from followup_mockserver.errors import ServiceError
from followup_mockserver.options import Options
from followup_mockserver.rules import deliveries, messages, reminders
from followup_mockserver.shapes import is_loopback_http_url
from followup_mockserver.transport import InProcessTransport
from followup_mockserver.wire.app import create_app
from followup_mockserver.wire.guard import Guard
from followup_mockserver.worlds import DEFAULT_KEY, Worlds

SUBSCRIBERS = (reminders.on_fact, messages.on_fact, deliveries.on_fact)
"""What reacts to what happens."""

IN_PROCESS_URL = "http://followup.mock"


class Mock(Control):
    """A mock of the service, put together: its worlds, its engine and its WSGI application, ``app``."""

    def __init__(self, options: Options, *, threaded: bool, guard: Guard = Guard()) -> None:
        worlds, mounts = Worlds(options, SUBSCRIBERS), Mounts()
        super().__init__(worlds, Engine(worlds, mounts, threaded=threaded), mounts)
        self.options = options
        self.app = create_app(worlds, self._engine, mounts, guard)

    @property
    def api_key(self) -> str:
        """The key of the default organization."""
        return DEFAULT_KEY


class MockService(Mock):
    """The whole service in this process, without a socket. Nothing happens behind a test's back.

    What is due, first webhook attempts included, runs when ``advance()`` is called, in the calling thread.

    Args:
        rate_limit: requests per minute and key; 0 for no limit.
        start_time: the clock stands at this time; an aware datetime or an ISO 8601 string. Left out: it runs.
        allow_http_webhooks: also take webhook URLs that are http to a loopback address.
        forward_to: send every webhook to this URL instead of the endpoint's own.
        seed: makes ids and secrets the same in every run.

    Raises:
        ValueError: an option that cannot be used; the text names it.
    """

    def __init__(
        self,
        *,
        rate_limit: int = 600,
        start_time: datetime | str | None = None,
        allow_http_webhooks: bool = False,
        forward_to: str | None = None,
        seed: int | None = None,
        idempotency_hours: float = 24.0,
        refuse_unknown_fields: bool = True,
    ) -> None:
        super().__init__(
            checked_options(
                rate_limit=rate_limit,
                start_time=start_time,
                allow_http_webhooks=allow_http_webhooks,
                forward_to=forward_to,
                seed=seed,
                idempotency_hours=idempotency_hours,
                refuse_unknown_fields=refuse_unknown_fields,
            ),
            threaded=False,
        )
        self.url = IN_PROCESS_URL

    def client(self, **options: Any) -> FollowUp:
        """A client of this service, for the default organization; ``options`` are those of ``FollowUp``."""
        return self._client(FollowUp, httpx.Client, options)

    def async_client(self, **options: Any) -> AsyncFollowUp:
        """An asynchronous client of this service; ``options`` are those of ``AsyncFollowUp``."""
        return self._client(AsyncFollowUp, httpx.AsyncClient, options)

    def _client(self, kind: Callable[..., Any], http_kind: Callable[..., Any], options: dict[str, Any]) -> Any:
        http_client = http_kind(transport=InProcessTransport(self.app))
        return kind(**{"api_key": self.api_key, "base_url": self.url, "http_client": http_client, **options})


def checked_options(
    *,
    rate_limit: int = 600,
    start_time: datetime | str | None = None,
    allow_http_webhooks: bool = False,
    forward_to: str | None = None,
    seed: int | None = None,
    idempotency_hours: float = 24.0,
    refuse_unknown_fields: bool = True,
) -> Options:
    """The options of a mock.

    Raises:
        ValueError: one that cannot be used; the text names it.
    """
    if isinstance(rate_limit, bool) or not isinstance(rate_limit, int) or rate_limit < 0:
        raise ValueError("rate_limit must be a whole number, 0 or more")
    if idempotency_hours <= 0:
        raise ValueError("idempotency_hours must be more than 0")
    if forward_to is not None and not _is_target(forward_to):
        raise ValueError("forward_to must be an https URL, or an http URL of this machine")
    return Options(
        rate_limit=rate_limit,
        start_time=None if start_time is None else _start(start_time),
        allow_http_webhooks=allow_http_webhooks,
        forward_to=forward_to,
        seed=seed,
        idempotency_hours=idempotency_hours,
        refuse_unknown_fields=refuse_unknown_fields,
    )


def _start(start_time: datetime | str) -> datetime:
    try:
        return checked_instant(start_time, "start_time").astimezone(UTC)
    except (ServiceError, OverflowError):
        raise ValueError("start_time must be a time with an offset, such as 2026-09-28T12:00:00Z") from None


def _is_target(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return (parts.scheme == "https" and bool(parts.hostname)) or is_loopback_http_url(url)
