"""An exception of a mounted receiver is recorded, and raised out of ``advance``, whatever the framework."""

import asyncio
import functools
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import fastapi
import httpx
import pytest
from support.django_apps import asgi_view
from support.receiver_kinds import KINDS, flask_app, function
from support.waiting import wait_for

from followup_mockserver import MockServer, MockService

URL = "https://clinic.example/hooks"
NOON = datetime(2026, 9, 28, 12, tzinfo=UTC)


class Crash(BaseException):
    """Ends a test at once, as the outcomes of pytest do."""


@pytest.fixture
def service() -> Iterator[MockService]:
    with MockService(start_time=NOON, rate_limit=0) as running:
        with running.client() as client:
            client.webhook_endpoints.create(url=URL, enabled_events=["patient.upserted"])
            client.patients.create(phone="+5491155550000", full_name="Ana Privada")
        yield running


def fail() -> None:
    raise KeyError("externalId")


class Middleware:
    """Passes on what it gets, in an environment of its own."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        return self.app(dict(environ), start_response)


FAILING: dict[str, Callable[[], Any]] = {
    **{name: functools.partial(make, fail) for name, make in KINDS.items()},
    "Flask in testing mode": lambda: flask_app(fail, testing=True),
    "Flask in middleware": lambda: Middleware(flask_app(fail)),
    "Django ASGI with a synchronous view": lambda: asgi_view(lambda _: fail()),
}
failing_function = function(fail)


@pytest.mark.parametrize("asynchronous", [False, True], ids=["advance", "advance_async"])
@pytest.mark.parametrize("make", FAILING.values(), ids=FAILING)
class TestEveryKind:
    def test_the_exception_is_recorded_and_raised(
        self, service: MockService, make: Callable[[], Any], asynchronous: bool
    ) -> None:
        service.mount(URL, make())
        with pytest.raises(KeyError, match="externalId") as caught:
            asyncio.run(service.advance_async(days=1)) if asynchronous else service.advance(days=1)
        assert service.clock.now == NOON
        (delivery,) = service.deliveries
        (attempt,) = service.attempts(delivery.id)
        assert caught.traceback[-1].name == "fail"
        assert (delivery.status, delivery.attempts) == ("pending", 1)
        assert delivery.last_error == attempt.error == "The receiver raised KeyError."
        assert delivery.next_attempt_at == NOON + timedelta(minutes=1)
        assert attempt.traceback is not None
        assert attempt.traceback.startswith("Traceback (most recent call last):")
        assert ", in fail\n" in attempt.traceback
        assert attempt.traceback.endswith("KeyError: 'externalId'\n")
        (note,) = caught.value.__notes__
        for part in (delivery.id, "patient.upserted", URL, "attempt 1"):
            assert part in note
        assert "Ana" not in note.replace(delivery.id, "")


SOME = ("function", "FastAPI", "Flask in middleware")
"""Kinds that are called in different ways; what follows from their exceptions is the same for all."""


@pytest.mark.parametrize("make", [FAILING[kind] for kind in SOME], ids=SOME)
class TestSomeKinds:
    def test_the_clock_stays_at_the_attempt_and_a_following_advance_goes_on(
        self, service: MockService, make: Callable[[], Any]
    ) -> None:
        service.mount(URL, make())
        with pytest.raises(KeyError):
            service.advance(days=1)
        assert service.clock.now == NOON
        with pytest.raises(KeyError):
            service.advance(days=1)
        assert service.clock.now == NOON + timedelta(minutes=1)
        service.mount(URL, lambda _: httpx.Response(204))
        service.advance(days=1)
        assert (service.deliveries[0].status, service.deliveries[0].attempts) == ("succeeded", 3)
        assert service.clock.now == NOON + timedelta(days=1, minutes=1)

    def test_on_request_it_is_only_recorded(self, service: MockService, make: Callable[[], Any]) -> None:
        service.mount(URL, make(), raise_exceptions=False)
        service.advance()
        (attempt,) = service.attempts(service.deliveries[0].id)
        assert attempt.error == "The receiver raised KeyError."
        assert ", in fail\n" in (attempt.traceback or "")

    def test_a_server_records_and_logs_it_once(self, make: Callable[[], Any], caplog: pytest.LogCaptureFixture) -> None:
        with MockServer(rate_limit=0) as server, server.client() as client:
            server.mount(URL, make())
            client.webhook_endpoints.create(url=URL, enabled_events=["*"])
            client.patients.create(phone="+5491155550000", full_name="Ana Privada")
            (delivery,) = wait_for(lambda: [each for each in server.deliveries if each.last_error])
            (attempt,) = server.attempts(delivery.id)
        assert attempt.error == "The receiver raised KeyError."
        assert ", in fail\n" in (attempt.traceback or "")
        (record,) = [each for each in caplog.records if each.name == "followup_mockserver"]
        assert record.levelno == logging.ERROR
        assert record.exc_info is not None
        assert delivery.id in record.getMessage()
        assert "Ana Privada" not in record.getMessage()


class TestFunctions:
    def test_the_same_object_is_raised_with_its_cause(self, service: MockService) -> None:
        error, cause = KeyError("externalId"), ValueError("the cause")
        error.__cause__ = cause

        def receive(_: httpx.Request) -> httpx.Response:
            raise error

        service.mount(URL, receive)
        with pytest.raises(KeyError) as caught:
            service.advance()
        assert caught.value is error
        assert error.__cause__ is cause
        assert error.__context__ is None

    @pytest.mark.parametrize("move", ["step", "resend"])
    def test_step_and_resend_raise_too(self, service: MockService, move: str) -> None:
        service.mount(URL, failing_function)
        with pytest.raises(KeyError):
            service.step() if move == "step" else service.resend(service.deliveries[0].id)
        assert service.deliveries[0].attempts == 1

    @pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), Crash(), pytest.fail.Exception("no")])
    @pytest.mark.parametrize("raise_exceptions", [True, False])
    def test_an_exit_always_gets_out_with_the_attempt_failed(
        self, service: MockService, error: BaseException, raise_exceptions: bool
    ) -> None:
        def receive(_: httpx.Request) -> httpx.Response:
            raise error

        service.mount(URL, receive, raise_exceptions=raise_exceptions)
        with pytest.raises(type(error)) as caught:
            service.advance()
        assert caught.value is error
        assert service.deliveries[0].last_error == f"The receiver raised {type(error).__name__}."
        assert service.deliveries[0].next_attempt_at == NOON + timedelta(minutes=1)

    def test_a_function_that_returns_something_else_is_told_so(self, service: MockService) -> None:
        service.mount(URL, lambda _: 204)
        with pytest.raises(TypeError, match=r"must return an httpx\.Response, and returned a int"):
            service.advance()

    def test_the_other_deliveries_stay_due(self, service: MockService) -> None:
        with service.client() as client:
            client.patients.create(phone="+5491155550001")
        service.mount(URL, failing_function)
        with pytest.raises(KeyError):
            service.advance()
        assert sorted(each.attempts for each in service.deliveries) == [0, 1]
        assert len(service.jobs) == 2

    def test_a_receiver_that_raises_too_late_has_timed_out(self) -> None:
        class Impatient(MockService):
            _attempt_timeout = 0.05

        def slow(_: httpx.Request) -> httpx.Response:
            time.sleep(0.1)
            raise KeyError("late")

        with Impatient(start_time=NOON) as service, service.client() as client:
            client.webhook_endpoints.create(url=URL, enabled_events=["*"])
            client.patients.create(phone="+5491155550000")
            service.mount(URL, slow)
            service.advance()
            assert service.deliveries[0].last_error == "No response within 0.05 s."
            assert "KeyError" in (service.attempts(service.deliveries[0].id)[0].traceback or "")


class TestFlaskAndDjango:
    @pytest.mark.parametrize("kind", ["Flask", "Django WSGI", "Django ASGI"])
    def test_the_status_is_theirs(self, service: MockService, kind: str) -> None:
        service.mount(URL, FAILING[kind](), raise_exceptions=False)
        service.advance()
        assert service.deliveries[0].last_status_code == 500

    def test_an_exception_of_another_application_is_not_the_receivers(self, service: MockService) -> None:
        other = flask_app(fail)

        def receive(_: httpx.Request) -> httpx.Response:
            assert other.test_client().post("/hooks").status_code == 500
            return httpx.Response(503)

        service.mount(URL, receive)
        service.advance()
        assert service.deliveries[0].last_error == "HTTP status 503."

    def test_services_in_several_threads_each_get_their_own_exception(self) -> None:
        def run(number: int) -> None:
            class Mine(Exception):
                pass

            def work() -> None:
                time.sleep(0.001)
                raise Mine(number)

            # The same seed gives all of them the same ids, secrets and signatures.
            with MockService(start_time=NOON, seed=1) as service, service.client() as client:
                client.webhook_endpoints.create(url=URL, enabled_events=["*"])
                service.mount(URL, flask_app(work))
                for patient in range(3):
                    client.patients.create(phone=f"+549115555000{patient}")
                    with pytest.raises(Mine, match=f"^{number}"):
                        service.advance()

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(run, range(8))) == [None] * 8


class TestFastAPI:
    def test_a_background_task_that_fails_is_raised_and_the_delivery_succeeded(self, service: MockService) -> None:
        app = fastapi.FastAPI()

        @app.post("/hooks", status_code=202)
        def hook(tasks: fastapi.BackgroundTasks) -> None:
            tasks.add_task(fail)

        service.mount(URL, app)
        with pytest.raises(KeyError):
            service.advance()
        (attempt,) = service.attempts(service.deliveries[0].id)
        assert (service.deliveries[0].status, attempt.status_code, attempt.error) == ("succeeded", 202, None)
        assert "KeyError" in (attempt.traceback or "")
