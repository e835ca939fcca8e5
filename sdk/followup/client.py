"""The two clients: their options, and the drivers that carry calls over httpx."""

import contextvars
import logging
import math
import os
import queue
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar
from urllib.parse import urlsplit

import attrs
import httpx

from followup.connections import AsyncConnections, Connections
from followup.contract import SERVICE_VERSION
from followup.errors import ConfigurationError
from followup.exchange import Call, DeadlineReached, Options, Outcome, Send, Wait, exchange
from followup.models import Result
from followup.operation import NOT_GIVEN, Async, Mode, NotGiven, Sync
from followup.pagination import AsyncListing, Listing, Page
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

DEFAULT_TIMEOUT = httpx.Timeout(30.0, connect=5.0)
DEFAULT_MAX_RETRIES = 2

_ours: contextvars.ContextVar[bool] = contextvars.ContextVar("followup_request", default=False)


def _not_ours(_: logging.LogRecord) -> bool:
    return not _ours.get()


# httpx logs whole URLs at INFO, with phones and documents in the query. Not for our requests; others stay as they are.
logging.getLogger("httpx").addFilter(_not_ours)


@contextmanager
def _unlogged_by_httpx() -> Iterator[None]:
    token = _ours.set(True)
    try:
        yield
    finally:
        _ours.reset(token)


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
            timeout: seconds, or an ``httpx.Timeout``, for each attempt.
            max_retries: how often a call is tried again, at most.
            deadline: seconds for one whole call, its retries, waits and body included; None for no deadline.
        """
        changes: dict[str, Any] = {}
        if not isinstance(timeout, NotGiven):
            changes["timeout"] = _checked_timeout(timeout)
        if not isinstance(max_retries, NotGiven):
            changes["max_retries"] = _checked_retries(max_retries)
        if not isinstance(deadline, NotGiven):
            changes["deadline"] = _checked_deadline(deadline)
        derived = object.__new__(type(self))
        derived.__dict__.update(self._shared())
        derived._options = attrs.evolve(self._options, **changes)
        return derived

    def _shared(self) -> dict[str, Any]:
        raise NotImplementedError


class FollowUp(_Client[Sync]):
    """The client of the service, for synchronous code. Thread-safe; a context manager.

    Example::

        with FollowUp() as client:
            patient = client.patients.create(phone="+54 9 11 5555-0000", full_name="Ana Pérez")

    Args:
        api_key: the key; left out, the environment variable ``FOLLOWUP_API_KEY``.
        base_url: the API root that ``/v1`` is appended to; left out, ``FOLLOWUP_BASE_URL``.
        service_version: dated version of the service (specification, section 9).
        timeout: seconds, or an ``httpx.Timeout``, for each attempt; 30 s, and 5 s to connect, when left out.
        max_retries: how often a call is tried again, at most.
        deadline: seconds for one whole call, its retries, waits and body included; None for no deadline.
        http_client: an ``httpx.Client`` of your own; it stays open when this client is closed.

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
        self._options = _options(
            api_key, base_url, service_version, timeout, max_retries, deadline, own_client=http_client is not None
        )
        self._connections = Connections(http_client)
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
        steps = exchange(call, self._options)
        step = next(steps)
        while True:
            try:
                step = steps.send(self._take(step))
            except StopIteration as done:
                result: R = done.value
                return result

    def start_listing(self, listing: Listing[Any]) -> Page[Any]:
        """Fetch the first page of a list. Used by the resource groups."""
        return Page(listing, self.perform(listing.call), self.perform)

    def _shared(self) -> dict[str, Any]:
        return {"_connections": self._connections, "_owns_connections": False}

    def _take(self, step: Send | Wait) -> Outcome:
        if isinstance(step, Wait):
            time.sleep(step.seconds)
            return None
        client = self._connections.client()
        if step.seconds is None:
            return _send(client, step)
        return _send_within(client, step, step.seconds)


class AsyncFollowUp(_Client[Async]):
    """The client of the service, for asyncio. One client may serve many tasks, and event loops one after another.

    Example::

        async with AsyncFollowUp() as client:
            patient = await client.patients.create(phone="+54 9 11 5555-0000", full_name="Ana Pérez")

    Args:
        api_key: the key; left out, the environment variable ``FOLLOWUP_API_KEY``.
        base_url: the API root that ``/v1`` is appended to; left out, ``FOLLOWUP_BASE_URL``.
        service_version: dated version of the service (specification, section 9).
        timeout: seconds, or an ``httpx.Timeout``, for each attempt; 30 s, and 5 s to connect, when left out.
        max_retries: how often a call is tried again, at most.
        deadline: seconds for one whole call, its retries, waits and body included; None for no deadline.
        http_client: an ``httpx.AsyncClient`` of your own; it stays open when this client is closed.

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
        self._options = _options(
            api_key, base_url, service_version, timeout, max_retries, deadline, own_client=http_client is not None
        )
        self._connections = AsyncConnections(http_client)
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
        steps = exchange(call, self._options)
        step = next(steps)
        while True:
            try:
                step = steps.send(await self._take(step))
            except StopIteration as done:
                result: R = done.value
                return result

    def start_listing(self, listing: Listing[Any]) -> AsyncListing[Any]:
        """A list, to be awaited or iterated over. Used by the resource groups."""
        return AsyncListing(listing, self.perform)

    def _shared(self) -> dict[str, Any]:
        return {"_connections": self._connections, "_owns_connections": False}

    async def _take(self, step: Send | Wait) -> Outcome:
        import asyncio  # costs as much as the rest of the package, and synchronous code does not need it

        if isinstance(step, Wait):
            await asyncio.sleep(step.seconds)
            return None
        client = self._connections.client()
        limit = asyncio.timeout(step.seconds)
        try:
            async with limit:
                return await _send_async(client, step)
        except TimeoutError:
            if not limit.expired():
                raise
            return DeadlineReached()


def _request(client: httpx.Client | httpx.AsyncClient, step: Send) -> httpx.Request:
    timeout = httpx.USE_CLIENT_DEFAULT if step.timeout is None else step.timeout
    return client.build_request(step.method, step.url, headers=step.headers, content=step.content, timeout=timeout)


def _send(client: httpx.Client, step: Send) -> Outcome:
    try:
        with _unlogged_by_httpx():
            return client.send(_request(client, step), auth=None, follow_redirects=False)
    except httpx.RequestError as failure:
        return failure


async def _send_async(client: httpx.AsyncClient, step: Send) -> Outcome:
    try:
        with _unlogged_by_httpx():
            return await client.send(_request(client, step), auth=None, follow_redirects=False)
    except httpx.RequestError as failure:
        return failure


def _send_within(client: httpx.Client, step: Send, seconds: float) -> Outcome:
    """Send and read the whole body, or stop when the time is up.

    httpx bounds each read, not their sum, and nothing bounds a look-up of a name; so the attempt runs in a thread of
    its own that this one stops waiting for. The thread ends with its next chunk, or with its read timeout.
    """
    ends = time.monotonic() + seconds
    done: queue.SimpleQueue[Outcome | BaseException] = queue.SimpleQueue()

    def attempt() -> None:
        try:
            done.put(_stream(client, step, ends))
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            done.put(error)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(attempt,), name="followup-deadline", daemon=True).start()
    try:
        outcome = done.get(timeout=seconds)
    except queue.Empty:
        return DeadlineReached()
    if isinstance(outcome, BaseException) and not isinstance(outcome, (httpx.RequestError, DeadlineReached)):
        raise outcome
    return outcome


def _stream(client: httpx.Client, step: Send, ends: float) -> Outcome:
    try:
        with _unlogged_by_httpx():
            response = client.send(_request(client, step), stream=True, auth=None, follow_redirects=False)
            try:
                body = b"".join(_until(ends, response.iter_bytes()))
            finally:
                response.close()
    except (httpx.RequestError, DeadlineReached) as failure:
        return failure
    return httpx.Response(response.status_code, headers=_decoded_headers(response.headers), content=body)


def _until(ends: float, chunks: Iterator[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        if time.monotonic() > ends:
            raise DeadlineReached
        yield chunk


def _decoded_headers(headers: httpx.Headers) -> httpx.Headers:
    """Headers of a body that is already decoded: without what would have it decoded again."""
    kept = headers.copy()
    for name in ("content-encoding", "transfer-encoding"):
        kept.pop(name, None)
    return kept


def _options(
    api_key: str | None,
    base_url: str | None,
    service_version: str,
    timeout: float | httpx.Timeout | NotGiven,
    max_retries: int,
    deadline: float | None,
    *,
    own_client: bool,
) -> Options:
    if not isinstance(timeout, NotGiven):
        checked_timeout: httpx.Timeout | None = _checked_timeout(timeout)
    else:
        checked_timeout = None if own_client else DEFAULT_TIMEOUT
    return Options(
        api_key=_checked_key(_given_or_environment("api_key", api_key, "FOLLOWUP_API_KEY")),
        base_url=_checked_base_url(_given_or_environment("base_url", base_url, "FOLLOWUP_BASE_URL")),
        service_version=_checked_version(service_version),
        timeout=checked_timeout,
        max_retries=_checked_retries(max_retries),
        deadline=_checked_deadline(deadline),
    )


def _given_or_environment(option: str, value: object, variable: str) -> str:
    value = os.environ.get(variable) if value is None else value
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError(f"no {option}: pass {option}=..., or set the environment variable {variable}")
    return value


_VISIBLE = re.compile(r"[\x21-\x7e]+")


def _checked_key(key: str) -> str:
    if not _VISIBLE.fullmatch(key):
        raise ConfigurationError("api_key must be visible ASCII characters, without spaces or line ends")
    return key


def _checked_version(version: object) -> str:
    if not isinstance(version, str) or not _VISIBLE.fullmatch(version):
        raise ConfigurationError(f'service_version must be a dated version such as "{SERVICE_VERSION}"')
    return version


def _checked_base_url(url: str) -> str:
    # The URL itself is not shown: it may hold a password.
    problem = 'base_url must be an http or https URL such as "https://api.example.com"'
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL):
        raise ConfigurationError(problem) from None
    if not valid or not _VISIBLE.fullmatch(url):
        raise ConfigurationError(problem)
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError(f"{problem}, without user name and password")
    if parts.query or parts.fragment:
        raise ConfigurationError(f"{problem}, without query and fragment")
    if parts.path.rstrip("/").endswith("/v1"):
        raise ConfigurationError(f"{problem}, without /v1, which is appended to it")
    return url.rstrip("/")


def _checked_timeout(timeout: object) -> httpx.Timeout:
    if isinstance(timeout, httpx.Timeout):
        return timeout
    return httpx.Timeout(_seconds("timeout", timeout))


def _checked_deadline(deadline: object) -> float | None:
    return None if deadline is None else _seconds("deadline", deadline)


def _seconds(option: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        raise ConfigurationError(f"{option} must be a number of seconds above 0")
    return float(value)


def _checked_retries(retries: object) -> int:
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise ConfigurationError("max_retries must be a whole number, 0 or more")
    return retries
