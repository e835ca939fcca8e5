"""The pages of the control API, from its OpenAPI document, with the traffic of an example of each call."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import httpx

from followup._core.time import reproducible_randomness
from followup_mockserver import MockService
from followup_mockserver.web.control_openapi import control_document

from .entries import PythonNames, link_to
from .markdown import bullets, contents, folded, link, page, section, table
from .raw_requests import Requests
from .traffic import RECEIVER, http_message

FOLDER = "control_api"

_INTRODUCTION = """\
The control API gives tests in any language control over the mock: its clock, faults, patients, staff and organizations.
For example, this advances the clock by three hours, and runs what becomes due:

```sh
curl --silent --fail http://127.0.0.1:4210/_mock/clock/advance --json '{"hours": 3}'
```

It is served under `/_mock`, and is not part of the contract of the service. Requests and responses are JSON in
camelCase. Errors have the format of the service: an invalid argument is a 400 with the name of the field in
`error.param`. A call acts on the organization of its `Authorization` key, or on the default organization without a key.

The mock serves this reference as an OpenAPI document at `/_mock/openapi.json`, which
[API clients](../../how-to/other-languages.md#api-clients) import. In Python, the [test controls](../mock/index.md) are
methods of `MockService` and `MockServer`. Only the control API has filters and a long poll for changes.
"""

_POLLING = """\
With `?wait=SECONDS`, `changes` responds as soon as the version of the state differs from `since`. The version changes
with every call, message, delivery and attempt.

A call that waits occupies one of the server's 256 threads.
"""

_ACCESS = """\
If the mock listens on an address that is not loopback, every call except `health` needs the token that `serve` prints,
in the header `Mock-Token`. Requests from web pages (foreign `Host` or `Origin`) are always rejected.
"""

_PAGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "mock": ("The mock", ("health", "reset", "snapshot", "openapi.json", "changes", "explain", "timeline", "meant")),
    "clock": ("Clock", ("clock", "reminders")),
    "calls": ("Calls and faults", ("requests", "faults")),
    "webhooks": ("Webhooks", ("webhook_endpoints", "webhook_deliveries", "attempts")),
    "webhook_tests": ("Triggers and webhook faults", ("trigger", "deliveries")),
    "patients": ("Patients and staff", ("messages", "patients", "doctors")),
    "intake_requests": ("Intake requests", ("intake_requests",)),
    "bookings": ("Bookings and other sources", ("appointments", "visits", "events")),
    "organizations": ("Organizations", ("organizations", "organization", "api_keys")),
}
"""Title and tags of each page."""

_HUGE = ("/_mock/openapi.json", "/_mock/snapshot", "/_mock/trigger")
"""Paths whose examples show only the first level of the JSON."""

_OF_ATTEMPTS = {"seconds": 0.01, "timestamp": 1_790_596_800, "signature": f"sha256={'0' * 64}"}
_OF_CHANGES = {"version": 1}
"""Fields that differ from run to run, and what an example shows instead."""

_MOST_ITEMS = 2
"""The number of items that an example shows of an array of objects."""


@attrs.frozen(kw_only=True)
class Call:
    """A call of the control API.

    Attributes:
        method: the HTTP method.
        path: the path, with its parameter in braces.
        operation: the operation in the OpenAPI document.
    """

    method: str
    path: str
    operation: Mapping[str, Any]

    @property
    def title(self) -> str:
        """The title of the section."""
        return f"{self.method} {self.path}"

    @property
    def summary(self) -> str:
        """One sentence about what it does."""
        return _rendered(self.operation["summary"])

    @property
    def tag(self) -> str:
        """The first part of the path."""
        return str(self.operation["tags"][0])


def pages() -> Iterator[tuple[str, str]]:
    """Iterate over the pages: the path of each without its suffix, and its text."""
    calls = [
        Call(method=method.upper(), path=path, operation=operation)
        for path, item in control_document()["paths"].items()
        for method, operation in item.items()
    ]
    unknown = {each.tag for each in calls} - {tag for _, tags in _PAGES.values() for tag in tags}
    if unknown:
        raise AssertionError(f"_PAGES lacks {', '.join(sorted(unknown))}")
    yield f"{FOLDER}/index", _index(calls)
    for name, (title, tags) in _PAGES.items():
        sections = [_section(each, f"{FOLDER}/{name}") for each in calls if each.tag in tags]
        yield f"{FOLDER}/{name}", page(f"Control API: {title[0].lower()}{title[1:]}", *sections)


def python_names() -> PythonNames:
    """Iterate over nothing: calls are no Python objects."""
    return iter(())


def _index(calls: list[Call]) -> str:
    source = f"{FOLDER}/index"
    sections = []
    for name, (title, tags) in _PAGES.items():
        rows = [
            (
                link(f"`{each.title}`", f"{FOLDER}/{name}", each.title, source=source),
                _rendered(each.operation["summary"]),
            )
            for each in calls
            if each.tag in tags
        ]
        sections.append(section(2, title, table(["Call", "Description"], rows)))
    general = [section(2, "Long polling", _POLLING), section(2, "Access", _ACCESS)]
    return page("Control API", _INTRODUCTION, *sections, *general, contents(_PAGES))


def _section(call: Call, source: str) -> str:
    operation = call.operation
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    request, response = _example(call, body.get("example"))
    return section(
        2,
        call.title,
        call.summary,
        _rendered(operation.get("description", "")),
        _listed("Path", [_item(each["name"], each) for each in operation["parameters"] if each["in"] == "path"]),
        _listed("Query", [_item(each["name"], each) for each in operation["parameters"] if each["in"] == "query"]),
        _listed("Body", _fields(body.get("schema", {}))),
        _returned(operation["responses"]["200"]["content"]["application/json"]["schema"], source),
        "**Example**",
        request,
        folded("Response", response),
    )


def _listed(title: str, items: list[str]) -> str:
    return f"**{title}**\n\n{bullets(items)}" if items else ""


def _item(name: str, parameter: Mapping[str, Any]) -> str:
    meaning = parameter.get("description", "")
    return f"**`{name}`** ({_kind(parameter['schema'], required=False)}): {_rendered(meaning)}"


def _fields(schema: Mapping[str, Any]) -> list[str]:
    required = schema.get("required", ())
    return [
        f"**`{name}`** ({_kind(field, required=name in required)}){_after_colon(field.get('description', ''))}"
        for name, field in schema.get("properties", {}).items()
    ]


def _after_colon(meaning: str) -> str:
    return f": {_rendered(meaning)}" if meaning else ""


def _rendered(meaning: str) -> str:
    return meaning.replace("``", "`")


def _kind(schema: Mapping[str, Any], *, required: bool) -> str:
    parts = [_type(schema)]
    if required:
        parts.append("required")
    if "default" in schema:
        parts.append(f"default `{str(schema['default']).lower()}`")
    return ", ".join(parts)


def _type(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{each}`" for each in schema["enum"] if each is not None)
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(filter(None, map(_type, schema["anyOf"]))))
    kinds = schema.get("type", "object")
    names = [kinds] if isinstance(kinds, str) else kinds
    named = {each: f"array of {_type(schema['items'])}" if each == "array" else each for each in names}
    return " or ".join(text for name, text in named.items() if name != "null")


def _returned(schema: Mapping[str, Any], source: str) -> str:
    data = schema.get("properties", {}).get("data", {})
    reference = schema.get("$ref") or data.get("items", {}).get("$ref")
    name = (reference or "").rpartition("/")[2]
    linked = link_to(name, source)
    if not name:
        return ""
    shown = linked or f"`{name}`"
    return f"**Returns** {'an array `data` of ' if data else ''}{shown}, with names in camelCase."


def _example(call: Call, body: Any) -> tuple[str, str]:
    """Make the call of the example, and return its request and its response."""
    with reproducible_randomness(1):
        requests = Requests()
        path, body = _prepared(call, requests, body)
        response = requests.send(call.method, path, body)
    if response.status != httpx.codes.OK:
        raise AssertionError(f"{call.title}: {response.body}")
    show = _beginning if call.path in _HUGE else _shortened
    lines = [f"{call.method} {path} HTTP/1.1", *(["Content-Type: application/json"] if body is not None else [])]
    answered = ["HTTP/1.1 200 OK", "Content-Type: application/json"]
    return http_message(lines, None if body is None else show(body)), http_message(answered, show(response.body))


def _beginning(value: Mapping[str, Any]) -> Any:
    return {name: "…" if isinstance(each, dict | list) else each for name, each in value.items()}


def _shortened(value: Any) -> Any:
    """Return a value in which long arrays of objects end after some items, and durations are the same in every run."""
    if isinstance(value, dict):
        changing = _OF_ATTEMPTS if "signature" in value else _OF_CHANGES if set(value) == {"version"} else {}
        return {name: changing.get(name, _shortened(each)) for name, each in value.items()}
    if isinstance(value, list):
        more = ["…"] if len(value) > _MOST_ITEMS and isinstance(value[0], dict) else []
        return [*map(_shortened, value[:_MOST_ITEMS] if more else value), *more]
    return value


def _prepared(call: Call, requests: Requests, body: Any) -> tuple[str, Any]:
    """Prepare the mock for the example of a call, and return the path with its id, and the body."""
    service = requests.service
    service.mount(RECEIVER, lambda _: httpx.Response(204))
    client = service.client()
    endpoint = client.webhook_endpoints.create(url=RECEIVER, enabled_events=["appointment.created"])
    appointment = client.appointments.create(
        patient={"phone": "+54 9 11 5555-0000", "full_name": "Ana Pérez"},
        start_at="2026-10-05T14:30:00Z",
        external_id="A-1",
    )
    service.advance()
    ids: Mapping[str, Callable[[], str]] = {
        "explain": lambda: appointment.id,
        "timeline": lambda: appointment.id,
        "faults": lambda: service.add_fault(operation="patients.create", kind="status", status=503).id,
        "appointments": lambda: appointment.id,
        "patients": lambda: appointment.patient,
        "doctors": lambda: client.doctors.list().data[0].id,
        "webhook_endpoints": lambda: endpoint.id,
        "webhook_deliveries": lambda: service.deliveries[0].id,
        "intake_requests": lambda: _intake(service, ready=call.path.endswith("/load")),
        "api_keys": lambda: service.add_api_key(name="read only", scopes=["patients:read"]).value,
    }
    if call.path == "/_mock/messages":
        service.advance(days=7)
    if call.path == "/_mock/faults" and call.method != "POST":
        service.add_fault(operation="patients.create", kind="status", status=503)
    if call.path == "/_mock/deliveries/disturb" and call.method != "POST":
        service.disturb(kind="duplicate")
    before, parameter, after = call.path.replace("}", "{").partition("{")
    path = f"{before}{ids[call.tag]()}{after.partition('{')[2]}" if parameter else call.path
    return path, service.save() if call.method == "PUT" else body


def _intake(service: MockService, *, ready: bool) -> str:
    data = {"coverage": {"insurer": "Salud Sur"}, "address": "Calle 1"} if ready else {}
    patient = {"phone": "+54 9 11 5555-0000", "full_name": "Ana Pérez", "dni": "30.123.456"}
    client: Any = service.client()
    return str(client.intake_requests.create(patient=patient, requested_service="home nursing", **data).id)
