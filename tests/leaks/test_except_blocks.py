"""What leaves a public function shows nothing, wherever in SDK, outbox, inbox and import an ``except`` block runs.

Each scenario reaches some blocks. Then it runs once more for each of them, and an error is raised in the block itself,
as a signal handler could do.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import leaks
from support.clients import quick_backoff, server
from support.server import ScriptedServer
from telemetry.conftest import exported

import followup

from . import of_calls, of_imports, of_stores
from .blocks import Block, Tracer, blocks_of
from .place import PLANTED, Place, Scenario

__all__ = ["exported", "quick_backoff", "server"]

BLOCKS = [*blocks_of(Path(followup.__file__).parent, without=["cli/", "_core/tracebacks.py"])]

FAILURES_OF_SOCKETS = "_core/http/"
"""Blocks that turn failures of sockets into outcomes. No peer can bring about all of them; those reached are tried."""

NOT_REACHED = {
    "_store/rows.py _execute: sqlite3.OperationalError": "another process has to use the file, as in tests/erasure",
    "_core/threads.py addresses_of: UnicodeError": "a base URL with such a label is rejected before",
    "_core/threads.py run_in_thread: RuntimeError": "the process has to run out of threads",
    "_store/schema.py create: DBAPIError": "an upgrade of the tables has to fail, before any data is there",
    "django/database.py _open: Error": "a project of Django is needed, as in tests/django; no data is there yet",
    "django/database.py _check_is_readable: sqlite3.OperationalError": "the same",
    "django/from_settings.py improperly_configured: (ConfigurationError, ImportError, TypeError, ValueError)": (
        "the same"
    ),
    "django/from_settings.py migrations_advised: ConfigurationError": "the same",
    "django/models.py make_tables: Error": "the same",
    "django/stores.py _store_in_time: Error": "the same project; the reason that is raised has no data",
    "django/management/__init__.py handle: (FollowUpError, ImproperlyConfigured, ValueError)": "only our own text",
    "django/management/__init__.py handle: SQLAlchemyError": "its reason has no data, as in other commands",
    "fastapi.py _read: ClientDisconnect": "an ASGI server is needed, as in tests/sdk/test_fastapi.py",
    "outbox/connections.py _commits_in_mysql: Exception": "a server of MySQL is needed, as in tests/outbox",
    "imports/maps.py load: RecursionError": "the tracer, too, runs out of stack there; the scenario runs without it",
}
"""Blocks with a ``raise`` that no scenario reaches, with the reason."""


def run(scenario: Scenario, place: Place, tracer: Tracer) -> None:
    """Run a scenario, and assert that what it raises shows nothing."""

    # Python keeps the exception that is being handled for each generator. What a tracer raises at the end of a block
    # leaves it set, and it would become the context of every later one.
    def steps() -> Iterator[None]:
        with place.stack, tracer.tracing():
            scenario(place)
        yield

    try:
        next(steps())
    except BaseException as error:
        shown = leaks.shown_by(error, PLANTED)
    else:
        shown = []
    assert not shown, "\n".join(shown)


@pytest.fixture
def places(tmp_path: Path, server: ScriptedServer, postgresql_url: str) -> Iterator[Place]:
    """Return places, each with a folder of its own."""
    first = Place(tmp_path / "first", server, postgresql_url)
    with first.stack:
        first.outbox()
        first.inbox()
    return (Place(tmp_path / str(number), server, postgresql_url, first) for number in itertools.count())


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # an error that is raised in a block leaves some things open
@pytest.mark.usefixtures("exported", "quick_backoff")
def test_no_error_shows_anything_wherever_it_is_raised(places: Iterator[Place]) -> None:
    reached: set[Block] = set()
    for scenario in (*of_calls.SCENARIOS, *of_stores.SCENARIOS, *of_imports.SCENARIOS):
        tracer = Tracer(BLOCKS)
        run(scenario, next(places), tracer)
        for block in sorted(tracer.reached - reached, key=BLOCKS.index):
            run(scenario, next(places), Tracer(BLOCKS, target=block))
        reached |= tracer.reached
    missing = {each.name for each in BLOCKS if each.raises and each not in reached}
    assert {each for each in missing if not each.startswith(FAILURES_OF_SOCKETS)} <= set(NOT_REACHED)
    assert set(NOT_REACHED) <= {each.name for each in BLOCKS if each.raises}
