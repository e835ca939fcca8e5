"""The page about phones and documents: each row of its tables is what an import does, and the mock reads it alike."""

import re
from pathlib import Path

import pytest
from support.pages import DOCS

from followup.imports import Import
from followup_mockserver import MockService

PAGE = (DOCS / "how-to/import-phones.md").read_text(encoding="utf-8")
ROW = re.compile(
    r"^\| (?P<country>[A-Z]{2})(?P<assume>, .*)? \| `(?P<written>.+)` \| (?P<sent>.+) \| ?(?P<code>.*?) ?\|$"
)
PHONES, DOCUMENTS = (
    [found.groupdict() for line in text.splitlines() if (found := ROW.match(line))]
    for text in PAGE.partition("## Phones")[2].split("## Documents")
)


@pytest.mark.parametrize(
    ("field", "row"),
    [*(("phone", row) for row in PHONES), *(("dni", row) for row in DOCUMENTS)],
    ids=lambda value: f"{value['country']} {value['written']}" if isinstance(value, dict) else value,
)
def test_a_row_of_the_tables_is_what_an_import_does(field: str, row: dict[str, str], tmp_path: Path) -> None:
    mobiles = "assume" if row["assume"] else "keep"
    (tmp_path / "map.toml").write_text(
        f'kind = "appointments"\nzone = "UTC"\ncountry = "{row["country"]}"\nmobiles = "{mobiles}"\n'
        f'[columns]\nexternal_id = "id"\nstart_at = "start"\n"patient.{field}" = "value"\n'
    )
    (tmp_path / "patients.csv").write_text(f"id;start;value\n1;2035-09-28T10:30;{row['written']}\n", encoding="utf-8")
    report = Import.load(tmp_path / "map.toml").check(tmp_path / "patients.csv")
    sent = [f"`{event['data']['patient'][field]}`" for event in report.events]
    assert sent == [row["sent"]] * (row["sent"] != "rejected")
    assert [f"`{doubt.code}`" for doubt in report.doubts] == [row["code"]] * bool(row["code"])


OBSOLETE = ("044", "045", "01 55")


def test_the_mock_reads_each_phone_as_an_import_does() -> None:
    read = [row for row in PHONES if row["sent"] != "rejected" and not row["written"].startswith(OBSOLETE)]
    for country, assume in {(row["country"], row["assume"]) for row in read}:
        with (
            MockService(country=country, mobiles="assume" if assume else "keep") as service,
            service.client() as client,
        ):
            for row in read:
                if (row["country"], row["assume"]) == (country, assume):
                    stored = {client.patients.create(phone=row[key].strip("`")).phone for key in ("written", "sent")}
                    assert stored == {row["sent"].strip("`")}


def test_the_tables_have_the_countries_of_the_service() -> None:
    assert {"AR", "MX", "BR", "CL", "UY", "PE", "CO", "ES", "US"} <= {row["country"] for row in PHONES}
    assert (len(PHONES), len(DOCUMENTS)) == (53, 32)
