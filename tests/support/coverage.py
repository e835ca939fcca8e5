"""Test runs of somebody else, with the coverage of the plugin."""

import json
import textwrap
from typing import Any

import pytest

OPTIONS = ("-p", "no:cacheprovider", "-p", "no:asyncio", "--followup-coverage-file", "coverage.json")


def run(pytester: pytest.Pytester, code: str, *options: str) -> pytest.RunResult:
    """Run tests that measure their coverage."""
    pytester.makeini("[pytest]")  # pytest would use the configuration of this project for a folder within it
    pytester.makepyfile(textwrap.dedent(code))
    return pytester.runpytest_inprocess(*OPTIONS, *options, no_reraise_ctrlc=True)


def written(pytester: pytest.Pytester) -> Any:
    """Return the content of the file."""
    return json.loads(pytester.path.joinpath("coverage.json").read_text(encoding="utf-8"))


def met(pytester: pytest.Pytester) -> dict[str, dict[str, int]]:
    """Return the outcomes that were met, with their numbers, by operation and type; inbound types have an arrow."""
    found = written(pytester)
    inbound = {f"> {name}": row for name, row in found["inbound"].items()}
    rows = {**found["operations"], **inbound, **found["webhooks"]}
    return {name: hit for name, row in rows.items() if (hit := {each: count for each, count in row.items() if count})}
