"""The catalogue of events: a page for each type, inbound and outbound, and an index."""

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from followup import WebhookEvent, inbound
from followup._core.api_rules import EventType, OutboundEventType
from followup._core.codec.decode import decode
from followup_mockserver import MockService
from followup_mockserver.world.settings import NOT_YET_SENT

from .entries import PythonNames, function_text, link_to
from .event_texts import BUILT, ID_FROM, NEEDED, SEND_WHEN, SENT_WHEN, USED
from .markdown import anchor, block, bullets, contents, folded, json_text, page, section, table
from .traffic import NOW, RECEIVER, Examples

FOLDER = "events"

INBOUND: tuple[EventType, ...] = get_args(EventType)
OUTBOUND: tuple[OutboundEventType, ...] = tuple(
    each for member in get_args(OutboundEventType) for each in (get_args(member) or (member,))
)

_INTRODUCTION = """\
Events of the same types go in both directions. Your system sends **inbound** events, which tell the service what
happened, and the service sends **outbound** ones, which tell your system. The page of each type has both.
"""

_INBOUND = """\
The functions of `followup.inbound` build inbound events as [`EventInput`](../inputs.md#eventinput), from arguments that
are checked like those of the operations.
[`client.events.create`](../operations/events.md#events-create) sends them, and so does
[`client.events.send_all`](../operations/events.md#events-send-all) for any number. An
[outbox](../../how-to/outbox.md) loses none. An event is sent again under the same `id` until it is accepted: sending an
accepted id again has no effect.
"""

_OUTBOUND = """\
The service sends an outbound event to your [endpoints](../operations/webhook_endpoints.md) once it has processed what
happened, whoever reported it. The request is signed, and tried [up to nine times](../webhooks.md#attempts). Its body is
a [`WebhookEvent`](../webhooks.md#webhookevent). Its `data` is the state of the objects at the event;
`event.retrieve(client)` fetches the object that `ref` names, as it is now. A type that is not yet sent can be
subscribed to now, and starts arriving when the service activates it.
"""

_NOT_YET = """\
The service does not send this type yet; subscribe now, and it starts arriving when it is activated. The mock sends it
with [`trigger`](../mock/webhooks.md#mockservice-trigger), or after
[`update_organization(activated_events=["{type}"])`](../mock/organizations.md#mockservice-update-organization).
"""

_DIRECTIONS = """\
Your system sends this event to the service ([inbound](#inbound)), and the service sends an event of the same type to
your endpoints ([outbound](#outbound)).
"""

_FIRST = """\
from followup import FollowUp, inbound

client = FollowUp()  # close it in the end, or use it in a with block
"""

_WITH_INBOX = """\
import os

from followup import WebhookEvent
from followup.inbox import Inbox, Received

inbox = Inbox(os.environ["FOLLOWUP_DATABASE_URL"])


def {handler}(event: WebhookEvent) -> None:
{body}

@inbox.on("{type}")
def handle(received: Received) -> None:
    {handler}(received.event)
"""

_WITHOUT_INBOX = """\
from followup import construct_event

seen: set[str] = set()  # in production a table of your database


def receive(body: bytes, headers: dict[str, str], secret: str) -> int:
    event = construct_event(body, headers, secret)
    if event.type == "{type}" and event.id not in seen:
        {handler}(event)
        seen.add(event.id)
    return 204
"""


def pages() -> Iterator[tuple[str, str]]:
    """Iterate over the pages: the path of each without its suffix, and its text."""
    payloads = _payloads()
    yield f"{FOLDER}/index", _index(payloads)
    for each in OUTBOUND:
        sections = [_DIRECTIONS, _inbound(each)] if each in INBOUND else []
        yield _page_of(each), page(f"Event {each}", *sections, _outbound(each, payloads[each]))


def homes() -> Iterator[tuple[str, str]]:
    """Iterate over the enumerations of event types: name and page."""
    return ((name, f"{FOLDER}/index") for name in ("EventType", "OutboundEventType", "EnabledEvent"))


def python_names() -> PythonNames:
    """Iterate over the builders of inbound events."""
    for each in INBOUND:
        yield _page_of(each), "Inbound", f"followup.inbound.{_builder(each)}", "function"


def _page_of(event_type: str) -> str:
    return f"{FOLDER}/{anchor(event_type)}"


def _builder(event_type: str) -> str:
    return event_type.replace(".", "_")


def _index(payloads: Mapping[str, Any]) -> str:
    def link(event_type: str, direction: str) -> str:
        return f"[`{event_type}`]({anchor(event_type)}.md#{direction})"

    received = [(link(each, "inbound"), _sentence(SEND_WHEN[each]), f"`inbound.{_builder(each)}`") for each in INBOUND]
    sent = [
        (
            link(each, "outbound"),
            _sentence(SENT_WHEN[each]),
            "not yet" if each in NOT_YET_SENT else "yes",
            f"`{payloads[each]['ref'].partition('_')[0]}_`",
        )
        for each in OUTBOUND
    ]
    return page(
        "Catalogue of events",
        _INTRODUCTION,
        section(2, "Inbound events", _INBOUND, table(["Type", "When to send it", "Built by"], received)),
        section(2, "Outbound events", _OUTBOUND, table(["Type", "When it is sent", "Sent", "`ref`"], sent)),
        contents(anchor(each) for each in OUTBOUND),
    )


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _inbound(event_type: EventType) -> str:
    name, source = _builder(event_type), _page_of(event_type)
    prepared = f"{_FIRST}\n{NEEDED.get(event_type, '')}"
    sent = f"{BUILT[event_type]}batch = client.events.create(event)\nprint(batch.results[0].status)\n"
    examples = Examples()
    examples.run(prepared, source)
    examples.service.client().webhook_endpoints.create(url=RECEIVER, enabled_events=["*"])
    examples.run(sent, source)
    request, response = examples.last_call("events.create")
    example = section(
        3,
        "Build and send it",
        block("python", prepared),
        block("python", sent),
        folded("Request and response", request, response),
        _effects(examples.service),
    )
    described = function_text(f"inbound.{name}", getattr(inbound, name), source)
    when = f"Send it when {SEND_WHEN[event_type]}.\n\nMake its `id` from {ID_FROM[event_type]}.\nAn id that was "
    when += "accepted is a `duplicate`, whatever the event states then:\n"
    when += "[choose the id of an event](../../how-to/event-ids.md)."
    return section(2, "Inbound", when, example, section(3, f"inbound.{name}", described))


def _effects(service: MockService) -> str:
    """Return what the example of an inbound event led to."""
    effects = [
        *(f"webhook [`{each.event_type}`]({anchor(each.event_type)}.md#outbound)" for each in service.deliveries[::-1]),
        *(f"message to {each.phone}: {each.text}" for each in service.messages),
        *(f"{_JOBS[each.kind]} at {each.at:%Y-%m-%d %H:%M} UTC" for each in service.jobs if each.kind in _JOBS),
    ]
    return (
        f"In the mock, this event leads to:\n\n{bullets(effects)}"
        if effects
        else "In the mock, this event has no further effect."
    )


_JOBS = {"reminder": "reminder", "post_visit": "message after the visit"}
"""The kinds of jobs that write to a patient."""


def _outbound(event_type: OutboundEventType, payload: Mapping[str, Any]) -> str:
    state = _NOT_YET.format(type=event_type) if event_type in NOT_YET_SENT else ""
    handler = f"use_{_builder(event_type)}"
    body = textwrap.indent(USED[event_type], "    ")
    return section(
        2,
        "Outbound",
        f"The service sends it when {SENT_WHEN[event_type]}.",
        state,
        section(3, "Body", block("json", json_text(payload)), _views(payload)),
        section(
            3,
            "Handle it",
            "With an [inbox](../../how-to/inbox.md), which loses no event and does its work exactly once:",
            block("python", _WITH_INBOX.format(type=event_type, handler=handler, body=body)),
            "Without an inbox, in the view of a web framework:",
            block("python", _WITHOUT_INBOX.format(type=event_type, handler=handler)),
        ),
    )


def _views(payload: Mapping[str, Any]) -> str:
    """Return the sentence about the typed views of the data that are not None."""
    event = decode(WebhookEvent, payload)
    names = ("appointment", "visit", "treatment", "intake_request", "patient")
    classes = {name: type(view).__name__ for name in names if (view := getattr(event, name))}
    views = [f"`event.{name}` (an instance of {link_to(cls, f'{FOLDER}/index')})" for name, cls in classes.items()]
    typed = f"{' and '.join(views)} {'are' if len(views) > 1 else 'is'} not None. " if views else ""
    return f"{typed}`event.ref` begins with `{payload['ref'].partition('_')[0]}_`."


def _payloads() -> dict[str, Any]:
    """Return the body of a webhook of each type, as the mock sends it."""
    found = {}
    for event_type in OUTBOUND:
        with MockService(seed=1, start_time=NOW) as service:
            service.client().webhook_endpoints.create(url=RECEIVER, enabled_events=["*"])
            (delivery,) = service.trigger(event_type)
            found[str(event_type)] = dict(delivery.payload)
    return found
