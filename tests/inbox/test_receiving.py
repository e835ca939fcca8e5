"""``receive`` stores an event before it returns 204."""

import logging
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.databases import engine_of, texts
from support.webhook_events import SECRET, body_of, headers_of

from followup import ConfigurationError
from followup.inbox import Inbox

from .conftest import Desk


def stored(url: str) -> list[tuple[str, bytes]]:
    """Return ids and bodies of the stored events, as another program reads them."""
    ids = texts(engine_of(url), "SELECT event_id FROM followup_inbox ORDER BY event_id")
    with engine_of(url).connect() as connection:
        bodies = connection.exec_driver_sql("SELECT body FROM followup_inbox ORDER BY event_id").scalars().all()
    return [*zip(ids, map(bytes, bodies), strict=True)]


@pytest.mark.on_all
def test_a_genuine_event_is_stored_with_its_raw_body(inbox: Desk, database_url: str) -> None:
    body = body_of("whd_1").replace(b'", "', b'",\n  "')
    assert inbox.receive(body, headers_of(body)) == 204
    assert stored(database_url) == [("whd_1", body)]


def test_a_body_may_be_text(inbox: Desk, database_url: str) -> None:
    body = body_of("whd_1")
    assert inbox.receive(body.decode(), headers_of(body)) == 204
    assert stored(database_url) == [("whd_1", body)]


@pytest.mark.on_all
def test_copies_at_once_are_stored_once(inbox: Desk, database_url: str) -> None:
    together = threading.Barrier(16)

    def send(_: int) -> int:
        together.wait()
        return inbox.deliver("whd_1")

    with ThreadPoolExecutor(16) as pool:
        assert [*pool.map(send, range(16))] == [204] * 16
    assert [event_id for event_id, _ in stored(database_url)] == ["whd_1"]


@pytest.mark.parametrize(
    "forge",
    [
        pytest.param(lambda body: (body, headers_of(body, "whsec_other")), id="wrong secret"),
        pytest.param(lambda body: (body.replace(b"apt_1", b"apt_2"), headers_of(body)), id="changed body"),
        pytest.param(lambda body: (body, headers_of(body, sent=time.time() - 400)), id="old"),
        pytest.param(lambda body: (body, headers_of(body, sent=time.time() + 400)), id="from the future"),
        pytest.param(lambda body: (body, {}), id="without headers"),
        pytest.param(lambda body: (b"{}", headers_of(b"{}")), id="no event"),
        pytest.param(lambda body: (b"\xff", headers_of(b"\xff")), id="no JSON"),
    ],
)
def test_a_request_that_is_not_genuine_is_400_and_not_stored(inbox: Desk, database_url: str, forge: object) -> None:
    body, headers = forge(body_of())  # type: ignore[operator]
    assert inbox.receive(body, headers) == 400
    assert stored(database_url) == []


@pytest.mark.parametrize("ref", [r"apt_\u0000", r"apt_\ud800", "a" * 256, ""])
@pytest.mark.on_all
def test_a_genuine_event_that_cannot_be_stored_is_400(inbox: Desk, database_url: str, ref: str) -> None:
    body = body_of(ref="REF").replace(b"REF", ref.encode())
    assert inbox.receive(body, headers_of(body)) == 400
    assert stored(database_url) == []


def test_several_secrets_are_taken_during_a_rotation_and_no_attribute_shows_them(sqlite_url: str) -> None:
    inbox = Inbox(sqlite_url, secret=["whsec_old", "whsec_new"])
    assert "whsec" not in repr(vars(inbox))
    inbox.create_tables()
    body = body_of()
    assert inbox.receive(body, headers_of(body, "whsec_old")) == 204
    assert inbox.receive(body, headers_of(body, "whsec_new")) == 204
    assert inbox.receive(body, headers_of(body, "whsec_other")) == 400


def test_the_secret_comes_from_the_environment(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FOLLOWUP_WEBHOOK_SECRET", raising=False)
    inbox = Inbox(sqlite_url)
    inbox.create_tables()
    body = body_of()
    with pytest.raises(ConfigurationError, match="FOLLOWUP_WEBHOOK_SECRET"):
        inbox.receive(body, headers_of(body))
    monkeypatch.setenv("FOLLOWUP_WEBHOOK_SECRET", f"whsec_other, {SECRET}\r\n")
    assert inbox.receive(body, headers_of(body)) == 204


def test_an_unknown_event_type_and_unknown_fields_are_stored(inbox: Desk, database_url: str) -> None:
    body = body_of("whd_1", "patient.moved", news={"a": 1})
    assert inbox.receive(body, headers_of(body)) == 204
    assert stored(database_url) == [("whd_1", body)]


def test_a_database_that_cannot_be_reached_is_503_and_the_log_shows_no_data(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    inbox = Inbox(f"sqlite:///{tmp_path / 'missing' / 'clinic.db'}", secret=SECRET)
    body = body_of("whd_1")
    with caplog.at_level(logging.DEBUG):
        assert inbox.receive(body, headers_of(body)) == 503
    (record,) = caplog.records
    assert record.getMessage() == "webhook whd_1 not stored: OperationalError: unable to open database file"
    assert record.exc_info is None


@pytest.mark.on_all
def test_missing_tables_are_503_until_they_are_created(database_url: str, caplog: pytest.LogCaptureFixture) -> None:
    inbox = Inbox(database_url, secret=SECRET)
    body = body_of()
    assert inbox.receive(body, headers_of(body)) == 503
    assert "call inbox.create_tables() once" in caplog.text
    inbox.create_tables()
    assert inbox.receive(body, headers_of(body)) == 204
    inbox.close()


def test_a_rejection_is_logged_with_its_reason_and_no_data(inbox: Desk, caplog: pytest.LogCaptureFixture) -> None:
    body = body_of()
    inbox.receive(body, headers_of(body, "whsec_other"))
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith("webhook rejected: signature is invalid")
    assert "Núñez" not in caplog.text


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"max_attempts": 0}, "^max_attempts must be"),
        ({"max_attempts": True}, "^max_attempts must be"),
        ({"handler_timeout": 0}, "^handler_timeout must be"),
        ({"secret": ""}, "^secret must be"),
        ({"secret": []}, "^secret must be"),
    ],
)
def test_an_invalid_option_is_an_error_that_names_it(sqlite_url: str, options: dict[str, object], reason: str) -> None:
    with pytest.raises((ValueError, TypeError), match=reason):
        Inbox(sqlite_url, **options)  # type: ignore[arg-type]


def test_the_sdk_and_the_outbox_do_not_import_the_inbox() -> None:
    code = "import sys, followup, followup.outbox; sys.exit('followup.inbox' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
