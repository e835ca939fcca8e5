"""The section that the pytest plugin adds to the report of a failing test, in the test run of somebody else."""

import re

import pytest

pytest_plugins = ["pytester"]

OPTIONS = ("-p", "no:cacheprovider", "-p", "no:asyncio", "-W", "error")
PHONE, NAME = "+5491155550000", "Ana Pérez"


def run(pytester: pytest.Pytester, code: str, *arguments: str) -> list[str]:
    """Run the code as a test file, and return the lines of the output."""
    pytester.makepyfile(code)
    result = pytester.runpytest_inprocess(*OPTIONS, *arguments)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
    return result.outlines


def section(lines: list[str], name: str = "followup_service") -> list[str]:
    """Return the lines of the only section with this name, which has no personal data and no secrets."""
    (start,) = [number for number, line in enumerate(lines) if re.fullmatch(f"-+ {name} -+", line)]
    end = next(number for number, line in enumerate(lines) if number > start and re.match("[-=_]{3}", line))
    for hidden in (PHONE, PHONE[4:], NAME, "Pérez", "fu_test_mock", "s3cret", "whsec_", "booking-1"):
        assert hidden not in "\n".join(lines[start + 1 : end])
    return lines[start + 1 : end]


def listed(lines: list[str], title: str) -> list[str]:
    """Return the lines of one list of a section, without their indentation and their time."""
    start = lines.index(f"{title}, oldest first:") + 1
    end = next((number for number in range(start, len(lines)) if not lines[number].startswith("  ")), len(lines))
    return [re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  ", "", line.strip()) for line in lines[start:end]]


CALLS = """
    import pytest

    def test_it(followup_service):
        followup_service.add_fault(operation="patients.create", kind="status", times=2, retry_after=0)
        followup_service.add_fault(operation="visits.create", kind="disconnect")
        with followup_service.client() as client:
            ana = client.patients.create(phone="+5491155550000", full_name="Ana Pérez", idempotency_key="booking-17")
            client.patients.create(phone="+5491155550000", full_name="Ana Pérez", idempotency_key="booking-17")
            client.patients.list(phone="+5491155550000")
            with pytest.raises(Exception):
                client.patients.create(phone="12")
            with pytest.raises(Exception):
                client.patients.retrieve("pat_none")
        with followup_service.client(max_retries=0) as client, pytest.raises(Exception):
            client.visits.create(patient=ana.id, visited_at=followup_service.clock.now)
        assert False
"""


def test_each_call_is_one_line_with_attempt_key_and_error(pytester: pytest.Pytester) -> None:
    lines = section(run(pytester, CALLS))
    keys = re.findall(r"key (\S+?)[,)]", "\n".join(lines))
    assert {len(key) for key in keys} == {9}, "eight characters and an ellipsis"
    assert len({*keys}) == 3
    assert keys.count("booking-…") == 4, "all attempts of a call have its key"
    calls = [re.sub(r"key \S{8}…", "key …", line) for line in listed(lines, "API calls")]
    assert calls == [
        "500 POST /v1/patients (attempt 1, key …): fault",
        "500 POST /v1/patients (attempt 2, key …): fault",
        "200 POST /v1/patients (attempt 3, key …)",
        "200 POST /v1/patients (attempt 4, key …, replayed)",
        "200 GET /v1/patients",
        "400 POST /v1/patients (attempt 1, key …): parameter_invalid, phone",
        "404 GET /v1/patients/pat_none: resource_missing, id",
        "no response POST /v1/visits (attempt 1, key …)",
    ]


def test_deliveries_and_messages_are_one_line_each(pytester: pytest.Pytester) -> None:
    lines = section(
        run(
            pytester,
            """
            import httpx
            from datetime import timedelta

            def test_it(followup_service, followup_client):
                url = "https://clinic.example:8443/hooks"
                followup_service.mount(url, lambda request: httpx.Response(
                    500 if request.headers["x-service-event-type"] == "patient.upserted" else 204
                ))
                followup_client.webhook_endpoints.create(url=f"{url}?t=s3cret", enabled_events=["*"])
                followup_client.appointments.create(
                    patient={"phone": "+5491155550000", "full_name": "Ana Pérez"},
                    start_at=followup_service.clock.now + timedelta(hours=24),
                )
                followup_service.advance(minutes=2)
                assert False
            """,
        )
    )
    counts = "2 API calls, 3 pending jobs, 2 deliveries, 1 message"
    assert re.fullmatch(rf"<MockService http://followup\.mock, [-\dT:.]+Z \(frozen\), {counts}>", lines[0]), lines[0]
    assert [
        re.sub(r"whd_\w+", "whd_", re.sub(r"\d{4}-[-\d]+ [:\d]+", "TIME", line))
        for line in listed(lines, "webhook deliveries")
    ] == [
        "pending patient.upserted to clinic.example:8443 (2 attempts, next at TIME, whd_): HTTP status 500.",
        "succeeded appointment.created to clinic.example:8443 (1 attempt, whd_): 204",
    ]
    (message,) = listed(lines, "messages to patients")
    assert re.fullmatch(r"reminder to pat_\w+ about apt_\w+", message)


def test_long_lists_are_cut_and_say_so(pytester: pytest.Pytester) -> None:
    lines = run(
        pytester,
        """
        import httpx

        def test_it(followup_respx, followup_service, followup_client):
            for number in range(45):
                followup_client.patients.list()
            headers = {"Authorization": f"Bearer {followup_service.api_key}"}
            httpx.get(f"{followup_service.url}/v1/patients/{'x-' * 150}", headers=headers)
            assert False
        """,
    )
    *calls, last = listed(section(lines), "API calls")
    assert calls == ["… 16 earlier ones omitted", *["200 GET /v1/patients"] * 29]
    assert last.startswith(("400 GET /v1/patients/x-x", "404 GET /v1/patients/x-x"))
    assert max(map(len, section(lines))) == 201


def test_wherever_a_test_fails_the_section_is_there_and_nowhere_else(pytester: pytest.Pytester) -> None:
    lines = run(
        pytester,
        """
        import asyncio, pytest

        @pytest.fixture
        def setup_fails(followup_client):
            followup_client.account.retrieve()
            raise RuntimeError("setup")

        @pytest.fixture
        def teardown_fails(followup_client):
            yield
            followup_client.account.retrieve()
            raise RuntimeError("teardown")

        def test_setup(setup_fails):
            pass

        def test_teardown(teardown_fails):
            pass

        def test_subtest(subtests, followup_client):
            with subtests.test("first"):
                followup_client.account.retrieve()
                assert False

        def test_asynchronous(followup_async_client):
            asyncio.run(followup_async_client.account.retrieve())
            assert False

        def test_passes(followup_client):
            followup_client.patients.list()
        """,
        "-rA",
    )
    assert sum(line.endswith("200 GET /v1/account") for line in lines) == 4
    assert "/v1/patients" not in "\n".join(lines)
