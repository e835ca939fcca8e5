"""The list of the pages about classes and functions of both packages, other than operations."""

from collections.abc import Callable, Sequence
from typing import Any

import attrs

import followup
import followup_mockserver
from followup import imports, inbox, outbox
from followup_mockserver import MockServer, MockService, simulation, strategies
from followup_mockserver.control import ClockControls, ClockState, PendingJob, PendingReminder
from followup_mockserver.control.bookings import BookingControls
from followup_mockserver.control.occurrences import HistoryEntry
from followup_mockserver.control.organizations import KeyInput, NewOrganization, OrganizationControls
from followup_mockserver.control.people import PeopleControls
from followup_mockserver.control.traffic import CallControls, WebhookControls
from followup_mockserver.pytest_plugin.django_project import DjangoProject
from followup_mockserver.pytest_plugin.environment import MockEnvironment, RejectedRequest
from followup_mockserver.world.schema.errors import ServiceError
from followup_mockserver.world.settings import KeyRecord, MockOptions
from followup_mockserver.world.state.faults import Fault, WebhookFault
from followup_mockserver.world.state.journal import JournalEntry
from followup_mockserver.world.state.records import Attempt, Message, ReceiverResponse
from followup_mockserver.world.state.runs import Advanced, JobRun

from .doubts import doubts_section
from .markdown import contents, section

_STRATEGIES = ("operation", "webhook_event", "signed_webhook")


@attrs.frozen(kw_only=True)
class Entry:
    """A class or function on a page.

    Attributes:
        described: the class or function.
        title: the title of the section.
        owner: the name before that of each method.
        package: the package that users import it from; empty if they do not import it.
        constructor: whether users call the constructor of the class.
        members: whether the methods of the class are described.
    """

    described: Any
    title: str
    owner: str = ""
    package: str = "followup"
    constructor: bool = False
    members: bool = True


@attrs.frozen(kw_only=True)
class PythonPage:
    """A page about classes and functions.

    Attributes:
        path: path of the page in the reference, without its suffix.
        title: the title.
        introduction: text before the first entry.
        entries: the entries, in order.
        more: returns text after the last entry.
    """

    path: str
    title: str
    introduction: str
    entries: Sequence[Entry]
    more: Callable[[], str] = str


MOCK = followup_mockserver.__name__


def _entry(described: Any, *, package: str = "followup", constructor: bool = False, members: bool = True) -> Entry:
    name = described.__name__
    if name in vars(followup_mockserver)["__all__"]:
        package = MOCK
    return Entry(described=described, title=name, owner=name, package=package, constructor=constructor, members=members)


def _records(*classes: type[Any], package: str = "followup") -> list[Entry]:
    return [_entry(each, package=package, members=False) for each in classes]


def _controls(title: str, mixin: type[Any]) -> Entry:
    """Return the entry of a part of the test controls, which users call on a mock."""
    return Entry(described=mixin, title=title, owner="MockService", package="")


CLIENT = PythonPage(
    path="client",
    title="Clients",
    introduction="""\
The [operations](operations/index.md) are methods of the attributes of a client, such as `client.patients.create`.
[Call the API](../how-to/clients.md) explains the options.
""",
    entries=[_entry(followup.FollowUp, constructor=True), _entry(followup.AsyncFollowUp, constructor=True)],
    more=lambda: section(
        2, "NOT_GIVEN", "The default of arguments that can be omitted. Passing it is the same as omitting the argument."
    ),
)

LISTS = PythonPage(
    path="lists",
    title="Pages of lists",
    introduction="""\
Each `list` operation returns a page. Iterating over it yields its items and those of all following pages:
[Read lists](../how-to/clients.md#read-lists) shows how.
""",
    entries=[_entry(followup.Page), _entry(followup.AsyncPage), *_records(followup.ResponseInfo)],
)

OUTBOX = PythonPage(
    path="outbox",
    title="Outbox",
    introduction="""\
Import from `followup.outbox`. See also [the how-to guide](../how-to/outbox.md) and
[the guarantees](../delivery-guarantees.md).
""",
    entries=[
        _entry(outbox.Outbox, package="followup.outbox", constructor=True),
        *_records(
            outbox.NewEvent,
            outbox.DrainReport,
            outbox.OutboxStatus,
            outbox.DeadEvent,
            outbox.FailingEvent,
            package="followup.outbox",
        ),
    ],
)

INBOX = PythonPage(
    path="inbox",
    title="Inbox",
    introduction="""\
Import from `followup.inbox`. See also [the how-to guide](../how-to/inbox.md) and
[the guarantees](../delivery-guarantees.md).
""",
    entries=[
        _entry(inbox.Inbox, package="followup.inbox", constructor=True),
        _entry(inbox.Received, package="followup.inbox"),
        *_records(inbox.DrainReport, inbox.CatchUpReport, inbox.InboxStatus, inbox.DeadEvent, package="followup.inbox"),
    ],
)

IMPORTS = PythonPage(
    path="imports",
    title="Imports",
    introduction="""\
Import from `followup.imports`. See also [the how-to guide](../how-to/import-files.md).
""",
    entries=[
        _entry(imports.Import, package="followup.imports"),
        *_records(imports.Report, imports.Doubt, imports.Difference, imports.ImportRefused, package="followup.imports"),
    ],
    more=doubts_section,
)

MOCK_SERVER = PythonPage(
    path="mock/server",
    title="MockServer",
    introduction="The mock on a socket has the same test controls as [`MockService`](index.md#mockservice).",
    entries=[_entry(MockServer, package=MOCK, constructor=True)],
)

MOCKS = PythonPage(
    path="mock/index",
    title="Mock server",
    introduction="""\
`MockService`, and [`MockServer`](server.md) on a socket, take the same [options](#mockoptions) as keyword arguments,
and have the same test controls: [clock](clock.md), [calls and faults](calls.md), [webhooks](webhooks.md),
[patients and staff](patients-and-staff.md), [bookings](bookings.md), and
[organizations and snapshots](organizations.md). For pytest there are [fixtures](testing.md).
""",
    entries=[
        _entry(MockService, package=MOCK, constructor=True),
        _entry(MockOptions, package="", members=False),
        *_records(ServiceError, package=""),
    ],
    more=lambda: contents(
        ["server", "clock", "calls", "webhooks", "patients-and-staff", "bookings", "organizations", "testing"]
    ),
)

_METHODS = "These are methods of [`MockService`](index.md#mockservice), and of `MockServer`."

_IN_USE = " [Simulate patients and staff](../../how-to/patients-and-staff.md) shows them in use."

CLOCK = PythonPage(
    path="mock/clock",
    title="Test controls: clock",
    introduction=_METHODS,
    entries=[
        _controls("Clock and waits", ClockControls),
        *_records(ClockState, PendingJob, PendingReminder, Advanced, JobRun, package=""),
    ],
)

CALLS = PythonPage(
    path="mock/calls",
    title="Test controls: calls and faults",
    introduction=_METHODS,
    entries=[
        _controls("Calls, faults and causes", CallControls),
        *_records(JournalEntry, Fault, HistoryEntry, package=""),
    ],
)

WEBHOOKS_OF_MOCK = PythonPage(
    path="mock/webhooks",
    title="Test controls: webhooks",
    introduction=_METHODS,
    entries=[_controls("Webhooks", WebhookControls), *_records(Attempt, ReceiverResponse, WebhookFault, package="")],
)

PATIENTS_AND_STAFF = PythonPage(
    path="mock/patients-and-staff",
    title="Test controls: patients and staff",
    introduction=_METHODS + _IN_USE,
    entries=[_controls("People and conversations", PeopleControls), *_records(Message, package="")],
)

BOOKINGS = PythonPage(
    path="mock/bookings",
    title="Test controls: bookings and other sources",
    introduction=_METHODS + _IN_USE,
    entries=[_controls("Bookings and events of other sources", BookingControls)],
)

ORGANIZATIONS = PythonPage(
    path="mock/organizations",
    title="Test controls: organizations and snapshots",
    introduction=_METHODS,
    entries=[
        _controls("Organizations and snapshots", OrganizationControls),
        *_records(NewOrganization, KeyRecord, KeyInput, package=""),
    ],
)

TESTING = PythonPage(
    path="mock/testing",
    title="Fixtures, strategies and simulation",
    introduction="""\
[Test with pytest](../../how-to/testing.md) describes the fixtures; `followup_env` returns a `MockEnvironment`, and
`followup_django` a [`DjangoProject`](../../how-to/django.md#test-a-django-project). The strategies need the extra
`testing`. [Find out what your integration survives](../../how-to/simulation.md) explains the simulation.
""",
    entries=[
        _entry(MockEnvironment, package=""),
        _entry(DjangoProject, package=""),
        *_records(RejectedRequest, package=""),
        *(_entry(getattr(strategies, name), package=f"{MOCK}.strategies") for name in _STRATEGIES),
        _entry(simulation.simulate, package=f"{MOCK}.simulation"),
        _entry(simulation.Clinic, package=f"{MOCK}.simulation"),
        _entry(simulation.OutboxClinic, package=f"{MOCK}.simulation"),
        *_records(simulation.Booking, simulation.Crash, package=f"{MOCK}.simulation"),
    ],
)

PAGES = (
    CLIENT,
    LISTS,
    OUTBOX,
    INBOX,
    IMPORTS,
    MOCKS,
    MOCK_SERVER,
    CLOCK,
    CALLS,
    WEBHOOKS_OF_MOCK,
    PATIENTS_AND_STAFF,
    BOOKINGS,
    ORGANIZATIONS,
    TESTING,
)
