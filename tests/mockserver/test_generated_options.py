"""The options of ``followup-mock`` follow the functions of the control API, without a change to the commands."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

NEW_FUNCTION = '''
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal
from followup import NOT_GIVEN, NotGiven
from followup_mockserver.cli.generated import arguments_of, options_of

def add_outage(
    control: object, name: str, *, severity: Literal["low", "high"] = "low", minutes: float = 5, total: bool = False,
    regions: Sequence[str] = (), data: Mapping[str, Any] | None = None, limit: int | NotGiven = NOT_GIVEN,
    wait: float = 0,
) -> None:
    """Add an outage.

    Args:
        control: the test controls.
        name: name of the outage.
        severity: how bad it is, which
            decides who is called.
        minutes: its length.
        total: whether all is down.
        regions: where it is.
        data: further data.
        limit: how many; None for all.
        wait: for long polling.

    Returns:
        Nothing.
    """

options = options_of(add_outage, argument="name")
helps = {each.name: each.annotation.__metadata__[0].help for each in options}
typed = {each.name: each.default for each in options} | {"name": "n", "regions": "a, b", "data": '{"x": 1}'}
print(json.dumps([helps, arguments_of(add_outage, typed)]))
'''

SERVE = """
    --host --port --rate-limit --start-time --allow-http-webhooks --forward-to --seed --env-file --country
    --idempotency-hours --refuse-unknown-fields --accept-unknown-fields --reminder-hours --post-visit-hours
    --intake-required --language --time-zone --settings --from
"""


def run(*arguments: str) -> str:
    environment = {**os.environ, "COLUMNS": "80"}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=True, timeout=60, env=environment
    ).stdout


def test_a_parameter_becomes_an_option_with_its_description() -> None:
    # In a process of its own, since some versions of Typer and click warn of each other when they are imported.
    helps, arguments = json.loads(run("-c", NEW_FUNCTION))
    assert helps == {
        "name": "Name of the outage.",
        "severity": "How bad it is, which decides who is called. One of low, high.",
        "minutes": "Its length.",
        "total": "Whether all is down.",
        "regions": "Where it is. Separated by commas; the option can be repeated.",
        "data": "Further data.",
        "limit": "How many.",
    }
    expected: dict[str, Any] = {"name": "n", "severity": "low", "minutes": 5, "total": False, "regions": ["a", "b"]}
    assert arguments == {**expected, "data": {"x": 1}}


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (
            "fault",
            "OPERATION --kind --status --seconds --times --when --skip --probability --retry-after --optional --clear",
        ),
        ("trigger", "TYPE --data"),
        ("deliveries", "--type --status --limit --all --follow --columns"),
        ("requests", "--operation --limit --all --follow --columns"),
        ("messages", "--patient --limit --all --follow --columns"),
        ("reminders", "--appointment"),
        ("clock", "--limit"),
        ("serve", SERVE),
    ],
)
def test_help_names_each_option_in_full_on_a_narrow_terminal(command: str, options: str) -> None:
    shown = run("-m", "followup_mockserver", command, "--help")
    assert set(options.split()) <= set(shown.split())
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 80
