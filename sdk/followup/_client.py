"""The two clients: options, connections and groups of operations."""

import functools
import inspect
import itertools
import logging
import os
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import attrs

from followup._core.api_rules import SERVICE_VERSION
from followup._core.call import options as _options
from followup._core.call.options import DEFAULT_MAX_RETRIES, AppInfo, Options
from followup._core.call.pagination import AsyncListing, Listing, Page
from followup._core.call.retries import run_call
from followup._core.call.steps import Call, drive, drive_async
from followup._core.codec.kinds import kind_of
from followup._core.declarations import lazy
from followup._core.errors import ConfigurationError
from followup._core.http.connections import AsyncConnections, Connections, import_transport
from followup._core.operations import NOT_GIVEN, NotGiven, StepsOfBatch
from followup._core.plain import Late
from followup._core.results import Result
from followup._core.time import TimeOf
from followup._core.tracebacks import clears_frames, clears_frames_of
from followup.resources.groups import AsyncGroups, SyncGroups

if TYPE_CHECKING:
    import httpx
else:
    httpx = Late("httpx")  # importing it takes as long as all that creates a client

T = TypeVar("T")


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Return an iterator of lists of this length; the last may be shorter.

    Raises:
        TypeError: the items are not iterable; raised by the call, not by the iteration.
    """
    remaining = iter(items)
    return iter(lambda: list(itertools.islice(remaining, size)), [])


async def batches_async(items: Iterable[T] | AsyncIterable[T], size: int) -> AsyncIterator[list[T]]:
    """Yield the items in lists of this length; the last may be shorter."""
    if not isinstance(items, AsyncIterable):
        for batch in batches(items, size):
            yield batch
        return
    waiting: list[T] = []
    async for item in items:
        waiting.append(item)
        if len(waiting) == size:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def telemetry_if_on() -> Any:
    """Return the module that records calls; None if the user has turned it off, or OpenTelemetry is missing.

    Raises:
        ConfigurationError: the environment variable ``FOLLOWUP_TELEMETRY`` is neither ``on`` nor ``off``.
    """
    # Anything else is an error: with a misspelt "off", spans would be exported that the user wanted to keep.
    setting = os.environ.get("FOLLOWUP_TELEMETRY", "").strip().lower()
    if setting not in ("", "on", "off"):
        raise ConfigurationError("FOLLOWUP_TELEMETRY must be on, which is the default, or off")
    return None if setting == "off" else _usable_telemetry()


@functools.cache
def _usable_telemetry() -> Any:
    try:
        from followup._core import telemetry
    except ImportError:  # not installed, or an older version than the extra requires
        return None
    except Exception as error:  # noqa: BLE001 - a wrong setting of OpenTelemetry must not stop the calls
        message = "no telemetry, because OpenTelemetry cannot be imported: %s"
        logging.getLogger("followup").warning(message, type(error).__name__)
        return None
    return telemetry


def _import_all_that_calls_need() -> None:
    import_transport()
    import_module("httpx")  # which errors need


# A lock of the import system that another thread holds during a fork is never released in the child, where a first call
# that imports anything could hang.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_import_all_that_calls_need)


HttpClient = TypeVar("HttpClient", bound="httpx.Client | httpx.AsyncClient")
AnyConnections = TypeVar("AnyConnections", bound=Connections | AsyncConnections)
AnyClient = TypeVar("AnyClient", bound="_Client[Any, Any]")
R = TypeVar("R", bound=Result)


@clears_frames_of
class _Client(Generic[HttpClient, AnyConnections]):
    """The base of both clients: options and connections."""

    _http_client_class: ClassVar[str]

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        service_version: str = SERVICE_VERSION,
        timeout: "float | httpx.Timeout | NotGiven" = NOT_GIVEN,
        max_retries: int = DEFAULT_MAX_RETRIES,
        deadline: float | None = None,
        requests_per_minute: int | None = None,
        http_client: HttpClient | None = None,
        app_info: AppInfo | None = None,
    ) -> None:
        """Create a client. Nothing is sent yet.

        Args:
            api_key: API key. Defaults to the environment variable ``FOLLOWUP_API_KEY``.
            base_url: API root that ``/v1`` is appended to. Defaults to the environment variable ``FOLLOWUP_BASE_URL``.
            service_version: dated version of the service (specification, section 9).
            timeout: seconds for each attempt as a whole, body included. Defaults to 30 s, of which at most 5 s to
                connect. With an ``httpx.Timeout``, each part has httpx's meaning, and only ``deadline`` limits the
                attempt as a whole.
            max_retries: maximum number of retries of a call.
            deadline: seconds for one whole call, including retries, waits and body; None for no deadline.
            requests_per_minute: maximum number of requests in any 60 s; further requests wait. It counts retries, and
                the requests of all threads and tasks and of clients derived with ``with_options``. None for no limit.
            http_client: your own ``httpx.Client`` (for ``AsyncFollowUp``: ``httpx.AsyncClient``). Closing this client
                does not close it. Its timeouts apply when ``timeout`` is omitted; cookies, hooks, proxies and limits
                are its own. It cannot be used in another process, such as after a fork.
            app_info: your program or plugin, whose name, version and URL the service's support sees in ``User-Agent``:
                ``followup-python/0.1.0 Clinic/1.2 (https://clinic.example)``.

        Raises:
            ConfigurationError: an option is missing or invalid, or the environment variable ``FOLLOWUP_TELEMETRY`` or
                ``FOLLOWUP_LOG`` is; the message names it.
        """
        _options.show_log()
        if http_client is not None:
            import httpx

            if not isinstance(http_client, getattr(httpx, self._http_client_class)):
                expected = f"an httpx.{self._http_client_class}"
                raise ConfigurationError(f"http_client must be {expected}, not {kind_of(http_client)}")
        options = _options.options_from(
            api_key,
            base_url,
            service_version,
            timeout,
            max_retries,
            deadline,
            requests_per_minute,
            app_info,
            own_client=http_client is not None,
        )
        if (telemetry := telemetry_if_on()) is not None:
            options = attrs.evolve(options, observe=telemetry.CallObserver(options.base_url))
        self._set_up(options, self._connect(http_client, options), owns_connections=True)

    def _set_up(self, options: Options, connections: AnyConnections, *, owns_connections: bool) -> None:
        self._options = options
        self._connections: AnyConnections = connections
        self._owns_connections = owns_connections

    def _connect(self, own: HttpClient | None, options: Options) -> AnyConnections:
        raise NotImplementedError

    def with_options(
        self: AnyClient,
        *,
        timeout: "float | httpx.Timeout | NotGiven" = NOT_GIVEN,
        max_retries: int | NotGiven = NOT_GIVEN,
        deadline: float | None | NotGiven = NOT_GIVEN,
        app_info: AppInfo | None | NotGiven = NOT_GIVEN,
    ) -> AnyClient:  # not Self, which jedi does not follow
        """Return a client with other options that shares the connections of this one.

        Omitted options stay unchanged. The ``requests_per_minute`` limit is shared as well.

        Args:
            timeout: seconds for each attempt as a whole, body included, or an ``httpx.Timeout`` for its parts.
            max_retries: maximum number of retries of a call.
            deadline: seconds for one whole call, including retries, waits and body; None for no deadline.
            app_info: the program or plugin that uses the new client, for ``User-Agent``; None for none.

        Returns:
            A new client. Closing it does not close the shared connections.

        Raises:
            ConfigurationError: an option is invalid; the message names it.
        """
        changes: dict[str, Any] = {}
        if not isinstance(timeout, NotGiven):
            changes["timeouts"], changes["attempt_seconds"] = _options.checked_timeout(timeout)
        if not isinstance(max_retries, NotGiven):
            changes["max_retries"] = _options.checked_retries(max_retries)
        if not isinstance(deadline, NotGiven):
            changes["deadline"] = _options.checked_deadline(deadline)
        if not isinstance(app_info, NotGiven):
            changes["user_agent"] = _options.user_agent_with(app_info)
        # The constructor is not called, because it reads the environment and opens connections. A parameter that
        # turned this off would be visible to every user in its signature.
        derived = self.__new__(type(self))
        # The attributes of a subclass, except those that are computed from this client.
        for name, value in vars(self).items():
            if not isinstance(inspect.getattr_static(type(self), name, None), (lazy, functools.cached_property)):
                setattr(derived, name, value)
        # It owns nothing: whoever closes it must not close the connections of the client that it is derived from.
        derived._set_up(attrs.evolve(self._options, **changes), self._connections, owns_connections=False)
        return derived

    def _live_in(self, time_of: TimeOf, transport: object = None) -> None:
        """Let this client, and those derived from it, live in virtual time. It has not made a call yet.

        Args:
            time_of: returns the time of a client by its API key.
            transport: a transport of httpx that sends its requests; None to send them as ever.
        """
        self._options = attrs.evolve(self._options, time=time_of(self._options.api_key))
        self._connections.transport = transport

    def __repr__(self) -> str:
        options = self._options
        return f"{type(self).__name__}(base_url={options.base_url!r}, service_version={options.service_version!r})"

    def __reduce__(self) -> Any:
        raise TypeError(f"{type(self).__name__} clients cannot be pickled or copied: they hold a key and connections")


class FollowUp(SyncGroups, _Client["httpx.Client", Connections]):
    """The synchronous client of the service: thread-safe, and a context manager.

    It may be created before a fork and used after it. Without an ``http_client`` it neither stores nor sends cookies.
    It rejects responses of more than 64 MiB. Every operation may raise an ``APIStatusError``, an ``APIConnectionError``
    or a ``ResponseDecodeError``, and for an invalid argument a ``ValueError`` or ``TypeError`` before anything is sent.

    Example::

        with FollowUp() as client:
            patient = client.patients.create(phone="+54 9 11 5555-0000", full_name="Ana Pérez")
    """

    _http_client_class = "Client"

    def _connect(self, own: "httpx.Client | None", options: Options) -> Connections:
        return Connections(options.base_url, own)

    def _perform(self, call: Call[R]) -> R:
        # Once for each call, and not for each attempt: a call stays in the time in which it began.
        options = self._options.at_present()
        return drive(run_call(call, options), self._connections.send, options.time)

    def _start_listing(self, listing: Listing[Any]) -> Page[Any]:
        return Page(listing, self._perform(listing.call), self._perform)

    def _perform_batches(self, items: Iterable[Any], size: int, steps_of: StepsOfBatch) -> Iterator[Any]:
        # Not a generator itself: what is no iterable raises here, and not at the first result.
        return self._results(batches(items, size), steps_of)

    @clears_frames
    def _results(self, batches: Iterator[list[Any]], steps_of: StepsOfBatch) -> Iterator[Any]:
        for batch in batches:
            options = self._options.at_present()
            yield from drive(steps_of(batch, options), self._connections.send, options.time)

    def close(self) -> None:
        """Close the connections, unless they belong to another client or to your own ``http_client``."""
        if self._owns_connections:
            self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncFollowUp(AsyncGroups, _Client["httpx.AsyncClient", AsyncConnections]):
    """The asynchronous client of the service, for asyncio: an asynchronous context manager.

    One client can be used by many tasks, and in one event loop after another. It may be created before a fork and used
    after it. Without an ``http_client`` it neither stores nor sends cookies. It rejects responses of more than 64 MiB.
    Every operation may raise an ``APIStatusError``, an ``APIConnectionError`` or a ``ResponseDecodeError``, and for an
    invalid argument a ``ValueError`` or ``TypeError`` before anything is sent.

    Example::

        async with AsyncFollowUp() as client:
            patient = await client.patients.create(phone="+54 9 11 5555-0000", full_name="Ana Pérez")
    """

    _http_client_class = "AsyncClient"

    def _connect(self, own: "httpx.AsyncClient | None", options: Options) -> AsyncConnections:
        # Now, because an import in a call would block the event loop.
        _import_all_that_calls_need()
        return AsyncConnections(options.base_url, own)

    @clears_frames
    async def _perform(self, call: Call[R]) -> R:
        options = self._options.at_present()
        return await drive_async(run_call(call, options), self._connections.send, options.time)

    def _start_listing(self, listing: Listing[Any]) -> AsyncListing[Any]:
        return AsyncListing(listing, self._perform)

    @clears_frames
    async def _perform_batches(
        self, items: Iterable[Any] | AsyncIterable[Any], size: int, steps_of: StepsOfBatch
    ) -> AsyncIterator[Any]:
        async for batch in batches_async(items, size):
            options = self._options.at_present()
            results = await drive_async(steps_of(batch, options), self._connections.send, options.time)
            for result in results:
                yield result

    async def close(self) -> None:
        """Close the connections of the running event loop.

        Those that belong to another client or to your own ``http_client`` stay open.
        """
        if self._owns_connections:
            await self._connections.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
