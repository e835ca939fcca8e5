"""The admin pages show what is not finished, and personal data to those who may see it."""

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.db import connections, transaction
from django.test import Client
from django.urls import path
from support import django_apps
from support.django_apps import using

from followup.django import inbox, outbox
from followup_mockserver import MockService

from .conftest import EVENT, deliver

OUTBOX, INBOX = "/admin/followup_django/outboxevent/", "/admin/followup_django/inboxevent/"


@pytest.fixture(scope="module", autouse=True)
def urls() -> Iterator[None]:
    """The URLs of the admin, and a database in memory with the tables of all apps."""
    django_apps.urlpatterns.append(path("admin/", admin.site.urls))
    call_command("migrate", verbosity=0)
    yield
    django_apps.urlpatterns.pop()
    connections["default"].connection.close()
    connections["default"].connection = None


@pytest.fixture
def browser(request: pytest.FixtureRequest) -> Iterator[Client]:
    """A browser in which somebody with some permissions is logged in."""
    with using("default", {}):
        call_command("flush", interactive=False, verbosity=0)
        user = User.objects.create_user("ana", is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=getattr(request, "param", ALL)))
        client = Client()
        client.force_login(user)
        yield client


ALL = ["view_outboxevent", "change_outboxevent", "view_inboxevent", "change_inboxevent", "view_personal_data"]
VIEW = ["view_outboxevent", "view_inboxevent"]


def record_all() -> None:
    """Record an event that dies, one that it holds, and one of another subject that waits."""
    with MockService() as service:
        with transaction.atomic():
            outbox.record({**EVENT, "id": "dead-1", "data": {"patient": {"phone": "+54 9 11"}}}, subject="phone 5550")
            outbox.record({**EVENT, "id": "held-1"}, subject="phone 5550")
        assert outbox.drain(service.client()).rejected == 1
    with transaction.atomic():
        outbox.record({**EVENT, "id": "waiting-1"})


def ids(browser: Client, query: str = "", page: str = OUTBOX) -> list[str]:
    """Return the ids of events that a list shows."""
    text = browser.get(f"{page}?{query}").content.decode()
    return re.findall(r'field-event_id"><a [^>]*>([^<]+)', text)


def act(browser: Client, action: str, page: str = OUTBOX) -> str:
    """Choose all events, and call an action; return the page."""
    rows = re.findall(r'name="_selected_action" value="(\d+)"', browser.get(page).content.decode())
    data = {"action": action, "_selected_action": rows}
    return browser.post(page, data, follow=True).content.decode()


def test_what_is_not_finished_can_be_searched_and_filtered(browser: Client) -> None:
    record_all()
    assert ids(browser) == ["dead-1", "held-1", "waiting-1"]
    assert ids(browser, "q=held-1") == ["held-1"]
    for state in ("dead", "held", "waiting"):
        assert ids(browser, f"state={state}") == [f"{state}-1"]
    assert ids(browser, "state=in_flight") == []
    deliver("whd_1")
    assert ids(browser, "state=waiting&type=appointment.created", INBOX) == ["whd_1"]


def test_dead_events_are_retried_and_discarded(browser: Client) -> None:
    record_all()
    with transaction.atomic():  # as with ATOMIC_REQUESTS
        assert "1 of 3 events: will be sent again." in act(browser, "retry")
    assert (outbox.status().dead, outbox.status().waiting) == (0, 3)
    with MockService() as service:
        outbox.drain(service.client())
    assert "1 of 2 events: discarded." in act(browser, "discard")
    assert (outbox.status().dead, outbox.status().held, outbox.status().waiting) == (0, 0, 1)
    deliver("whd_1")
    inbox.drain()
    assert "1 of 1 events: will be handled again." in act(browser, "retry", INBOX)
    assert inbox.status().waiting == 1
    history = browser.get(f"{INBOX}{1}/history/")
    assert history.status_code == 200


@pytest.mark.parametrize("browser", [VIEW, [*VIEW, "view_personal_data"]], indirect=True)
def test_who_may_only_look_neither_acts_nor_adds_nor_deletes(browser: Client) -> None:
    record_all()
    list_of_all = browser.get(OUTBOX).content.decode()
    assert 'value="retry"' not in list_of_all
    assert "delete_selected" not in list_of_all
    act(browser, "retry")
    assert outbox.status().dead == 1
    (first, *_) = re.findall(r'field-event_id"><a href="([^"?]+)', list_of_all)
    for address in (f"{OUTBOX}add/", first.replace("change", "delete")):
        assert browser.get(address).status_code == 403


@pytest.mark.parametrize(("browser", "is_shown"), [(ALL[:-1], False), (ALL, True)], indirect=["browser"])
def test_personal_data_is_for_those_who_may_see_it(browser: Client, *, is_shown: bool) -> None:
    record_all()
    deliver("whd_1")
    text = ""
    for page in (OUTBOX, INBOX):
        list_of_all = browser.get(page).content.decode()
        assert "5550" not in list_of_all
        for address in re.findall(r'field-event_id"><a href="([^"?]+)', list_of_all):
            shown = browser.get(address)
            assert shown.status_code == 200
            assert "_save" not in shown.content.decode()
            assert re.search(r"<h2>\s*(dead-1|held-1|waiting-1|whd_1)\s*</h2>", shown.content.decode())
            text += shown.content.decode()
    for personal in ("phone 5550", "Ana Núñez", "+54 9 11"):
        assert (personal in text) == is_shown


@pytest.mark.parametrize("browser", [VIEW], indirect=True)
@pytest.mark.parametrize("query", ["event__contains=5491155550001", "subject__contains=5550", "event__regex=Ana"])
def test_a_url_cannot_ask_what_its_user_may_not_see(browser: Client, query: str) -> None:
    record_all()
    assert browser.get(f"{OUTBOX}?{query}").status_code == 400
    assert browser.get(f"{INBOX}?{query.replace('event', 'body')}").status_code == 400


def test_an_event_of_which_only_the_id_is_left_is_not_handled_again(browser: Client) -> None:
    deliver("whd_1")
    inbox.drain()
    (row,) = re.findall(r'name="_selected_action" value="(\d+)"', browser.get(INBOX).content.decode())
    inbox.purge(older_than=timedelta(), states={"unhandled"})
    browser.post(INBOX, {"action": "retry", "_selected_action": [row]}, follow=True)
    deliver("whd_2")
    assert inbox.drain().remaining == 0
    assert (inbox.status().waiting, inbox.status().unhandled) == (0, 1)


def test_one_damaged_event_does_not_hide_the_others(browser: Client) -> None:
    record_all()
    apps.get_model("followup_django", "OutboxEvent").objects.filter(event_id="dead-1").update(event="damaged")
    assert ids(browser) == ["dead-1", "held-1", "waiting-1"]
    (address, *_) = re.findall(r'field-event_id"><a href="([^"?]+)', browser.get(OUTBOX).content.decode())
    assert "problem" in browser.get(address).content.decode()
