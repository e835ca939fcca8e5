"""The mock in tests that fake the file system for the code under test, as pyfakefs does."""

import pytest

pytest_plugins = ["pytester"]

TESTS = """
    from datetime import timedelta

    import httpx
    import pytest

    from followup import FollowUp


    def check(client, service):
        service.update_organization(reminder_hours=[24])
        patient = {"phone": "+5491148120001"}
        start = service.clock.now + timedelta(days=2)
        client.appointments.create(patient=patient, start_at=start)
        service.advance(days=2)
        assert [each.kind for each in service.messages] == ["reminder"]
        with httpx.Client(transport=httpx.WSGITransport(service._wsgi_app), base_url=service.url) as http:
            for path in (
                "/api/v1/openapi.json",
                "/_mock/openapi.json",
                "/_mock/",
                "/_mock/views/overview",
                f"/_mock/views/patients/{client.patients.list().first().id}",
                "/_mock/static/dashboard.js",
            ):
                assert http.get(path, headers={"Authorization": f"Bearer {service.api_key}"}).status_code == 200, path


    def test_files_are_faked_before_the_mock_is_made(fs, followup_client, followup_service):
        check(followup_client, followup_service)


    @pytest.mark.parametrize("zone", ["Europe/Madrid", "Asia/Kathmandu"])
    def test_files_are_faked_after_the_mock_was_made(followup_client, followup_service, fs, zone):
        followup_service.update_organization(time_zone=zone)
        fs.create_file("/clinic.csv", contents="x")
        check(followup_client, followup_service)
        assert open("/clinic.csv").read() == "x", "the files of the test are those that it has faked"


    def test_the_real_files_are_there_again(followup_client, followup_service):
        check(followup_client, followup_service)


    def test_without_our_fixtures():
        from pyfakefs.fake_filesystem_unittest import Patcher

        from followup_mockserver import MockService

        with Patcher():
            with MockService(time_zone="Asia/Tokyo") as service, service.client() as client:
                check(client, service)


    def test_the_strategies_are_first_imported_here(fs):
        from followup_mockserver import strategies

        assert strategies.webhook_event() is not None
"""


@pytest.mark.parametrize("first", [4, pytest.param(0, marks=pytest.mark.nightly)])
def test_whatever_runs_first(pytester: pytest.Pytester, first: int) -> None:
    """Each test runs first in a process of its own, and before the others: what it loads late, nobody has loaded."""
    pytester.makepyfile(TESTS)
    pytester.makeconftest(f"def pytest_collection_modifyitems(items): items.insert(0, items.pop({first}))")
    result = pytester.runpytest_subprocess(
        "-p", "pyfakefs.pytest_plugin", "-p", "no:cacheprovider", "-W", "error", "-q"
    )
    result.assert_outcomes(passed=6)
