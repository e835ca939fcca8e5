"""A project that is made of the files of the page works, and so do its tests."""

import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

from django.core.management import call_command
from support.django_apps import set_up
from support.pages import blocks, read, section

PAGE = read("how-to/django.md")
SETTING = re.compile(r"^\| `([A-Z_]+)` \|", re.MULTILINE)


COMMANDS = """
import manage, sys
for each in sys.argv[1:]:
    sys.argv = ["manage.py", *each.split()]
    manage.main()
"""
"""All commands in one process: each takes seconds to start."""


def run(folder: Path, *arguments: str) -> str:
    """Run Python in a project, without the plugins of pytest that it does not need, and return its output."""
    plugins = {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": "pytest_django.plugin,followup_mockserver.pytest_plugin",
    }
    ran = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, **plugins, "FOLLOWUP_WEBHOOK_SECRET": "whsec_test"},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


OWN_ENDPOINT = """
from bookings.models import Booking, book
from followup.django import client, inbox

def test_an_endpoint_of_the_test_takes_the_place_of_ours(followup_django, settings):
    assert [each.url for each in client.webhook_endpoints.list()] == [followup_django.url]
    own = client.webhook_endpoints.create(url=followup_django.url, enabled_events=["appointment.created"])
    settings.FOLLOWUP = {"WEBHOOK_SECRET": own.secret}
    book("+54 9 11 5555-0000", "2030-03-01T10:00:00-03:00")
    followup_django.settle()
    assert inbox.status().done == 1
    assert Booking.objects.get().service_id
    assert [each.id for each in client.webhook_endpoints.list()] == [own.id]
"""


def test_a_project_made_of_the_page_works(tmp_path: Path) -> None:
    set_up()
    (tmp_path / "bookings").mkdir()
    call_command("startproject", "clinic", tmp_path)
    call_command("startapp", "bookings", tmp_path / "bookings")
    files = [each.partition("\n") for each in blocks(PAGE, "(?:python|text) django")]
    assert len(files) == 6
    for first, _, text in files:
        name = first.removeprefix("# ").partition(",")[0]
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(file.read_text() + text if name.endswith("settings.py") else text)
    (tmp_path / "tests/test_endpoint.py").write_text(OWN_ENDPOINT)
    made = run(tmp_path, "-c", COMMANDS, "makemigrations bookings", "migrate", "check --database default")
    assert "no issues" in made
    assert "4 passed" in run(tmp_path, "-m", "pytest", "-q", "tests")
    with sqlite3.connect(tmp_path / "db.sqlite3") as connection:  # the tests have a database of their own
        assert connection.execute("SELECT count(*) FROM followup_outbox").fetchone() == (0,)


def test_the_page_lists_the_settings_and_the_commands() -> None:
    from followup.django import from_settings
    from followup.django.management import commands

    assert SETTING.findall(section(PAGE, "Begin a project")) == [*from_settings.SETTINGS]
    files = Path(str(commands.__file__)).parent.glob("followup_*.py")
    assert {*re.findall(r"^\| `(\w+)` \|", section(read("how-to/django-details.md"), "Commands"), re.MULTILINE)} == {
        each.stem for each in files
    }
