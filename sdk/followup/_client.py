"""The two clients: their options, their connections and their groups of operations."""

from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import attrs
import httpx

from followup._annotations import SERVICE_VERSION
from followup._call import Call, run_call
from followup._connections import AsyncConnections, Connections
from followup._declarations import NOT_GIVEN, Async, Mode, NotGiven, Sync
from followup._drivers import drive, drive_async
from followup._errors import ConfigurationError
from followup._httpx_private import settle_for_asyncio
from followup._options import (
    DEFAULT_MAX_RETRIES,
    Options,
    checked_deadline,
    checked_retries,
    checked_timeout,
    options_from,
)
from followup._pagination import AsyncListing, Listing, Page
from followup._results import Result
from followup.resources import GROUP_NAMES, group_class

if TYPE_CHECKING:
    from followup.resources.account import AccountGroup
    from followup.resources.appointments import Appointments
    from followup.resources.doctors import Doctors
    from followup.resources.events import Events
    from followup.resources.intake_requests import IntakeRequests
    from followup.resources.patients import Patients
    from followup.resources.treatments import Treatments
    from followup.resources.visits import Visits
    from followup.resources.webhook_deliveries import WebhookDeliveries
    from followup.resources.webhook_endpoints import WebhookEndpoints

R = TypeVar("R", bound=Result)
T = TypeVar("T")

_USED_BY_EVERY_CALL = ("followup._codec.slow_path", "followup._network")
_USED_BY_ASYNC_CALLS = ("asyncio", "anyio", "anyio._backends._asyncio")


def _import_what_calls_use(*modules: str) -> None:
    """Import now what ``import followup`` leaves for later.

    A lock of the import system that another thread holds during a fork is never freed in the child, so a call must
    not import anything: a client that was made before a fork would hang in its first call after it.
    """
    for module in modules:
        import_module(module)
    for name in GROUP_NAMES:
        group_class(name)


class _Client(Generic[Mode]):
    """What both clients are: options, and the ten groups of operations."""

    _options: Options

    account: "AccountGroup[Mode]"
    patients: "Patients[Mode]"
    doctors: "Doctors[Mode]"
    appointments: "Appointments[Mode]"
    visits: "Visits[Mode]"
    intake_requests: "IntakeRequests[Mode]"
    treatments: "Treatments[Mode]"
    events: "Events[Mode]"
    webhook_endpoints: "WebhookEndpoints[Mode]"
    webhook_deliveries: "WebhookDeliveries[Mode]"

    if not TYPE_CHECKING:  # a type checker would take every misspelt name for one that is found here

        def __getattr__(self: Any, name: str) -> Any:
            # Asked only for what is not there yet: a group is made when it is first used, and kept.
            if name not in GROUP_NAMES:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            group = self.__dict__[name] = group_class(name)(self)
            return group

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *GROUP_NAMES]

    def __repr__(self) -> str:
        options = self._options
        return f"{type(self).__name__}(base_url={options.base_url!r}, service_version={options.service_version!r})"

    def __reduce__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be pickled or copied: it holds a key and connections")

    def with_options(
        self,
        *,
        timeout: float | httpx.Timeout | NotGiven = NOT_GIVEN,
        max_retries: int | NotGiven = NOT_GIVEN,
        deadline: float | None | NotGiven = NOT_GIVEN,
    ) -> Self:
        """A client with other options that shares this one's connections and does not own them.

        Args:
            timeout: seconds for each attempt as a whole, body included, or an ``httpx.Timeout`` for its parts.
            max_retries: how often a call is tried again, at most.
            deadline: seconds for one whole call, its retries, waits and body included; None for no deadline.

        Returns:
            A client to be used beside this one. Closing it closes nothing.

        Raises:
            ConfigurationError: an option that cannot be used; the text names it.
        """
        changes: dict[str, Any] = {}
        if not isinstance(timeout, NotGiven):
            changes["timeouts"], changes["attempt_seconds"] = checked_timeout(timeout)
        if not isinstance(max_retries, NotGiven):
            changes["max_retries"] = checked_retries(max_retries)
        if not isinstance(deadline, NotGiven):
            changes["deadline"] = checked_deadline(deadline)
        derived = object.__new__(type(self))
        derived.__dict__.update(self._shared())
        derived._options = attrs.evolve(self._options, **changes)
        return derived

    def _shared(self) -> dict[str, Any]:
        raise NotImplementedError


class FollowUp(_Client[Sync]):
    """The client of the service, for synchronous code. Thread-safe; a context manager.

    It may be made before a fork and used after it. Cookies are neither kept nor sent, and a response may have 64 MiB.

    Example::

        with FollowUp() as client:
            patient = client.patients.create(phone="+54 9 11 5555-0000", full_name="Ana Pérez")

    Args:
        api_key: the key; left out, the environment variable ``FOLLOWUP_API_KEY``.
        base_url: the API root that ``/v1`` is appended to; left out, ``FOLLOWUP_BASE_URL``.
        service_version: dated version of the service (specification, section 9).
        timeout: seconds for each attempt as a whole, body included; when omitted 30 s, of which 5 s to connect. Or an
            ``httpx.Timeout``, whose parts keep httpx's meaning: then only ``deadline`` bounds the whole.
        max_retries: how often a call is tried again, at most.
        deadline: seconds for one whole call, its retries, waits and body included; None for no deadline.
        http_client: an ``httpx.Client`` of your own; it stays open when this client is closed. Its timeouts hold
            when ``timeout`` is omitted. Its cookies are not sent. Only the process that made this client may use it.

    Raises:
        ConfigurationError: no key, no base URL, or an option that cannot be used.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        service_version: str = SERVICE_VERSION,
        timeout: float | httpx.Timeout | NotGiven = NOT_GIVEN,
        max_retries: int = DEFAULT_MAX_RETRIES,
        deadline: float | None = None,
        http_client: httpx.Client | None = None,
    ) -> None:
        if http_client is not None and not isinstance(http_client, httpx.Client):
            raise ConfigurationError("http_client must be an httpx.Client")
        self._options = options_from(
            api_key, base_url, service_version, timeout, max_retries, deadline, own_client=http_client is not None
        )
        _import_what_calls_use(*_USED_BY_EVERY_CALL)
        self._connections = Connections(http_client, tls=self._options.base_url.startswith("https:"))
        self._owns_connections = True

    def close(self) -> None:
        """Close the connections, unless they belong to another client."""
        if self._owns_connections:
            self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def perform(self, call: Call[R]) -> R:
        """Carry out a call. Used by the resource groups."""
        return drive(run_call(call, self._options), self._connections)

    def start_listing(self, listing: Listing[Any]) -> Page[Any]:
        """Fetch the first page of a list. Used by the resource groups."""
        return Page(listing, self.perform(listing.call), self.perform)

    def _shared(self) -> dict[str, Any]:
        return {"_connections": self._connections, "_owns_connections": False}


class AsyncFollowUp(_Client[Async]):
    """The client of the service, for asyncio. One client may serve many tasks, and event loops one after another.

    It may be made before a fork and used after it. Cookies are neither kept nor sent, and a response may have 64 MiB.

    Example::

        async with AsyncFollowUp() as client:
            patient = await client.patients.create(phone="+54 9 11 5555-0000", full_name="Ana Pérez")

    Args:
        api_key: the key; left out, the environment variable ``FOLLOWUP_API_KEY``.
        base_url: the API root that ``/v1`` is appended to; left out, ``FOLLOWUP_BASE_URL``.
        service_version: dated version of the service (specification, section 9).
        timeout: seconds for each attempt as a whole, body included; when omitted 30 s, of which 5 s to connect. Or an
            ``httpx.Timeout``, whose parts keep httpx's meaning: then only ``deadline`` bounds the whole.
        max_retries: how often a call is tried again, at most.
        deadline: seconds for one whole call, its retries, waits and body included; None for no deadline.
        http_client: an ``httpx.AsyncClient`` of your own; it stays open when this client is closed. Its timeouts hold
            when ``timeout`` is omitted. Its cookies are not sent. Only the process that made this client may use it.

    Raises:
        ConfigurationError: no key, no base URL, or an option that cannot be used.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        service_version: str = SERVICE_VERSION,
        timeout: float | httpx.Timeout | NotGiven = NOT_GIVEN,
        max_retries: int = DEFAULT_MAX_RETRIES,
        deadline: float | None = None,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        if http_client is not None and not isinstance(http_client, httpx.AsyncClient):
            raise ConfigurationError("http_client must be an httpx.AsyncClient")
        self._options = options_from(
            api_key, base_url, service_version, timeout, max_retries, deadline, own_client=http_client is not None
        )
        _import_what_calls_use(*_USED_BY_EVERY_CALL, *_USED_BY_ASYNC_CALLS)
        settle_for_asyncio()
        self._connections = AsyncConnections(http_client, tls=self._options.base_url.startswith("https:"))
        self._owns_connections = True

    async def close(self) -> None:
        """Close the connections of the running event loop, unless they belong to another client."""
        if self._owns_connections:
            await self._connections.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def perform(self, call: Call[R]) -> R:
        """Carry out a call. Used by the resource groups."""
        return await drive_async(run_call(call, self._options), self._connections)

    def start_listing(self, listing: Listing[Any]) -> AsyncListing[Any]:
        """A list, to be awaited or iterated over. Used by the resource groups."""
        return AsyncListing(listing, self.perform)

    def _shared(self) -> dict[str, Any]:
        return {"_connections": self._connections, "_owns_connections": False}
