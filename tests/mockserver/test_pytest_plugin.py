"""The pytest plugin, in the test run of somebody else."""

import pytest

pytest_plugins = ["pytester"]


def run(pytester: pytest.Pytester, code: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(code)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)


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
            assert httpx.get(followup_server.url + "/_mock/health", trust_env=False).json() == {"status": "ok"}
        """,
    )
    result.assert_outcomes(passed=6)


def test_parallel_runs_do_not_touch_each_other(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest

        @pytest.mark.parametrize("number", range(20))
        def test_it(followup_server, number):
            with followup_server.client() as client:
                client.patients.create(phone="+5491155550000")
                assert len([*client.patients.list()]) == 1
        """,
        "-n",
        "2",
    )
    result.assert_outcomes(passed=20)


def test_the_plugin_imports_nothing_until_a_fixture_is_used(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import sys

        def test_it():
            assert "followup_mockserver.pytest_plugin" in sys.modules
            assert not {"followup", "flask", "httpx", "followup_mockserver.service"} & set(sys.modules)
        """,
        "-p",
        "no:schemathesis",
        "-p",
        "no:respx",
    )
    result.assert_outcomes(passed=1)
