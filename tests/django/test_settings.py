"""The objects of the app are what the settings say when they are used; what is wrong with these is named."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import connections, transaction
from django.test import override_settings
from django.test.utils import setup_test_environment, teardown_test_environment
from support.connections import django_database
from support.django_apps import using

from followup.django import client, inbox, outbox
from followup.django.models import make_tables
from followup.outbox import Outbox
from followup_mockserver import MockServer

from .conftest import EVENT, deliver

RIGHT = {"DATABASE": "default", "WEBHOOK_SECRET": "whsec_test"}
UNSUPPORTED = "django.db.backends.dummy"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in ("WEBHOOK_SECRET", "API_KEY", "BASE_URL"):
        monkeypatch.delenv(f"FOLLOWUP_{each}", raising=False)


def found(**options: Any) -> list[str]:
    return [f"{each.id} {each.msg}" for each in run_checks(**options) if each.id.startswith("followup")]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"WEBHOOK_SECRETS": "whsec_test"}, "E001 FOLLOWUP has no key 'WEBHOOK_SECRETS'."),
        ({"DATABASE": "clinic"}, "E002 FOLLOWUP['DATABASE'] must be one of the aliases in DATABASES, default, "),
        ({"DATABASE": "oracle"}, "E002 FOLLOWUP: database must be SQLite"),
        ({"NAME": ""}, ""),
        ({"NAME": "n" * 256}, "E002 FOLLOWUP: name must be a string of 1 to 255 characters"),
        ({"WEBHOOK_SECRET": "whsec_…"}, "E002 FOLLOWUP: secret is a placeholder"),
        ({"CIPHER": "clinic.keys.cipher"}, "E002 FOLLOWUP: No module named 'clinic'"),
        ({"CIPHER": object()}, "E002 FOLLOWUP: cipher must be an object with the methods"),
        ({"API_KEY": "fu_test_mock "}, "E002 FOLLOWUP: api_key begins or ends with white space"),
        ({"BASE_URL": "clinic.example"}, "E002 FOLLOWUP: base_url"),
        ([], "E002 FOLLOWUP must be a dict, not list"),
        ({"WEBHOOK_SECRET": None}, "W001 There is no secret, so that no webhook can be verified."),
        ({}, ""),
    ],
)
def test_a_wrong_setting_is_named(values: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox.otherwise(lambda _: None)
    monkeypatch.setitem(connections.settings, "oracle", {**connections.settings["default"], "ENGINE": UNSUPPORTED})
    with override_settings(FOLLOWUP={**RIGHT, **values} if isinstance(values, dict) else values):
        problems = found()
        assert len(problems) == bool(message)
        assert all(f"followup.{message}" in each for each in problems)
        if "E002" in message and "api_key" not in message and "base_url" not in message:
            with pytest.raises(ImproperlyConfigured):
                (inbox if "secret" in message else outbox).status()


def test_without_a_key_or_a_secret_the_first_use_says_where_to_set_it() -> None:
    expected = r"no api_key: set FOLLOWUP\['API_KEY'\], or the environment variable FOLLOWUP_API_KEY"
    with override_settings(FOLLOWUP=RIGHT), pytest.raises(ImproperlyConfigured, match=expected):
        client.account.retrieve()
    expected = r"no secret: set FOLLOWUP\['WEBHOOK_SECRET'\], or FOLLOWUP_WEBHOOK_SECRET"
    with override_settings(FOLLOWUP={}), pytest.raises(ImproperlyConfigured, match=expected):
        inbox.receive(b"{}", {})


def test_the_database_is_asked_for_its_tables_only_by_name(sqlite_url: str) -> None:
    inbox.otherwise(lambda _: None)
    with using("sqlite", django_database(sqlite_url)):
        assert found() == found(databases=["default"]) == []
        assert found(databases=["sqlite"]) == [
            "followup.E003 The database 'sqlite' lacks tables of followup, or has those of an earlier release."
        ]
        Outbox(sqlite_url).create_tables()
        assert len(found(databases=["sqlite"])) == 1


@pytest.fixture
def handlers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module ``followup_handlers`` of an installed app."""
    folder = tmp_path / "surgery"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with override_settings(INSTALLED_APPS=[*settings.INSTALLED_APPS, "surgery"], FOLLOWUP=RIGHT):
        yield folder / "followup_handlers.py"
    for each in [name for name in sys.modules if name.startswith("surgery")]:
        del sys.modules[each]


def test_handlers_that_cannot_be_imported_are_an_error_of_their_own(handlers: Path) -> None:
    handlers.write_text("import a_module_that_is_not_there\n", encoding="utf-8")
    for use in (run_checks, inbox._worker):
        with pytest.raises(ModuleNotFoundError, match="a_module_that_is_not_there"):
            use()


def test_an_inbox_without_handlers_is_a_warning(handlers: Path) -> None:
    assert found() == ["followup.W002 No webhook has a handler."]
    handlers.write_text("", encoding="utf-8")
    assert found() == ["followup.W002 No webhook has a handler."]


def test_handlers_of_each_app_are_found(handlers: Path) -> None:
    handlers.write_text(
        "from followup.django import inbox\n@inbox.on('appointment.created')\ndef created(received): ...\n",
        encoding="utf-8",
    )
    assert found() == []
    inbox._worker()
    assert inbox._handlers.find("appointment.created")


def test_a_database_of_another_name_is_another_database(connection: Any, tmp_path: Path) -> None:
    """As that of a test, which gets its name after all modules are imported."""
    with transaction.atomic(using="sqlite"):
        outbox.record(EVENT)
    assert outbox.status().waiting == 1
    connection.close()
    with using("sqlite", django_database(f"sqlite:///{tmp_path / 'test.db'}")) as other:
        with other.schema_editor() as editor:
            make_tables(None, editor)
        assert outbox.status().waiting == 0
    assert outbox.status().waiting == 1


def test_the_client_is_that_of_the_settings_else_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLLOWUP_API_KEY", "fu_wrong")
    with MockServer() as server:
        monkeypatch.setenv("FOLLOWUP_BASE_URL", server.url)
        with override_settings(FOLLOWUP={"API_KEY": server.api_key}):
            assert client.account.retrieve().livemode is False
            client.close()
            assert client.account.retrieve().livemode is False
        monkeypatch.setenv("FOLLOWUP_API_KEY", server.api_key)
        with override_settings(FOLLOWUP={}):
            assert client.account.retrieve().livemode is False
    client.close()
    assert repr(client) == "<DjangoFollowUp of the settings>"


def test_a_test_never_uses_the_database_of_the_project(connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    place = connection.settings_dict
    monkeypatch.setitem(apps.get_app_config("followup_django").databases, "sqlite", place["NAME"])
    monkeypatch.setitem(place, "TEST", {**place["TEST"], "NAME": "test.db"})
    setup_test_environment()
    try:
        for use in (lambda: outbox.record(EVENT), outbox.status, lambda: deliver("whd_1")):
            with (
                transaction.atomic(using="sqlite"),
                pytest.raises(ImproperlyConfigured, match=r"a test would use .*clinic\.db, .*, and not test\.db"),
            ):
                use()
    finally:
        teardown_test_environment()
    assert outbox.status().waiting == 0


def test_without_django_the_import_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.startswith("followup.django")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "django", None)
    with pytest.raises(ImportError, match=r"followup.django needs Django: python -m pip install django"):
        importlib.import_module("followup.django")


def test_without_the_app_the_first_use_names_it() -> None:
    with override_settings(INSTALLED_APPS=[]), pytest.raises(ImproperlyConfigured, match=r'contain "followup.django"'):
        outbox.status()
