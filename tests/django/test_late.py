"""The objects of the app are made late, and of what the settings are then."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.test import override_settings
from django.test.utils import setup_test_environment, teardown_test_environment
from support.connections import django_database
from support.django_apps import using

from followup.django import client, outbox
from followup.django.models import make_tables
from followup_mockserver import MockServer

from .conftest import EVENT


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
        for use in (lambda: outbox.record(EVENT), outbox.status):
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
