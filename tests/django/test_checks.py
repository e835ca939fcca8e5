"""``manage.py check`` names what is wrong with the settings; so does the first use."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.test import override_settings
from support.connections import django_database
from support.django_apps import using

from followup.django import client, inbox, outbox
from followup.outbox import Outbox

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
