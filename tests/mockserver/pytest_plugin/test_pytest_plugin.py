"""The pytest plugin, in the test run of somebody else, and receivers in asynchronous tests."""

import pytest

pytest_plugins = ["pytester"]


def run(pytester: pytest.Pytester, code: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(code)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:asyncio", *arguments)


@pytest.mark.usefixtures("all_plugins_in_nested_runs")
def test_the_fixtures(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import asyncio, httpx
        from followup import AsyncFollowUp, FollowUp

        def test_in_process(followup_service, followup_client):
            made = followup_client.appointments.create(
                patient={"phone": "+5491155550000"}, start_at=followup_service.clock.now.replace(year=2099)
            )
            assert followup_service.clock.frozen
            followup_service.advance(to=made.start_at)
            assert [m.kind for m in followup_service.messages] == ["reminder", "reminder"]

        def test_fresh(followup_client):
            assert [*followup_client.patients.list()] == []

        def test_no_rate_limit(followup_client):
            for _ in range(700):
                followup_client.account.retrieve()

        def test_async(followup_async_client):
            async def use():
                await followup_async_client.patients.create(phone="+5491155550000")
                return [p.phone async for p in followup_async_client.patients.list()]
            assert asyncio.run(use()) == ["+5491155550000"]

        def test_server(followup_server):
            with followup_server.client() as client:
                assert client.account.retrieve().id

        def test_respx(followup_respx, followup_service, followup_server):
            with FollowUp() as client:
                client.patients.create(phone="+5491155550000")
            async def use():
                async with AsyncFollowUp() as client:
                    return await client.account.retrieve()
            asyncio.run(use())
            assert [r.operation for r in followup_service.requests] == ["account.retrieve", "patients.create"]
            laboratory = followup_respx.get("https://laboratory.invalid/results").respond(json=["normal"])
            assert httpx.get("https://laboratory.invalid/results").json() == ["normal"]
            assert laboratory.call_count == 1
            assert httpx.get(followup_server.url + "/_mock/health").json() == {"status": "ok"}  # it is sent
        """,
    )
    result.assert_outcomes(passed=6)


def test_the_plugin_imports_nothing_until_a_fixture_is_used(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import sys

        def test_it():
            assert "followup_mockserver.pytest_plugin" in sys.modules
            assert not {"followup._client", "flask", "httpx", "followup_mockserver.service"} & set(sys.modules)
        """,
        "-p",
        "no:respx",
    )
    result.assert_outcomes(passed=1)


def test_options_of_the_fixtures_can_be_overridden(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest

        @pytest.fixture
        def followup_options():
            return {"start_time": "2030-01-01T09:00:00Z", "rate_limit": 1}

        def test_service(followup_service, followup_server):
            for mock in (followup_service, followup_server):
                assert mock.clock.now.year == 2030 and mock.clock.frozen
            with followup_server.client(max_retries=0) as client:
                client.account.retrieve()
                with pytest.raises(Exception, match="429"):
                    client.account.retrieve()

        class TestInvalid:
            @pytest.fixture
            def followup_options(self):
                return {"country": "Argentina"}

            def test_service(self, followup_service):
                pass
        """,
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["E*country must be the ISO 3166 code of a country, such as AR"])


@pytest.mark.parametrize(
    ("fixture", "missing", "command"),
    [
        ("followup_service", "flask", "the extra followup[[]mockserver[]]"),
        ("followup_server", "waitress", "the extra followup[[]mockserver[]]"),
        ("followup_respx", "respx", "the extra followup[[]testing[]]"),
    ],
)
def test_a_missing_extra_is_named(pytester: pytest.Pytester, fixture: str, missing: str, command: str) -> None:
    pytester.makeconftest(f"import sys; sys.modules[{missing!r}] = None")
    result = run(pytester, f"def test_it({fixture}): pass", "-p", "no:respx")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{missing}*{command}*"])


ASYNCHRONOUS = """
    import asyncio
    from contextlib import asynccontextmanager

    import fastapi
    import pytest
    import pytest_asyncio

    from followup_mockserver import MockService

    URL = "https://clinic.example/hooks"
    log = []
    pytestmark = pytest.mark.MARK

    @pytest.fixture
    def anyio_backend():
        return "asyncio"

    @asynccontextmanager
    async def lifespan(app):
        loop = asyncio.get_running_loop()
        log.append("startup")
        yield {"loop": loop, "lock": asyncio.Lock()}
        assert asyncio.get_running_loop() is loop
        log.append("shutdown")

    @pytest.fixture
    def app():
        log.clear()
        app = fastapi.FastAPI(lifespan=lifespan)

        @app.post("/hooks", status_code=204)
        async def hook(request: fastapi.Request):
            async with request.state.lock:
                assert asyncio.get_running_loop() is request.state.loop
                log.append(asyncio.get_running_loop())

        return app

    async def cause(client):
        await client.webhook_endpoints.create(url=URL, enabled_events=["patient.upserted"])
        await client.patients.create(phone="+5491155550000")

    @FIXTURE
    async def service():
        async with MockService(rate_limit=0) as service:
            yield service
        assert log[-1] == "shutdown"

    async def test_an_asynchronous_fixture_shuts_down(service, app):
        await cause(service.async_client())
        service.mount(URL, app)
        await service.advance_async()
        assert log == ["startup", asyncio.get_running_loop()]

    async def test_the_fixture_of_the_plugin_closes_too(followup_service, followup_async_client, app):
        followup_service.add_fault(operation="patients.create", kind="status", status=503)
        await cause(followup_async_client)
        followup_service.mount(URL, app)
        await followup_service.advance_async()
        assert log == ["startup", asyncio.get_running_loop()]
        assert [each.status for each in followup_service.deliveries] == ["succeeded"]

    async def test_has_an_unused_fault(followup_service):
        followup_service.add_fault(operation="patients.create", kind="status")
"""


@pytest.mark.parametrize(
    ("mark", "fixture", "plugin"),
    [
        ("asyncio", "pytest_asyncio.fixture", "pytest_asyncio.plugin"),
        ("anyio", "pytest.fixture", "anyio.pytest_plugin"),
    ],
)
def test_asynchronous_tests(pytester: pytest.Pytester, mark: str, fixture: str, plugin: str) -> None:
    options = "asyncio_default_fixture_loop_scope = function\nasyncio_mode = strict\n" if mark == "asyncio" else ""
    pytester.makeini(f"[pytest]\n{options}filterwarnings = error")
    pytester.makepyfile(ASYNCHRONOUS.replace("MARK", mark).replace("FIXTURE", fixture))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", plugin)
    result.assert_outcomes(passed=2, failed=1)
    assert "1 fault was never used:" in result.stdout.str()
