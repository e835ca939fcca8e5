"""The module of the user's program, which ``followup inbox run`` and ``drain`` import."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from followup.cli.inbox import load_inbox
from followup.cli.output import CommandFailed
from followup.inbox import Inbox

Import = Callable[[str], str]


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    """Return a function that lets the command import a module with this source, and returns its error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def import_module(source: str) -> str:
        (tmp_path / "clinic_program.py").write_text(source, encoding="utf-8")
        with pytest.raises(CommandFailed) as caught:
            load_inbox("clinic_program:inbox")
        assert caught.value.status == 1
        return str(caught.value)

    yield import_module
    sys.modules.pop("clinic_program", None)


HINT = "; python -c 'import clinic_program' shows the text of the error"


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("patient = 'Ana Núñez'\nraise LookupError(patient)", f"LookupError{HINT}"),
        ("import sys\nsys.exit('no configuration for Ana Núñez')", f"SystemExit{HINT}"),
        ("import sys\nsys.exit(0)", f"SystemExit{HINT}"),
        ("import json\njson.loads('Ana Núñez')", f"JSONDecodeError{HINT}"),
        ("inbox = 3\nname = 'Ana", f"SyntaxError{HINT}"),
        ("import no_such_package.part", "it needs the module 'no_such_package', which is not installed"),
        (
            "from followup.inbox import Inbox\nInbox('oracle://x')",
            "database must be SQLite, PostgreSQL, MySQL or MariaDB, not oracle",
        ),
    ],
)
def test_an_error_has_its_kind_but_no_text_that_may_have_personal_data(
    imported: Import, source: str, shown: str
) -> None:
    assert imported(source) == f"cannot import clinic_program: {shown}"


def test_ctrl_c_during_the_import_is_not_caught(imported: Import) -> None:
    with pytest.raises(KeyboardInterrupt):
        imported("raise KeyboardInterrupt")


def test_an_inbox_within_an_object_is_found(tmp_path: Path, imported: Import) -> None:
    (tmp_path / "clinic_program.py").write_text(
        "from followup.inbox import Inbox\nclass App:\n    inbox = Inbox('sqlite:///clinic.db')\n"
    )
    assert isinstance(load_inbox("clinic_program:App.inbox"), Inbox)
