"""``MockService``: the whole service in this process. The one place where everything is put together."""

from types import TracebackType
from typing import Any, ClassVar, Self, Unpack

import httpx

from followup import AsyncFollowUp, FollowUp
from followup._for_mockserver import WEBHOOK_ATTEMPT_TIMEOUT
from followup_mockserver.control import Control
from followup_mockserver.engine import Engine
from followup_mockserver.gateway.pipeline import Gateway
from followup_mockserver.http.app import create_app
from followup_mockserver.http.guard import Guard
from followup_mockserver.http.waiting import WaitingCalls
from followup_mockserver.options import MockOptions, Options
from followup_mockserver.rules import doctors, intake_requests, messages, reminders, stages
from followup_mockserver.state.registry import DEFAULT_KEY, Registry
from followup_mockserver.transport import InProcessTransport
from followup_mockserver.webhooks import deliveries
from followup_mockserver.webhooks.mounts import Mounts

SUBSCRIBERS = (
    reminders.on_domain_event,
    stages.on_domain_event,
    messages.on_domain_event,
    deliveries.on_domain_event,
    intake_requests.on_domain_event,
)
"""Who reacts to domain events, in this order. The last publishes events of its own, which follow the first."""

IN_PROCESS_HOST = "followup.mock"
IN_PROCESS_URL = f"http://{IN_PROCESS_HOST}"


class Mock(Control):
    """A mock of the service, put together: its registry, its engine and its WSGI application, ``app``."""

    _attempt_timeout: ClassVar[float] = WEBHOOK_ATTEMPT_TIMEOUT
    """Seconds that a receiver has to respond to a webhook (specification, section 8); no option."""

    def __init__(self, options: Options, *, threaded: bool, guard: Guard) -> None:
        registry, mounts = Registry(options, SUBSCRIBERS, doctors.add_roster), Mounts()
        engine = Engine(registry, mounts, threaded=threaded, attempt_timeout=self._attempt_timeout)
        super().__init__(registry, engine, mounts)
        self._gateway = Gateway(registry)
        self._guard = guard
        self._waiting_calls = WaitingCalls()
        self.app = create_app(self)

    @property
    def api_key(self) -> str:
        """The key of the default organization."""
        return DEFAULT_KEY

    def close(self) -> None:
        """Stop the background scheduler and the workers, and close the connections to receivers."""
        self._engine.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class MockService(Mock):
    """The whole service in this process, without a socket; a context manager. Nothing runs in the background.

    Due jobs, first webhook attempts included, run when ``advance()`` is called, in the calling thread.

    Args:
        options: those of ``serve``, as ``MockOptions`` tells.

    Raises:
        ValueError: an option that cannot be used; the text names it.
    """

    def __init__(self, **options: Unpack[MockOptions]) -> None:
        super().__init__(Options(**options), threaded=False, guard=Guard(IN_PROCESS_HOST))
        self.url = IN_PROCESS_URL

    def client(self, **options: Any) -> FollowUp:
        """A client of this service, for the default organization; ``options`` are those of ``FollowUp``."""
        transport = InProcessTransport(self.app)
        return FollowUp(**self._options(options, httpx.Client(transport=transport)))

    def async_client(self, **options: Any) -> AsyncFollowUp:
        """An asynchronous client of this service; ``options`` are those of ``AsyncFollowUp``."""
        transport = InProcessTransport(self.app)
        return AsyncFollowUp(**self._options(options, httpx.AsyncClient(transport=transport)))

    def _options(self, options: dict[str, Any], http_client: httpx.Client | httpx.AsyncClient) -> dict[str, Any]:
        return {"api_key": self.api_key, "base_url": self.url, "http_client": http_client, **options}
