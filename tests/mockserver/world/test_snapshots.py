"""Snapshots: a saved state, loaded or forked, behaves as the original; what they contain, and how they are replaced."""

import json
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import GeneratorType
from typing import Any, get_args

import attrs
import httpx
import pytest
from support.rich_mock import rich_mock

from followup import FollowUpError
from followup._for_mockserver import camel
from followup_mockserver import MockService
from followup_mockserver.control import engine
from followup_mockserver.world.settings import Options, Organization
from followup_mockserver.world.state.clock import SUBJECT_OF_JOB, JobKind
from followup_mockserver.world.state.registry import SAVED
from followup_mockserver.world.state.tenant import Tenant

NOON = "2026-09-28T12:00:00Z"
HOOKS = "https://clinic.example/hooks"
PHONE = "+5491155550000"

Copier = Callable[[MockService], MockService]


def reloaded(service: MockService) -> MockService:
    return MockService.load(json.loads(json.dumps(service.save())))


copies = pytest.mark.parametrize("copy", [reloaded, MockService.fork], ids=["loaded", "forked"])


def book(service: MockService, external_id: str = "A-1", **options: Any) -> Any:
    start = service.clock.now + timedelta(days=3)
    patient = {"phone": PHONE, "full_name": "Ana Pérez"}
    return service.client().appointments.create(patient=patient, start_at=start, external_id=external_id, **options)


def responding(status: int) -> Callable[[httpx.Request], httpx.Response]:
    return lambda _: httpx.Response(status)


class TestCopies:
    @copies
    def test_a_fault_with_a_probability_fails_the_same_calls(self, copy: Copier) -> None:
        service = MockService(rate_limit=0)  # without a seed
        service.add_fault(operation="account.retrieve", kind="status", status=503, times=None, probability=0.5)
        outcomes = [_succeeds(service) for _ in range(20)]
        assert set(outcomes) == {True, False}
        copied = copy(service)
        assert [_succeeds(copied) for _ in range(40)] == [_succeeds(service) for _ in range(40)]

    @copies
    def test_journal_and_rate_windows_begin_anew(self, copy: Copier) -> None:
        service = MockService(rate_limit=1)
        service.client().account.retrieve()
        copied = copy(service)
        assert copied.requests == []
        copied.client(max_retries=0).account.retrieve()

    @copies
    def test_a_change_of_one_does_not_affect_the_other(self, service: MockService, copy: Copier) -> None:
        booked = book(service)
        service.add_fault(operation="patients.list", kind="status", times=2)
        before = service.save()
        copied = copy(service)
        copied.client().appointments.cancel(booked.id)
        copied.client().patients.update(booked.patient, full_name="Eva")
        copied.update_organization(service_lines=["network"], reminder_hours=[])
        copied.update_api_key(copied.api_key, revoked=True)
        copied.advance(days=9)
        assert not _succeeds(copied)
        copied.clear_faults()
        assert service.save() == before

    def test_a_snapshot_is_taken_as_if_an_attempt_in_progress_had_not_begun(self, service: MockService) -> None:
        saved: list[dict[str, Any]] = []

        def receive(_: httpx.Request) -> httpx.Response:
            saved.append(service.save())
            return httpx.Response(204)

        service.mount(HOOKS, receive)
        endpoint = service.client().webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
        service.client().webhook_endpoints.ping(endpoint.id)
        service.advance()
        service.resend(service.deliveries[0].id)
        during, during_manual_retry = map(MockService.load, saved)
        assert [(each.status, each.attempts) for each in during.deliveries] == [("pending", 0)]
        assert [job.kind for job in during.jobs] == ["delivery"]
        assert [(each.status, each.attempts) for each in during_manual_retry.deliveries] == [("succeeded", 1)]
        assert during_manual_retry.jobs == []
        during.mount(HOOKS, responding(204))
        during.advance()
        assert [attempt.number for attempt in during.attempts(during.deliveries[0].id)] == [1]


def _succeeds(service: MockService) -> bool:
    try:
        service.client(max_retries=0).account.retrieve()
    except FollowUpError:
        return False
    return True


class TestClock:
    def test_a_frozen_clock_shows_the_same_time(self, service: MockService) -> None:
        service.advance(seconds=0.000001)
        assert reloaded(service)._tenant.clock.now() == service._tenant.clock.now(), "to the microsecond"
        assert reloaded(service).save() == service.save()

    def test_a_running_clock_is_as_far_ahead_of_real_time_and_never_goes_back(self) -> None:
        service = MockService()
        service.advance(days=400)
        saved = service.save()
        for now, least in (
            ("2020-01-01T00:00:00Z", timedelta(days=400)),
            ("2100-01-01T00:00:00Z", timedelta(days=8000)),
        ):
            ahead = MockService.load(saved).clock.now - datetime.now(UTC)
            assert timedelta(days=400) <= ahead + timedelta(minutes=1) <= timedelta(days=400, minutes=2)
            saved["organizations"][0]["clock"]["now"] = now
            assert MockService.load(saved).clock.now - datetime.now(UTC) + timedelta(minutes=1) >= least

    def test_start_time_freezes_the_clock(self) -> None:
        saved = MockService().save()
        service = MockService.load(saved, start_time="2100-01-01T00:00:00Z")
        assert service.clock.frozen
        assert service.clock.now == datetime(2100, 1, 1, tzinfo=UTC)

    def test_start_time_before_the_snapshot_is_rejected(self, service: MockService) -> None:
        with pytest.raises(ValueError, match=r"start_time must be the time of the snapshot, 2026-09-28T12:00:00"):
            MockService.load(service.save(), start_time="2026-09-28T11:59:59Z")


class TestLoad:
    def test_takes_data_text_bytes_and_a_path(self, service: MockService, tmp_path: Path) -> None:
        book(service)
        saved = service.save()
        text = json.dumps(saved)
        (tmp_path / "state.json").write_text(text, encoding="utf-8")
        for source in (saved, text, text.encode(), tmp_path / "state.json"):
            assert MockService.load(source).save() == saved

    def test_options_are_as_in_the_snapshot_unless_they_are_passed(self) -> None:
        service = MockService(refuse_unknown_fields=False, forward_to="http://127.0.0.1:9", seed=1)
        saved = service.save()
        assert "forward" not in json.dumps(saved)
        loaded = MockService.load(saved, seed=2)
        assert not loaded.save()["options"]["refuseUnknownFields"]
        hourly = MockService.load(saved, idempotency_hours=1)
        first = book(hourly, idempotency_key="key-1")
        hourly.advance(hours=2)
        assert "Idempotent-Replayed" not in book(hourly, "A-2", idempotency_key="key-1").last_response.headers
        assert hourly.client().appointments.list(external_id="A-1").data[0].id == first.id
        assert book(loaded).id != book(service).id

    def test_reset_returns_to_the_snapshot(self, service: MockService) -> None:
        book(service)
        key = service.create_organization().keys[0].value
        saved = service.save()
        loaded = MockService.load(saved)
        book(loaded, "A-2")
        loaded.client(api_key=key).patients.create(phone=PHONE)
        loaded.organization(key).reset()
        loaded.create_organization()
        assert list(loaded.client(api_key=key).patients.list()) == []
        assert len(list(loaded.client().appointments.list())) == 2
        for _ in range(2):
            loaded.reset()
            assert loaded.save() == saved
            book(loaded, "A-3")

    def test_one_organization_alone_becomes_the_default_one(self, service: MockService) -> None:
        created = service.create_organization(name="Other")
        key = created.keys[0].value
        service.client(api_key=key).patients.create(phone=PHONE)
        loaded = MockService.load(service.organization(key).save())
        assert loaded.api_key == key
        assert loaded.client().account.retrieve().name == "Other"
        assert loaded.client().patients.list().data[0].phone == PHONE
        assert loaded.create_organization().keys[0].value != key


class TestRestore:
    def test_an_earlier_state_of_an_organization_restores_its_keys(self, service: MockService) -> None:
        key = service.create_organization().keys[0].value
        other = service.organization(key)
        saved = other.save()
        other.update_api_key(key, revoked=True)
        added = other.add_api_key().value
        other.restore(saved)
        assert other.save() == saved
        service.client(api_key=key).account.retrieve()
        with pytest.raises(FollowUpError):
            service.client(api_key=added).account.retrieve()

    def test_a_state_of_another_organization_keeps_id_and_keys(self, service: MockService) -> None:
        booked = book(service)
        saved = service.organization(service.api_key).save()
        created = [service.create_organization() for _ in range(2)]
        for each in created:
            key = each.keys[0].value
            service.organization(key).restore(saved)
            client = service.client(api_key=key)
            assert client.account.retrieve().id == each.organization.id
            assert client.appointments.retrieve(booked.id).start_at == booked.start_at
            assert (
                client.patients.create(phone="+5491155550009").id
                == service.fork().client().patients.create(phone="+5491155550009").id
            )
        assert service.organization(service.api_key).save() == saved

    def test_production_and_test_are_not_mixed(self, service: MockService) -> None:
        key = service.create_organization(livemode=True).keys[0].value
        with pytest.raises(ValueError, match=r"organizations\[0\]\.organization\.livemode: This must be as in"):
            service.organization(key).restore(service.organization(service.api_key).save())

    def test_a_key_of_another_organization_is_a_conflict(self, service: MockService) -> None:
        key = service.create_organization().keys[0].value
        saved = service.organization(key).save()
        saved["organizations"][0]["apiKeys"][0]["value"] = service.api_key
        before = service.save()
        with pytest.raises(ValueError, match="An API key of the snapshot belongs to another organization") as raised:
            service.organization(key).restore(saved)
        assert raised.value.status == 409  # type: ignore[attr-defined]
        assert service.save() == before

    def test_an_invalid_snapshot_changes_nothing(self, service: MockService) -> None:
        book(service)
        saved = service.save()
        broken = json.loads(json.dumps(saved))
        broken["organizations"][0]["messages"] = [{}]
        with pytest.raises(ValueError, match=r"organizations\[0\]\.messages\[0\]\.\w+: This field is required"):
            service.restore(broken)
        assert service.save() == saved

    def test_an_organization_that_came_with_a_snapshot_is_reset_to_it(self, service: MockService) -> None:
        other = MockService(rate_limit=0)
        key = other.create_organization().keys[0].value
        other.client(api_key=key).patients.create(phone=PHONE)
        service.restore(other.save())
        service.client(api_key=key).patients.create(phone="+5491155550001")
        service.organization(key).reset()
        assert [patient.phone for patient in service.client(api_key=key).patients.list()] == [PHONE]


def graph(value: Any) -> Any:
    """Return everything that an object of the mock's state consists of as plain data."""
    if isinstance(value, (list, tuple, deque)):
        return [graph(each) for each in value]
    if isinstance(value, (dict, set, frozenset)):
        return {key: graph(value[key]) for key in value} if isinstance(value, dict) else sorted(value)
    if not type(value).__module__.startswith("followup"):
        return value
    slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ()) if name != "__weakref__"]
    names = [*slots, *getattr(value, "__dict__", ())]
    return {name: graph(getattr(value, name)) for name in names if not isinstance(getattr(value, name), GeneratorType)}


# Options are saved beside the organizations. The journal, the waits and the rate windows are of one run. The others are
# set only while a call holds the lock or an attempt is in progress, or are made anew for each tenant.
NOT_SAVED = {
    *("options", "journal", "waits", "rate_limiter"),
    *("cause", "remarks", "sends_webhooks", "attempts_in_progress"),
    *("version", "ended", "lock", "changed", "_subscribers", "_wake", "_timers_seen"),
}


class TestCompleteness:
    def test_a_copy_has_everything_inside_the_parts_of_the_original(self) -> None:
        service = rich_mock()
        fork = service.fork()
        for original, copied in zip(service._access.registry.all(), fork._access.registry.all(), strict=True):
            for name in {*SAVED} - {"clock"}:  # it reads the time of this process
                found, expected = (graph(getattr(tenant, name)) for tenant in (copied, original))
                assert found == expected, name
        assert reloaded(service).save() == service.save()

    def test_every_kind_of_job_has_a_subject_and_code(self) -> None:
        assert list(SUBJECT_OF_JOB) == list(get_args(JobKind))
        assert {*engine._RULES, *engine._TRIGGERS} == {*get_args(JobKind)}

    def test_every_attribute_of_a_tenant_is_saved_or_has_a_reason_not_to_be(self) -> None:
        attributes = set(vars(Tenant(Organization(id="org_1"), (), Options())))
        assert sorted([*SAVED, *NOT_SAVED]) == sorted(attributes)

    def test_every_option_is_saved_but_the_one_that_depends_on_the_machine(self) -> None:
        saved = MockService().save()["options"]
        assert {*saved, "forwardTo"} == {camel(each.name) for each in attrs.fields(Options)}
