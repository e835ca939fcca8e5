"""Writes docs/llms.txt, the list of all pages for language models: ``python docs/programs/llms_text.py``.

The format is that of llmstxt.org: a title, a summary, and a list of links under each caption of the table of contents.
"""

import posixpath
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parents[1]
FILE = DOCS / "llms.txt"

SUMMARY = "A typed Python client for the patient follow-up API, and an in-memory mock of that service to test against."

NOTES = """\
The client is the package `followup`, and the mock is `followup_mockserver`. `python -m pip install '.[all]'`
installs both, with the commands `followup` and `followup-mock`. Arguments and fields have snake_case names in Python
and camelCase names on the wire.

Until the first release, that command runs in a clone of the repository. The package index has no package of ours yet.
"""

DESCRIPTIONS = {
    "installation": "Extras, environment variables, and what to install where.",
    "tutorial": "Start the mock, write a webhook receiver, book an appointment, and advance the clock.",
    "try": "SDK, mock and dashboard in the browser, without an installation.",
    "cookbook/index": "Whole programs to copy.",
    "cookbook/imports": "An asynchronous import of many visits.",
    "cookbook/receivers": "Receivers in Flask, FastAPI, Django and JavaScript.",
    "cookbook/integration": "A whole integration with outbox and inbox, in one file with FastAPI and SQLite.",
    "cookbook/tests": "Tests of an integration in Python and JavaScript; the mock as a container.",
    "troubleshooting": "Error messages and symptoms, with cause and cure.",
    "concepts/webhooks": "Life of a delivery, retries, and the signature in Python, JavaScript, Java, PHP and C#.",
    "concepts/idempotency": "Why a retry is safe; which outcomes are retried; backoff and jitter.",
    "concepts/which-mock": "MockService, MockServer, the pytest fixtures or followup-mock serve: a table to decide.",
    "delivery-guarantees": "What the outbox and the inbox guarantee under which failure.",
    "security": "How the SDK protects health data, keys and secrets, and what remains your task.",
    "security-mock": "Who can reach a mock, where it connects to, and what it keeps.",
    "security-officer": "What leaves the clinic, what is stored, keys, deletion, incidents, licences, in plain words.",
    "how-to/clients": "Configure the client, pass arguments, read results and lists; timeouts, and what has changed.",
    "how-to/clients-details": "Own httpx clients and proxies, forks, interrupted calls, limits of a response.",
    "how-to/retries": "Which exception means what, how to react, and how to resume a call.",
    "how-to/import-files": "Send what changed in the CSV or Excel exports of a clinic, from map to doubts.",
    "how-to/import-maps": "All settings of the map that tells followup import which column is which field.",
    "how-to/import-nightly": "Schedule followup import with cron, systemd or Windows; what its exit status means.",
    "how-to/bulk-sending": "Send thousands of events with send_all, from a program or a file.",
    "how-to/event-ids": "Which id an event needs, so that a repeated one is ignored and a changed one is not.",
    "how-to/shared-phones": "Find persons who share a phone before the service takes them for one patient.",
    "how-to/outbox": "Record events in your own database transaction, so that none is lost.",
    "how-to/rejected-events": "What a relay does with events that the service does not accept, and what you do.",
    "how-to/databases": "SQLite, PostgreSQL, MySQL and MariaDB for outbox and inbox: tables, migrations, Alembic.",
    "how-to/encrypt": "Encrypt events and webhooks in your database; key rotation, and what a lost key means.",
    "how-to/erase": "Export or erase one person's data in the outbox, the inbox and imports.",
    "how-to/erased-data": "Where SQLite, PostgreSQL and MySQL keep copies of an erased person, and what removes them.",
    "how-to/background-workers": "Run outbox and inbox beside a web server, with threads, timers or task queues.",
    "how-to/telemetry": "Spans of calls with OpenTelemetry.",
    "how-to/notebooks": "Results in Jupyter, as dicts and as data frames.",
    "how-to/commands": "The command followup: operations, lists, files of events.",
    "how-to/doctor": "followup doctor checks environment, network, key and service.",
    "how-to/receivers": "Verify webhooks with construct_event, and the rules of a receiver.",
    "how-to/django": "Add the app to a Django project: outbox, inbox, commands, admin, and a fixture for tests.",
    "how-to/django-details": "Commands and admin of the Django app; its tables, connections and checks.",
    "how-to/inbox": "Store webhooks before acknowledging them, and handle each once and in order.",
    "how-to/handlers": "Transactions of inbox handlers: exactly once with SQLAlchemy, your own connection, old events.",
    "how-to/check-receiver": "followup-mock check-receiver tests a receiver in any language.",
    "how-to/testing": "The pytest plugin and its fixtures.",
    "how-to/async-tests": "Fixtures in asynchronous tests, with pytest-asyncio and anyio.",
    "how-to/fastapi": "FastAPI and Starlette: an application with outbox, inbox and tests; verified webhooks.",
    "how-to/serverless": "AWS Lambda and other clouds: verified webhooks, and what of outbox and inbox works.",
    "how-to/test-receivers": "Mount a receiver in a test: exceptions, time limit, lifespan, event loops.",
    "how-to/time-travel": "Advance the clock of the mock: jobs, reminders, and which times are real.",
    "how-to/patients-and-staff": "Act as patients, staff and the service's agent in the mock.",
    "how-to/explain": "The chain of causes of an object, a delivery, a message or a request.",
    "how-to/faults": "Make calls and deliveries fail: status, delay, disconnect, truncate.",
    "how-to/random-data": "Hypothesis strategies for arguments and webhooks.",
    "how-to/simulation": "simulate plays random histories of faults and crashes with your integration.",
    "how-to/histories": "Which faults and crashes a simulation plays, and which promises it checks.",
    "how-to/simulation-async": "Simulate integrations with asyncio: orders of tasks, timers, threads.",
    "how-to/advanced-testing": "Simulation, random data, coverage, snapshots, calibration and contract checks.",
    "how-to/coverage": "Which outcomes of each operation a test suite has met.",
    "how-to/snapshots": "Save, load and fork the state of a mock.",
    "how-to/calibrate": "Make the mock behave as your service does, from questions to a test environment.",
    "how-to/contract-drift": "followup-mock check compares an OpenAPI document with the SDK and the mock.",
    "how-to/ci": "A whole GitHub Actions workflow: start the mock, test without a network, keep a report.",
    "how-to/other-languages": "The mock for JavaScript, TypeScript, API clients and containers.",
    "dashboard": "The page of the mock that shows calls, deliveries, patients and messages.",
    "open-points": "Where the specification is silent, what the mock does, and which options change it.",
    "planted-bugs": "Bugs of integrations, and how often the simulation finds each.",
    "glossary": "The words of pages, commands and dashboard, each with one meaning.",
    "specification": "What each section of the specification rules, and the pages that show it in use.",
    "how-to/import-layouts": "Maps for database dumps, slots, reports with titles, and exports without numbers.",
    "how-to/import-phones": "How an import reads phones and documents, row by row.",
    "benchmarks": "Measured times, compared with alternatives.",
    "architecture": "The structure of the code: its folders and layers, and the life of a request.",
    "architecture-mock": "The life of a delivery and a timer in the mock; causes, snapshots and test controls.",
    "architecture-tools": "How outbox, inbox, imports, calibration and simulation work inside.",
    "extending": "Add an operation, an open point or a job; private names of other libraries.",
    "project": "What is public, what a new version may change, and where the project is described.",
    "changelog": "Changes by version.",
}
"""Of pages that begin with the problem of the reader; others are described by their first sentence."""

_LONGEST_DESCRIPTION = 160
"""Characters that other sites show of a description."""

_TOCTREE = re.compile(r"^```\{toctree\}\n((?::.*\n)*)((?:(?!```).*\n)*)```", re.MULTILINE)
_NOT_TEXT = ("<", "#", "|", "- ", "* ", "![", "1. ", ":", ">")


def main() -> None:
    """Write the file."""
    FILE.write_text(written())


def written() -> str:
    """Return the text of the file."""
    sections = [
        f"## {caption}\n\n" + "".join(map(_entry, _with_nested(pages))) for caption, pages in _tables_of("index")
    ]
    return "\n".join(["# followup\n", f"> {SUMMARY}\n", NOTES, *sections])


def _tables_of(page: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the caption and the pages of each table of contents on a page."""
    folder = Path(page).parent
    for options, names in _TOCTREE.findall((DOCS / f"{page}.md").read_text()):
        [caption] = re.findall(r":caption: (.*)", options) or [""]
        yield caption, [posixpath.normpath(folder / name) for name in names.split()]


def _with_nested(pages: list[str]) -> Iterator[str]:
    for page in pages:
        yield page
        for _, nested in _tables_of(page):
            yield from _with_nested(nested)


def _entry(page: str) -> str:
    text = _text_of(page)
    [title] = re.findall(r"\A# (.*)", text)
    return f"- [{title}]({page}.md): {DESCRIPTIONS.get(page) or _first_sentence(text)}\n"


def description(page: str) -> str:
    """Return the description of a page in its HTML: those of the reference say what is on the page."""
    text = SUMMARY if page == "index" else DESCRIPTIONS.get(page)
    if text is None:
        title, *sections = re.findall(r"^##? (.*)", _text_of(page), re.MULTILINE)
        text = f"{title}: {_first_sentence(_text_of(page))} {', '.join(sections)}"
    return textwrap.shorten(text.replace("`", ""), _LONGEST_DESCRIPTION, placeholder=" …")


def _text_of(page: str) -> str:
    """Return the text of a page; of one that consists of another file, the text of that file."""
    file = DOCS / f"{page}.md"
    text = file.read_text()
    included = re.match(r"```\{include\} (\S+)\n```", text)
    return (file.parent / included[1]).read_text() if included else text


def _first_sentence(text: str) -> str:
    """Return the first sentence of the first paragraph, without links."""
    without_code = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    paragraph = next(each for each in re.split(r"\n{2,}", without_code) if not each.startswith(_NOT_TEXT))
    plain = " ".join(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", paragraph).replace("**", "").split())
    return re.split(r"(?<=[.!?])\s", plain)[0].removesuffix(":")


if __name__ == "__main__":
    main()
