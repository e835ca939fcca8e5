"""The receiver of the page on webhooks accepts genuine requests and rejects forged ones."""

import re
import runpy
from pathlib import Path

import pytest

from followup import FollowUp
from followup_mockserver import MockService

PAGE = (Path(__file__).parents[2] / "docs/how-to/receivers.md").read_text()


def test_the_receiver_of_the_page_verifies_webhooks(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    followup_service: MockService,
    followup_client: FollowUp,
) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    program = tmp_path / "receiver.py"
    program.write_text(code)
    url = "https://clinic.example/webhooks"
    followup_service.mount(url, runpy.run_path(str(program))["app"])
    endpoint = followup_client.webhook_endpoints.create(url=url, enabled_events=["patient.upserted"])
    assert endpoint.secret is not None
    monkeypatch.setenv("FOLLOWUP_WEBHOOK_SECRET", endpoint.secret)

    followup_service.disturb(kind="wrong_signature")
    patient = followup_client.patients.create(phone="+54 9 11 5555-0000")
    followup_service.advance()
    assert [each.last_status_code for each in followup_service.deliveries] == [400]
    printed = capsys.readouterr().out
    assert printed.startswith("rejected: ")
    assert endpoint.secret not in printed

    followup_service.advance(minutes=1)
    assert [each.last_status_code for each in followup_service.deliveries] == [204]
    printed = capsys.readouterr().out
    assert printed.startswith(f"{followup_service.deliveries[0].id} patient.upserted ")
    assert printed.endswith(f" {patient.id}\n")
