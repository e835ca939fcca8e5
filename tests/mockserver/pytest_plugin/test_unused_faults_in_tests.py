"""A test that passes although a fault of it had no effect fails at its end, in the test run of somebody else."""

import pytest

pytest_plugins = ["pytester"]

OPTIONS = ("-p", "no:cacheprovider", "-p", "no:asyncio", "-W", "error")


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # the short summary cuts its lines


def run(pytester: pytest.Pytester, code: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(code)
    result = pytester.runpytest_inprocess(*OPTIONS, *arguments)
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
    return result


def test_the_message_lists_the_calls_that_added_them(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        def test_it(followup_service, followup_client):
            followup_service.add_fault(operation="patients.create", kind="status", status=503, times=2)
            followup_service.add_fault(operation="patients.list", kind="delay", seconds=3, skip=2)
            followup_service.add_fault(operation="account.retrieve", kind="disconnect", times=2)
            followup_service.disturb(kind="late", type="appointment.created", seconds=60)
            followup_client.account.retrieve()
            followup_client.patients.list()
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*_ test_it _*",
            "3 faults were never used:",
            "  add_fault(operation='patients.create', kind='status', status=503, times=2)",
            "  add_fault(operation='patients.list', kind='delay', seconds=3, skip=2)",
            "  disturb(kind='late', type='appointment.created', seconds=60)",
            "No call, event or delivery matched. If that is fine, add the fault with optional=True.",
            "*- followup_service -*",
            "FAILED *::test_it - Failed: 3 faults were never used:",
        ]
    )


def test_a_test_that_failed_already_has_one_failure(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        def test_it(followup_service):
            followup_service.add_fault(operation="patients.create", kind="status")
            assert followup_service is None
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*never used*")
    result.stdout.fnmatch_lines(
        [
            "*AssertionError*",
            "faults that still apply*",
            "  add_fault(operation='patients.create', *",
            "FAILED * - *assert*",
        ]
    )


KINDS_OF_TESTS = """
    import asyncio, unittest
    import pytest
    from followup import FollowUp
    from followup_mockserver import MockService

    @pytest.fixture(scope="module")
    def original():
        with MockService(rate_limit=0) as service:
            yield service

    @pytest.fixture
    def overridden(original):
        with original.fork() as service:
            yield service

    def unused(service):
        service.add_fault(operation="account.retrieve", kind="status")

    def used(service):
        unused(service)
        service.client().account.retrieve()

    class TestUnittest(unittest.TestCase):
        @pytest.fixture(autouse=True)
        def attach(self, followup_service):
            self.service = followup_service

        def test_unused(self):
            unused(self.service)

        def test_used(self):
            used(self.service)

    def test_used_optional_or_removed(followup_service, followup_client):
        followup_service.add_fault(operation="patients.create", kind="status", status=503)
        followup_service.add_fault(operation="*", kind="disconnect", times=None)
        followup_service.clear_faults()
        followup_service.add_fault(operation="account.retrieve", kind="status", optional=True)
        followup_service.add_fault(operation="account.retrieve", kind="status", probability=0.5)

    def test_unused_of_a_server(followup_server):
        unused(followup_server)

    def test_unused_of_an_organization(followup_service):
        unused(followup_service.organization(followup_service.create_organization().keys[0].value))

    class TestOverridden:
        @pytest.fixture
        def followup_service(self, overridden):
            return overridden

        def test_unused(self, followup_env):
            unused(followup_env.service)

        def test_used(self, followup_service, followup_env):
            unused(followup_service)
            with FollowUp() as client:
                client.account.retrieve()

    def test_skips(followup_service):
        unused(followup_service)
        pytest.skip()

    @pytest.mark.xfail(reason="not yet")
    def test_fails_as_expected(followup_service):
        unused(followup_service)
        assert False
"""
"""Tests named ``unused``, of which each fails, and others."""


def test_kinds_of_tests(pytester: pytest.Pytester) -> None:
    result = run(pytester, KINDS_OF_TESTS)
    result.assert_outcomes(failed=4, passed=3, skipped=1, xfailed=1)
    failed = [line for line in result.outlines if line.startswith("FAILED")]
    assert all("unused" in line and "Failed: 1 fault was never" in line for line in failed)
