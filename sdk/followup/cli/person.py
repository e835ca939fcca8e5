"""``followup person``: one person's data in the outbox and the inbox of a database."""

import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from types import MappingProxyType
from typing import Annotated, Any, get_args

import typer

from followup._core.codec.kinds import camel
from followup.cli import stores
from followup.cli.application import Application
from followup.cli.lists import Listing, Output
from followup.cli.options import decoded, kebab, keyword, own_parameters
from followup.cli.output import fail, json_line, reject, say, warn, write_line

commands: Application = Application(no_args_is_help=True)

_CRITERIA = MappingProxyType(
    {
        "phone": "Phone of the person, in any spelling",
        "dni": "National document of the person",
        "external_id": "Id of the person in your system",
        "email": "E-mail address of the person",
    }
)


def _command(function: Callable[..., None]) -> None:
    """Add a command that takes the stores that the database has, and the criteria of a person."""

    def run(*, database: str | None, name: str, cipher: str | None, **values: Any) -> None:
        criteria = _checked({each: values.pop(each) for each in _CRITERIA})
        with ExitStack() as stack:
            found = []
            for kind in get_args(stores.Kind):
                store = stack.enter_context(stores.opened(kind, database, name, cipher))
                if store._has_tables():
                    found.append(store)
                else:
                    warn(f"The database has no tables of the {kind}.")
            if not found:
                fail("there is nothing to look at: check the URL of the database")
            function(found, criteria, **values)

    options = [keyword(each, Annotated[str | None, _criterion(text)], None) for each, text in _CRITERIA.items()]
    # Typer makes the options of a command from its signature.
    run.__signature__ = inspect.Signature([*options, *own_parameters(function, 2), *stores.selecting()])  # type: ignore[attr-defined]
    commands.command(function.__name__, help=inspect.getdoc(function))(run)


def _criterion(text: str) -> Any:
    return typer.Option(metavar="TEXT", help=f"{text}; - reads it from a line of standard input.")


def _checked(criteria: Mapping[str, str | None]) -> Mapping[str, str | None]:
    """Return the criteria, read from standard input where they are ``-``, which no other user sees."""
    from followup._store.person import Person

    read = {
        each: decoded(sys.stdin.buffer.readline(), f"--{kebab(each)}: standard input") if text == "-" else text
        for each, text in criteria.items()
    }
    try:
        Person(**read)
    except ValueError as error:
        reject(re.sub("|".join(_CRITERIA), lambda found: f"--{kebab(found[0])}", str(error)))
    return read


@_command
def export(found: Sequence[Any], criteria: Mapping[str, str | None]) -> None:
    """Print every event about a person, with all personal data in it, as JSON Lines.

    Any of several criteria matches.
    """
    for store in found:
        for row in store.export(**criteria):
            write_line(json_line({camel(name): value for name, value in row.items()}))


_FIELDS = ("store", "id", "state")


@_command
@Listing(fields=_FIELDS, nothing="None.")
def erase(
    found: Sequence[Any],
    criteria: Mapping[str, str | None],
    waiting: Annotated[
        bool, typer.Option("--waiting", help="Also erase events that wait, are in flight or are dead.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Erase nothing; list the ids and states of the events.")
    ] = False,
    *,
    output: Output,
) -> None:
    """Erase a person's data from every event about them. The ids remain, so that no event is repeated.

    Any of several criteria matches. A SQLite file is then written anew, which takes a while for a large one.
    """
    from followup._store.erasure import check_finished
    from followup._store.person import Person

    rows = [{name: row[name] for name in _FIELDS} for each in found for row in each.export(**criteria)]
    if dry_run:
        output.print(rows)
        return
    if not waiting:
        check_finished(rows)  # of both stores, before either is changed
    counts = {each._schema.component: each._erase(Person(**criteria), waiting=waiting) for each in found}
    found[0]._scrub()
    say(f"Erased {' and '.join(f'{stores.events(count)} of the {kind}' for kind, count in counts.items())}.")
