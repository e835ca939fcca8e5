"""The page on coverage shows what its suite really prints and writes."""

import json
import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PAGE = Path(__file__).parents[2] / "docs/how-to/coverage.md"


def test_the_table_and_the_file_of_the_page_are_those_of_its_suite(pytester: pytest.Pytester) -> None:
    suite, table, file = re.findall(r"```(?:python pytest|text)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    pytester.makeini("[pytest]")
    pytester.makepyfile(suite)
    result = pytester.runpytest_subprocess(
        "-p", "no:cacheprovider", "-p", "no:asyncio", "--followup-coverage-file", "coverage.json"
    )
    result.assert_outcomes(passed=3)
    printed = "\n".join(line.rstrip() for line in result.outlines)
    for part in table.split("…\n"):
        assert part in printed
    shown, written = json.loads(file), json.loads(pytester.path.joinpath("coverage.json").read_text())
    assert shown["operations"]["patients.create"] == written["operations"]["patients.create"]
    assert shown["webhooks"]["patient.upserted"] == written["webhooks"]["patient.upserted"]
    assert shown["percent"] == written["percent"]
