"""The mock as a whole: ``MockService`` in memory, and ``Mock``, which assembles the parts of either kind of mock."""

import asyncio
import functools
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, Unpack, cast
from urllib.parse import urlsplit

import attrs
import httpx

import followup
from followup import _for_mockserver as sdk
from followup_mockserver import deliveries
from followup_mockserver.control import Control
from followup_mockserver.control.background import BackgroundEngine
from followup_mockserver.control.engine import Engine
from followup_mockserver.deliveries.dispatch import Dispatcher
from followup_mockserver.deliveries.mounts import Mounts, call_wsgi, environ_of, run_wsgi
from followup_mockserver.gateway.pipeline import Gateway
from followup_mockserver.rules import doctors, intake_requests, patients, reminders
from followup_mockserver.web.app import App, served
from followup_mockserver.web.control import Guard
from followup_mockserver.world.schema.errors import InvalidArgument, boolean
from followup_mockserver.world.schema.formats import is_local
from followup_mockserver.world.settings import ClientOptions, MockOptions, Options, options_of
from followup_mockserver.world.state.faults import ConnectionDropped, ResponseTooLate, WSGIApp
from followup_mockserver.world.state.registry import DEFAULT_KEY, Registry
from followup_mockserver.world.state.snapshots import SnapshotSource, prepare
from followup_mockserver.world.state.tenant_access import VirtualTime

if TYPE_CHECKING:
    from flask import Flask

AnyClient = TypeVar("AnyClient", "followup.FollowUp", "followup.AsyncFollowUp")

SUBSCRIBERS = (
    reminders.keep_reminders,
    patients.keep_stage,
    reminders.schedule_post_visit,
    deliveries.on_domain_event,
    intake_requests.on_domain_event,
)
"""The functions that react to domain events, in this order. The last publishes further events."""

IN_PROCESS_HOST = "followup.mock"
IN_PROCESS_URL = f"http://{IN_PROCESS_HOST}"


class Mock(Control):
    """A mock with all its parts: tenants, engine, gateway and WSGI application.

    Args:
        options: the options of the mock.
        threaded: whether jobs run in the background, on threads, or only when ``advance`` is called.
        guard: decides which requests may use the control API.
        network: whether webhooks for URLs at which nothing is mounted are sent over the network.
    """

    _attempt_timeout: ClassVar[float] = sdk.WEBHOOK_ATTEMPT_TIMEOUT
    """Seconds that a receiver has to respond (specification, section 8). Only tests of the mock itself change it."""

    def __init__(self, options: Options, *, threaded: bool, guard: Guard, network: bool = True) -> None:
        registry = Registry(options, SUBSCRIBERS, doctors.add_roster, virtual_time=not threaded)
        mounts = Mounts()
        dispatcher = Dispatcher(mounts, in_process=not threaded, timeout=self._attempt_timeout, network=network)
        super().__init__(registry, (BackgroundEngine if threaded else Engine)(registry, dispatcher), mounts)
        self._gateway = Gateway(registry)
        self._guard = guard
        self._wsgi_app = served(self)

    @functools.cached_property
    def app(self) -> "Flask":
        """The Flask application of this mock alone, for other WSGI tools.

        It has the API under ``/v1`` and ``/api/v1``, its contract at ``/api/v1/openapi.json``, the control API under
        ``/_mock``, and the dashboard at ``/_mock/``.
        """
        return App(self)

    @property
    def url(self) -> str:
        """The base URL of clients."""
        raise NotImplementedError

    @property
    def api_key(self) -> str:
        """The API key of the default organization: ``fu_test_mock``, unless a snapshot without this key was loaded."""
        keys = self._access.registry.default.keys
        return DEFAULT_KEY if DEFAULT_KEY in keys else next(iter(keys))

    def client(self, **options: Unpack[ClientOptions]) -> followup.FollowUp:
        """Return a client of this mock, for the default organization. That of a ``MockService`` never sleeps.

        Args:
            options: options of ``FollowUp``, such as ``max_retries``, or ``api_key`` for another organization.

        Returns:
            A new client, which the caller closes.
        """
        return self._connected(followup.FollowUp(**self._options(options)), options)

    def async_client(self, **options: Unpack[ClientOptions]) -> followup.AsyncFollowUp:
        """Return an asynchronous client of this mock, for the default organization; see ``client``.

        Args:
            options: options of ``AsyncFollowUp``, such as ``max_retries``, or ``api_key`` for another organization.

        Returns:
            A new client, which the caller closes.
        """
        return self._connected(followup.AsyncFollowUp(**self._options(options)), options)

    def _options(self, passed: ClientOptions) -> dict[str, Any]:
        return {"api_key": self.api_key, "base_url": self.url, **passed}

    def _connected(self, client: AnyClient, options: ClientOptions) -> AnyClient:  # noqa: ARG002
        return client

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"

    def close(self) -> None:
        """Stop the threads, and shut the mounted applications down. Closing twice does no harm."""
        self._engine.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@sdk.clears_frames_of
class MockService(Mock):
    """A mock of the patient follow-up service in this process, without a socket; a context manager.

    It has all 32 operations, with validation, idempotency keys, pagination, rate limit, reminders and signed webhooks
    as in the specification, and keeps everything in memory. Its clients call it directly::

        with MockService(start_time="2026-09-28T12:00:00Z") as service:
            client = service.client()
            client.appointments.create(
                patient={"phone": "+5491155550000"}, start_at=service.clock.now + timedelta(days=3)
            )
            service.advance(days=3)
            assert [message.kind for message in service.messages] == ["reminder", "reminder"]

    **Time.** Nothing runs in the background. Reminders, other messages to patients and webhook attempts, the first ones
    included, are jobs, and ``advance`` or ``step`` runs those that are due, in order of time, in the calling thread.
    ``jobs`` and ``reminders`` list what is due later. The clock runs with real time; with ``start_time`` it is frozen.

    **Webhooks.** ``mount`` delivers the webhooks of a URL to an application in this process. Nothing leaves
    the process: an attempt for a URL at which nothing is mounted fails, unless ``allow_network`` is set. ``deliveries``
    and ``attempts`` list what has been sent, ``trigger`` sends an event of any type, and ``resend`` retries a delivery.

    **Faults.** ``add_fault`` makes API calls fail, and ``disturb`` makes webhook deliveries fail. ``requests`` lists
    the API calls.

    **Patients and staff.** ``receive_reply``, ``report_silence``, ``hand_off_conversation``, ``update_patient``,
    ``answer_intake_request``, ``load_intake_request``, ``discard_intake_request``, ``add_doctor`` and ``update_doctor``
    do what happens outside the API, and ``messages`` lists what was written to patients. ``add_appointment``,
    ``confirm_appointment``, ``reschedule_appointment``, ``cancel_appointment`` and ``add_visit`` act as the service's
    agent, the team or the practice system, and ``receive_event`` lets an event enter from another source than the API.

    **Organizations.** At the start there is one test organization with both service lines, a small roster of doctors
    and one key, ``api_key``, with all scopes. ``update_organization``, ``add_api_key`` and ``update_api_key`` configure
    it. ``create_organization`` adds an isolated one, and ``organization(key)`` returns its test controls. ``reset``
    returns to the state at start.

    Attributes:
        app: the Flask application, for other WSGI tools; made when it is first read.

    Args:
        allow_network: whether webhooks for URLs at which nothing is mounted are sent over the network. Without it,
            ``forward_to`` must be a URL of this machine.
        options: keyword arguments, each optional and named like the option of ``followup-mock serve``;
            ``followup_mockserver.MockOptions`` describes them.

    Raises:
        OSError: the settings file cannot be read.
        TypeError: an unknown option.
        ValueError: an invalid option, or one in the settings file; the message names it.
    """

    def __init__(self, *, allow_network: bool = False, **options: Unpack[MockOptions]) -> None:
        boolean("allow_network", allow_network)
        checked = options_of(options)
        if checked.forward_to is not None and not allow_network and not is_local(checked.forward_to):
            raise InvalidArgument("forward_to", "a URL of this machine; MockService(allow_network=True) accepts others")
        super().__init__(
            checked,
            threaded=False,
            guard=Guard(IN_PROCESS_HOST),
            network=allow_network or checked.forward_to is not None,
        )
        self._allow_network = allow_network
        self._times: dict[str, sdk.Time] = {}

    @property
    def url(self) -> str:
        """The base URL of its clients, ``http://followup.mock``. It exists in this process only."""
        return IN_PROCESS_URL

    @classmethod
    def load(cls, state: SnapshotSource, *, allow_network: bool = False, **options: Unpack[MockOptions]) -> Self:
        """Create a service from a snapshot. ``reset`` returns to the state of the snapshot.

        A clock that was frozen is frozen at the same time. A clock that ran is as far ahead of real time as it was, so
        jobs that have become due in the meantime run at the next ``advance``. Applications are mounted again by the
        caller.

        Args:
            state: the data that ``save`` returned, its JSON text (``str`` or ``bytes``), or the path of a file with
                this text (``pathlib.Path``).
            allow_network: as in ``MockService``; never saved.
            options: the options of ``MockService``; omitted ones are as in the snapshot, except ``forward_to``, which
                is never saved. ``start_time`` freezes the clock at this time. Settings of the organizations, such as
                ``country``, are those in the snapshot and cannot be passed; neither can ``settings``, the file.

        Raises:
            OSError: the file cannot be read.
            TypeError: an unknown option.
            ValueError: an invalid option, or an invalid snapshot; the message names it, or the place in the snapshot.
        """
        merged, saved = prepare(state, options)
        service = cls(allow_network=allow_network, **cast("MockOptions", merged))
        service._access.registry.start_from(saved)
        return service

    def fork(self) -> "MockService":
        """Return an independent copy of this service: the same state, options and clock.

        A change of one does not affect the other, and both behave the same from now on; without ``seed``, new ids
        differ. ``reset`` returns to where it does in the original. The copy has no mounted applications, which have a
        state of their own that nobody has copied: mount those that should receive its webhooks. The journal is empty.
        """
        options = cast("MockOptions", attrs.asdict(self._access.registry.options, recurse=False))
        fork = MockService(allow_network=self._allow_network, **options)
        fork._access.registry.fork_of(self._access.registry)
        return fork

    async def aclose(self) -> None:
        """Close the service in an asyncio task: shut down the applications that ``advance_async`` has started here.

        ``async with`` calls it at the end. Closing twice does no harm.
        """
        await self._engine.stop_async()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _connected(self, client: AnyClient, options: ClientOptions) -> AnyClient:
        client._live_in(self._time_of, self._transport if options.get("http_client") is None else None)
        return client

    @property
    def _transport(self) -> "InProcessTransport":
        return InProcessTransport(self._wsgi_app)

    def _time_of(self, api_key: str) -> sdk.Time:
        return self._times.setdefault(api_key, VirtualTime(self._access.registry, api_key))


class InProcessTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Sends requests by calling the application. Responses are buffered, not streamed.

    Args:
        app: the WSGI application.
    """

    def __init__(self, app: WSGIApp) -> None:
        self._app = app

    def attempt(self, step: sdk.Send) -> sdk.Outcome:
        """Make an attempt of a client of the SDK. Without the objects of httpx, it takes a quarter less time."""
        # Over a socket, httpcore adds both.
        headers = step.headers | {"Host": urlsplit(step.url).netloc}
        if step.content is not None:
            headers["Content-Length"] = str(len(step.content))
        environ = environ_of(step.method, step.url, headers, step.content or b"", step.limit_of_read())
        try:
            status, sent, body = run_wsgi(self._app, environ)
        except ResponseTooLate:
            return sdk.TimedOut("ReadTimeout")
        except ConnectionDropped:
            return sdk.Broken("RemoteProtocolError")
        return sdk.response_of(status, {name.lower(): value for name, value in sent}, body)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the application's response."""
        return call_wsgi(self._app, request)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the application's response."""
        await request.aread()
        # The control API may block the event loop, for a receiver or in a long poll. An operation of the API does not,
        # since delays advance the mock's clock; a thread would make it half as slow again.
        if request.url.path.startswith("/_mock"):
            return await asyncio.to_thread(call_wsgi, self._app, request)
        return call_wsgi(self._app, request)
