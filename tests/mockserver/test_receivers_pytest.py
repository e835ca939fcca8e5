"""Receivers in asynchronous tests: with pytest-asyncio and with anyio's plugin, in a pytest of their own."""

import pytest

pytest_plugins = ["pytester"]

APP = """
    import asyncio
    from contextlib import asynccontextmanager

    import fastapi
    import pytest

    URL = "https://clinic.example/hooks"
    log = []

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
"""

TESTS = (
    APP
    + """
    from followup_mockserver import MockService

    MARK
    async def test_the_handler_runs_in_the_loop_of_the_test(followup_service, followup_async_client, app):
        await cause(followup_async_client)
        followup_service.mount(URL, app)
        await followup_service.advance_async()
        assert log == ["startup", asyncio.get_running_loop()]
        await followup_service.aclose()
        assert log[-1] == "shutdown"

    MARK
    async def test_an_exception_is_raised(followup_service, followup_async_client):
        await cause(followup_async_client)

        async def receive(request):
            raise KeyError("externalId")

        followup_service.mount(URL, receive)
        with pytest.raises(KeyError):
            await followup_service.advance_async()

    FIXTURE
    async def service():
        async with MockService(rate_limit=0) as service:
            yield service
        assert log[-1] == "shutdown"

    MARK
    async def test_an_asynchronous_fixture_shuts_down(service, app):
        await cause(service.async_client())
        service.mount(URL, app)
        await service.advance_async()
        assert log == ["startup", asyncio.get_running_loop()]

    MARK
    async def test_the_fixture_of_the_plugin_closes_too(followup_service, followup_async_client, app):
        await cause(followup_async_client)
        followup_service.mount(URL, app)
        await followup_service.advance_async()
        assert log == ["startup", asyncio.get_running_loop()]

    MARK
    async def test_async_with(app):
        async with MockService(rate_limit=0) as service:
            await cause(service.async_client())
            service.mount(URL, app)
            await service.advance_async()
        assert log == ["startup", asyncio.get_running_loop(), "shutdown"]

    MARK
    async def test_a_synchronous_advance_still_works(followup_service, followup_async_client, app):
        await cause(followup_async_client)
        followup_service.mount(URL, app)
        followup_service.advance()
        assert log[0] == "startup"
        assert log[1] is not asyncio.get_running_loop()
"""
)


def test_with_pytest_asyncio(pytester: pytest.Pytester) -> None:
    pytest.importorskip("pytest_asyncio")
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error")
    tests = TESTS.replace("MARK", "@pytest.mark.asyncio").replace("FIXTURE", "@pytest_asyncio.fixture")
    pytester.makepyfile(tests.replace("import pytest\n", "import pytest\n    import pytest_asyncio\n", 1))
    pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "pytest_asyncio.plugin").assert_outcomes(passed=6)


def test_with_anyio(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nfilterwarnings = error")
    backend = """
    @pytest.fixture
    def anyio_backend():
        return "asyncio"
"""
    pytester.makepyfile(TESTS.replace("MARK", "@pytest.mark.anyio").replace("FIXTURE", "@pytest.fixture") + backend)
    pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "anyio.pytest_plugin").assert_outcomes(passed=6)
