"""How ``pytest --followup-coverage`` reports: the table, the file, the threshold, and the processes of pytest-xdist."""

import re

import pytest
from support.coverage import met, run, written

import followup_mockserver.pytest_plugin.coverage
from followup_mockserver import MockService

pytest_plugins = ["pytester"]

_LOADED = (followup_mockserver.pytest_plugin.coverage, MockService)
"""Loaded here, because pytester unloads what a run in this process has loaded, and the next run loads it again."""

SUITE = """
    import httpx
    import pytest

    URL = "https://clinic.example/hooks"

    def test_a_patient(followup_service, followup_client):
        followup_service.mount(URL, lambda request: httpx.Response(204))
        followup_client.webhook_endpoints.create(url=URL, enabled_events=["*"])
        followup_service.add_fault(operation="patients.create", kind="status", status=503)
        followup_service.add_fault(operation="patients.create", kind="disconnect")
        followup_client.patients.create(phone="+5491155550000")
        followup_service.advance()

    def test_many(followup_client, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)  # the file is that of the folder in which pytest started
        for _ in range(1234):
            followup_client.account.retrieve()
"""
"""It meets 5 outcomes of operations and 1 of webhooks; there are 335."""

HEADINGS = "operation                   success replay 400 401 403 404 409 429 5xx no_answer"


def shown(result: pytest.RunResult) -> str:
    """Return the output without trailing spaces."""
    return "\n".join(line.rstrip() for line in result.outlines)


def test_the_table(pytester: pytest.Pytester) -> None:
    result = run(pytester, SUITE)
    text = shown(result)
    assert HEADINGS in text
    for row in (
        "account.retrieve                1k+          -   -               -   -         -",
        "patients.create                   1      -   -   -   -       -   -   1         1",
        "patients.retrieve                 -          -   -   -   -       -   -         -",
        "webhook_endpoints.create          1      -   -   -   -       -   -   -         -",
        "inbound                     processed duplicate invalid failed no_answer",
        "order.issued                        -         -       -      -         -",
        "webhook                     delivered retried failed",
        "patient.upserted                    1       -      -",
        "webhook.ping                        -       -      -",
        "- was never met; an empty cell cannot be met.",
        "6 of 335 outcomes were met: 1.7 %.",
    ):
        assert f"\n{row}\n" in text
    table = text[text.index(HEADINGS) : text.index("\n6 of ")]
    assert len(re.findall(r"^\w+\.\w+(?= )", table, re.MULTILINE)) == 32 + 8 + 13
    assert max(map(len, table.splitlines())) <= 80
    assert written(pytester)["operations"]["account.retrieve"]["success"] == 1234
    assert written(pytester)["percent"] == pytest.approx(600 / 335)


def test_the_table_of_what_was_used(pytester: pytest.Pytester) -> None:
    code = """
        from followup import inbound

        def test_it(followup_client):
            followup_client.events.create(inbound.patient_upserted(patient={"phone": "+5491155550000"}))
    """
    text = shown(run(pytester, code, "--followup-coverage-used"))
    assert text[text.index(HEADINGS) :].splitlines()[:6] == [
        HEADINGS,
        "events.create                     1      -   -   -   -       -   -   -         -",
        "",
        "inbound                     processed duplicate invalid failed no_answer",
        "patient.upserted                    1         -       -      -         -",
        "",
    ]
    assert "webhook  " not in text
    assert "2 of 335 outcomes were met" in text
    assert len(written(pytester)["operations"]) == 32


@pytest.mark.parametrize(("code", "status"), [("assert False", 1), ("raise KeyboardInterrupt", 2)])
def test_the_threshold_replaces_no_other_exit_status_and_the_file_is_written(
    pytester: pytest.Pytester, code: str, status: int
) -> None:
    result = run(
        pytester,
        f"""
        import pytest

        def test_it(followup_client):
            followup_client.account.retrieve()
            {code}
        """,
        "--followup-coverage-fail-under",
        "50",
    )
    assert result.ret == status
    assert met(pytester) == {"account.retrieve": {"success": 1}}


@pytest.mark.parametrize(("percent", "passes"), [("0.29850746268656714", True), ("0.3", False), ("nan", False)])
def test_the_threshold(pytester: pytest.Pytester, percent: str, passes: bool) -> None:
    code = "def test_it(followup_client): followup_client.account.retrieve()"
    result = run(pytester, code, "--followup-coverage-fail-under", percent)
    result.assert_outcomes(passed=1)
    assert result.ret == (0 if passes else 1)
    last = (
        "FAILED followup coverage: 1 of 335 outcomes were met: 0.2 %, "
        f"but --followup-coverage-fail-under requires {percent} %"
    )
    assert (result.outlines[-1] == last) is not passes


def test_a_file_that_cannot_be_written_fails_the_run(pytester: pytest.Pytester) -> None:
    result = run(pytester, "def test_it(): pass", "--followup-coverage-file=missing/coverage.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.outlines[-1].startswith("FAILED followup coverage: --followup-coverage-file missing/coverage.json: ")


DISTRIBUTED = """
    import os

    import httpx
    import pytest

    from followup import inbound

    @pytest.mark.parametrize("number", range(6))
    def test_it(followup_service, followup_client, number):
        url = "https://clinic.example/hooks"
        followup_service.mount(url, lambda request: httpx.Response(204))
        followup_client.webhook_endpoints.create(url=url, enabled_events=["*"])
        followup_client.events.create(inbound.patient_upserted(patient={"phone": "+5491155550000"}))
        followup_service.advance()
        CODE
"""


def distributed(pytester: pytest.Pytester, workers: int, code: str, *options: str) -> pytest.RunResult:
    pytester.makeini("[pytest]")
    pytester.makepyfile(DISTRIBUTED.replace("CODE", code))
    xdist = ("-p", "xdist.plugin", "-n", str(workers))
    return pytester.runpytest_subprocess(*xdist, "--followup-coverage-file", "coverage.json", *options)


def test_the_workers_of_xdist_count(pytester: pytest.Pytester) -> None:
    result = distributed(pytester, 2, "pass", "--followup-coverage-fail-under", "50")
    result.assert_outcomes(passed=6)
    assert result.ret == 1
    assert shown(result).count(HEADINGS) == 1
    assert result.stdout.str().count("FAILED followup coverage: 4 of 335 outcomes were met: 1.1 %") == 1
    assert met(pytester) == {
        "webhook_endpoints.create": {"success": 6},
        "events.create": {"success": 6},
        "> patient.upserted": {"processed": 6},
        "patient.upserted": {"delivered": 6},
    }
