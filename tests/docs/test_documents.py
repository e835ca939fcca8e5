"""The Python of the documents runs, and their links lead somewhere."""

import re
from pathlib import Path
from typing import Any

import pytest

from followup import FollowUp
from followup_mockserver import MockServer, MockService

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_the_code_of_a_document_runs(
    document: Path,
    monkeypatch: pytest.MonkeyPatch,
    followup_service: MockService,
    followup_client: FollowUp,
) -> None:
    names: dict[str, Any] = {"__name__": "document"}
    with MockServer(allow_http_webhooks=True) as server:
        monkeypatch.setenv("FOLLOWUP_BASE_URL", server.url)
        monkeypatch.setenv("FOLLOWUP_API_KEY", server.api_key)
        for block in BLOCK.findall(document.read_text()):
            code = block.replace("http://127.0.0.1:4210", server.url)
            exec(compile(code, document.name, "exec"), names)
    available = {"followup_service": followup_service, "followup_client": followup_client}
    for name, value in names.items():
        if name.startswith("test_"):
            parameters = value.__code__.co_varnames[: value.__code__.co_argcount]
            value(**{each: available[each] for each in parameters})


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text()):
        if not target.startswith("http"):
            assert (document.parent / target).exists(), target
