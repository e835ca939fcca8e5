"""The commands on stores that are encrypted."""

import shutil
from pathlib import Path

import pytest
from cryptography.fernet import Fernet, MultiFernet
from support.databases import engine_of
from support.shell import Shell
from support.stores import record

from followup.inbox import Inbox
from followup.outbox import Outbox
from followup_mockserver import MockServer

KEYS = [Fernet.generate_key().decode() for _ in range(2)]
MODULE = f"""
from cryptography.fernet import Fernet, MultiFernet
old = Fernet("{KEYS[0]}")
both = MultiFernet([Fernet("{KEYS[1]}"), old])
wrong = Fernet(Fernet.generate_key())
text = "{KEYS[0]}"
"""
OLD, NEW = map(Fernet, KEYS)
EXAMPLES = Path(__file__).parents[2] / "examples/import"


@pytest.fixture
def url(shell: Shell) -> str:
    """An encrypted database with an event that waits, and a module with keys."""
    (shell.directory / "clinic_keys.py").write_text(MODULE)
    (shell.directory / "broken_keys.py").write_text(f'raise ValueError("{KEYS[0]}")')
    url = shell.environment["FOLLOWUP_DATABASE_URL"] = f"sqlite:///{shell.directory}/clinic.db"
    outbox = Outbox(url, cipher=OLD)
    outbox.create_tables()
    Inbox(url, cipher=OLD).create_tables()
    record(outbox, engine_of(url), "e1")
    return url


def test_commands_take_the_cipher_from_the_option_or_the_environment(url: str, shell: Shell) -> None:
    assert shell.json("outbox", "status", "--cipher", "clinic_keys:old")[0]["waiting"] == 1
    shell.environment["FOLLOWUP_CIPHER"] = "clinic_keys:both"
    assert shell.run("outbox", "run", "--until-empty").stdout == "1 sent, 0 duplicates, 0 rejected\n"
    assert shell.run("outbox", "reencrypt").stdout == "Encrypted 1 event again.\n"
    assert shell.run("inbox", "reencrypt").stdout == "Encrypted 0 events again.\n"
    assert Outbox(url, cipher=NEW).status().sent == 1
    assert Inbox(url, cipher=NEW).status().done == 0


def test_an_import_records_encrypted_events(url: str, shell: Shell, server: MockServer) -> None:
    for name in ("turnos.csv", "turnos.toml"):
        shutil.copy(EXAMPLES / name, shell.directory)
    run = ("import", "run", "turnos.csv", "--map", "turnos.toml", "--send")
    assert "is encrypted: pass --cipher MODULE:NAME, with the key" in shell.error(*run)
    assert "Sent: 47." in shell.run(*run, "--cipher", "clinic_keys:old").stdout
    with engine_of(url).connect() as connection:
        stored = str(connection.exec_driver_sql("SELECT * FROM followup_outbox").all())
    assert not any(each in stored for each in ("Quiroga", "33456789", "1148120", "HC-1017", "appointment"))
    verified = shell.run(*("import", "verify", "turnos.csv", "--map", "turnos.toml", "--cipher", "clinic_keys:old"))
    assert "agree" in verified.stdout or "difference" in verified.stdout, verified.stderr


@pytest.mark.parametrize(
    ("cipher", "message"),
    [
        (None, "the outbox 'default' is encrypted: pass --cipher MODULE:NAME, with the key that it was encrypted with"),
        ("clinic_keys:wrong", "the outbox 'default' is encrypted under a key that the cipher does not have"),
        ("clinic_keys:text", "--cipher must be an object with the methods encrypt(bytes) and decrypt(bytes), such as"),
        ("clinic_keys:missing", "--cipher clinic_keys:missing: the module has no such name"),
        ("clinic_keys", "'clinic_keys' must be MODULE:NAME, such as clinic.keys:cipher"),
        ("no_keys:cipher", "there is no module 'no_keys'"),
        ("broken_keys:cipher", "cannot import broken_keys: ValueError; python -c"),
    ],
)
def test_a_cipher_that_does_not_fit_is_an_error_without_the_key(
    url: str, shell: Shell, cipher: str | None, message: str
) -> None:
    error = shell.error("outbox", "run", "--until-empty", *(["--cipher", cipher] if cipher else []))
    assert message in error
    assert KEYS[0] not in error
    assert Outbox(url, cipher=OLD).status().waiting == 1


def test_until_empty_ends_at_an_event_that_cannot_be_decrypted(url: str, shell: Shell) -> None:
    record(Outbox(url, cipher=OLD), engine_of(url), "e2")
    stranger = MultiFernet([NEW, OLD])
    record(Outbox(url, cipher=stranger), engine_of(url), "e3")
    result = shell.run("outbox", "run", "--until-empty", "--cipher", "clinic_keys:old")
    assert result.returncode == 1
    assert "event e3 cannot be decrypted: the cipher lacks its key" in result.stderr
    assert Outbox(url, cipher=stranger).status().sent == 2
