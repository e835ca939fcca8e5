"""A test that passes although a fault of it had no effect fails at its end, in the test run of somebody else."""

import pytest

pytest_plugins = ["pytester"]

OPTIONS = ("-p", "no:cacheprovider", "-p", "no:asyncio", "-W", "error")

FAULT = "    followup_service.add_fault(operation='patients.create', kind='status', status=503)"


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
            "  add_fault(operation='patients.list', kind='delay', seconds=3, skip=2)  (1 more would have been *",
            "  disturb(kind='late', type='appointment.created', seconds=60)",
            "No call, event or delivery matched. If that is fine, add the fault with optional=True.",
            "*- followup_service -*",
            "FAILED *::test_it - Failed: 3 faults were never used:",
        ],
        consecutive=False,
    )


def test_faults_that_were_used_optional_or_removed_fail_nothing(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        def test_used(followup_service, followup_client):
            followup_service.add_fault(operation="patients.create", kind="status", status=503)
            followup_service.add_fault(operation="*", kind="disconnect", times=None)
            followup_service.clear_faults()
            followup_service.add_fault(operation="patients.create", kind="status", status=503)
            followup_service.add_fault(operation="account.retrieve", kind="status", optional=True)
            followup_service.add_fault(operation="account.retrieve", kind="status", probability=0.5)
            followup_client.patients.create(phone="+5491155550000")
        """,
    )
    result.assert_outcomes(passed=1)


def test_a_server_and_other_organizations_count_as_well(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        def test_server(followup_server):
            followup_server.add_fault(operation="patients.create", kind="status")

        def test_organization(followup_service):
            key = followup_service.create_organization().keys[0].value
            followup_service.organization(key).add_fault(operation="patients.create", kind="status")
        """,
    )
    result.assert_outcomes(failed=2)


def test_a_test_that_failed_already_has_one_failure(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        f"""
        def test_it(followup_service):
        {FAULT}
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


def test_skipped_tests_and_expected_failures_are_left_alone(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        f"""
        import pytest

        def test_skips(followup_service):
        {FAULT}
            pytest.skip()

        @pytest.mark.xfail(reason="not yet")
        def test_fails_as_expected(followup_service):
        {FAULT}
            assert False

        @pytest.mark.xfail(reason="not yet", strict=False)
        def test_passes_unexpectedly(followup_service):
        {FAULT}

        @pytest.mark.xfail(reason="not yet", strict=True)
        def test_passes_unexpectedly_and_strictly(followup_service):
        {FAULT}

        @pytest.mark.xfail(False, reason="a condition that does not hold")
        def test_is_not_expected_to_fail(followup_service):
        {FAULT}
        """,
    )
    result.assert_outcomes(skipped=1, xfailed=1, xpassed=1, failed=2)
    result.stdout.fnmatch_lines(["*XPASS(strict)*", "FAILED *::test_is_not_expected_to_fail - Failed: 1 fault was*"])


def test_an_error_in_teardown_is_the_only_error(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        f"""
        import pytest

        @pytest.fixture
        def broken(followup_service):
            yield
            raise RuntimeError("teardown")

        def test_it(broken, followup_service):
        {FAULT}
        """,
    )
    result.assert_outcomes(failed=1, errors=1)
    result.stdout.fnmatch_lines(["*RuntimeError: teardown*"])


KINDS_OF_TESTS = f"""
    import asyncio, unittest
    import pytest

    class TestClass:
        @pytest.fixture(autouse=True)
        def attach(self, followup_service):
            self.service = followup_service

        def test_unused(self, followup_service):
        {FAULT}

        def test_used(self):
            self.service.add_fault(operation="account.retrieve", kind="status")
            self.service.client().account.retrieve()

    class TestUnittest(unittest.TestCase):
        @pytest.fixture(autouse=True)
        def attach(self, followup_service):
            self.service = followup_service

        def test_unused(self):
            self.service.add_fault(operation="account.retrieve", kind="status")

        def test_used(self):
            self.service.add_fault(operation="account.retrieve", kind="status")
            self.service.client().account.retrieve()

        def test_subtests(self):
            self.service.add_fault(operation="account.retrieve", kind="status")
            with self.subTest("before the fault is used"):
                pass
            self.service.client().account.retrieve()

    @pytest.mark.usefixtures("followup_client")
    class TestMarked:
        def test_unused(self, followup_service):
        {FAULT}

    @pytest.mark.parametrize("number", range(2))
    def test_parameters(followup_service, number):
        if number:
        {FAULT}
"""
UNUSED, USED = 4, 4


def test_kinds_of_tests(pytester: pytest.Pytester) -> None:
    run(pytester, KINDS_OF_TESTS.replace("        if number:\n", "        if number:\n    ")).assert_outcomes(
        failed=UNUSED, passed=USED
    )


@pytest.mark.nightly
def test_in_workers_of_xdist(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(KINDS_OF_TESTS.replace("        if number:\n", "        if number:\n    "))
    result = pytester.runpytest_subprocess(*OPTIONS, "-p", "xdist.plugin", "-n", "2")
    result.assert_outcomes(failed=UNUSED, passed=USED)
    result.stdout.fnmatch_lines(["1 fault was never used:", "*- followup_service -*"])


def test_subtests(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        def test_used_after_a_subtest(followup_service, followup_client, subtests):
            followup_service.add_fault(operation="account.retrieve", kind="status")
            with subtests.test("before the fault is used"):
                pass
            followup_client.account.retrieve()

        def test_unused(followup_service, subtests):
            followup_service.add_fault(operation="account.retrieve", kind="status")
            with subtests.test("passes"):
                pass
        """,
    )
    lines = [line for line in result.outlines if line.startswith(("FAILED", "SUBFAILED"))]
    assert len(lines) == 1
    assert "::test_unused - Failed: 1 fault was never used:" in lines[0]


def test_with_the_debugger_there_is_nothing_to_stop_at(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        f"""
        def test_it(followup_service):
        {FAULT}
        """,
        "--pdb",
    )
    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*(Pdb)*")


def test_a_fixture_that_overrides_ours_counts_as_well(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest
        from followup import FollowUp
        from followup_mockserver import MockService

        @pytest.fixture(scope="module")
        def clinic():
            with MockService(rate_limit=0) as service:
                yield service

        @pytest.fixture
        def followup_service(clinic):
            with clinic.fork() as service:
                yield service

        def test_unused(followup_env):
            followup_env.service.add_fault(operation="patients.create", kind="status", status=503)

        def test_fails(followup_env):
            with FollowUp() as client:
                client.account.retrieve()
            assert False

        def test_used(followup_service, followup_client):
            followup_service.add_fault(operation="account.retrieve", kind="status", status=503)
            followup_client.account.retrieve()
        """,
    )
    result.assert_outcomes(failed=2, passed=1)
    result.stdout.fnmatch_lines(
        [
            "*_ test_unused _*",
            "1 fault was never used:",
            "*_ test_fails _*",
            "*- followup_service -*",
            "*200 GET /v1/account",
        ]
    )
