"""The output that the page about contract drift shows is the output of the command."""

import re
from pathlib import Path

from drift.documents import component, operation, parameter, request, served_document

from followup_mockserver.cli.judge import lines_of
from followup_mockserver.lab.contract_check import compare_document

PAGE = Path(__file__).parents[2] / "docs/how-to/contract-drift.md"


def test_the_output_on_the_page_is_real() -> None:
    document = served_document()
    parameter(document, "GET /v1/patients", "limit")["schema"]["maximum"] = 50
    component(document, "Doctor")["properties"]["fullName"]["type"] = ["string", "null"]
    request(document, "POST /v1/treatments")["properties"]["kind"]["enum"].append("surgery")
    request(document, "POST /v1/treatments")["properties"]["priority"] = {"type": "integer"}
    operation(document, "GET /v1/account")["summary"] = "Who am I?"
    (shown,) = re.findall(r"^```text\n(breaking: .*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert shown.splitlines() == [*lines_of(compare_document(document))]
