"""The counter of webhooks that arrived only by ``catch_up``."""

from pathlib import Path

import pytest
from telemetry.exported import Exported

from followup.inbox import Inbox
from followup_mockserver import MockService


@pytest.mark.parametrize("setting", ["on", "off"])
def test_catch_up_counts_what_never_arrived(
    exported: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.setenv("FOLLOWUP_TELEMETRY", setting)
    inbox = Inbox(f"sqlite:///{tmp_path / 'clinic.db'}", secret="whsec_1", name="norte")
    inbox.create_tables()
    with MockService() as service, service.client() as client:
        client.webhook_endpoints.create(url="https://clinic.example/hooks", enabled_events=["*"])
        client.patients.create(phone="+54 9 11 5555-0000", full_name="Ana Núñez")
        service.advance()
        assert inbox.catch_up(client).added == 1
        assert inbox.catch_up(client).added == 0
    found = exported.metric("followup.inbox.missed")
    assert found == ([({"followup.inbox.name": "norte"}, 1)] if setting == "on" else [])
