"""The page about layouts: each table is sent as the page shows."""

import re
from datetime import datetime
from pathlib import Path

import pytest
from support.pages import DOCS, blocks

from followup.imports import Import

START, *SECTIONS = (DOCS / "how-to/import-layouts.md").read_text(encoding="utf-8").split("\n## ")
(BASE,) = blocks(START, "toml")
LAYOUTS = [each for each in SECTIONS if blocks(each, "toml")]


@pytest.mark.parametrize("section", LAYOUTS, ids=lambda each: each.partition("\n")[0])
def test_a_table_is_sent_as_the_page_shows(section: str, tmp_path: Path) -> None:
    (table,), (columns,) = blocks(section, "text"), blocks(section, "toml")
    (tmp_path / "export.csv").write_text(table, encoding="utf-8")
    (tmp_path / "map.toml").write_text(BASE + columns, encoding="utf-8")
    job = Import.load(tmp_path / "map.toml")
    report = job.check(tmp_path / "export.csv")
    shown = []
    for event in report.events:
        about = event["data"]["appointment"]
        start = datetime.fromisoformat(about["startAt"]).astimezone(job.map.zone)
        shown.append((about["externalId"], f"{start:%d/%m/%Y %H:%M}", event["data"]["patient"]["fullName"]))
    assert shown == re.findall(r"^\| (.+) \| (\d.+) \| (.+) \|$", section, re.MULTILINE)
    assert report.rejected == 0
