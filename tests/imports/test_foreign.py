"""Files as other systems write them: what a person sees in a row is what is sent, or the row has a doubt."""

import os
import tomllib
from pathlib import Path

import pytest
from support.exports import lines_of

from followup import ConfigurationError
from followup.imports import Import, ImportRefused

FOLDER = Path(__file__).parent / "foreign"
ANSWERS = tomllib.loads((FOLDER / "answers.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ANSWERS)
def test_what_a_person_sees_is_sent_or_doubted(name: str, tmp_path: Path) -> None:
    case = ANSWERS[name]
    (tmp_path / "map.toml").write_text(case["map"], encoding="utf-8")
    try:
        job = Import.load(tmp_path / "map.toml")
        found = lines_of(job.check(FOLDER / case["file"]), job.map.zone)
    except (ConfigurationError, ImportRefused) as error:
        found = ["error: " + str(error).replace(f"{FOLDER}{os.sep}", "").replace(f"{tmp_path}{os.sep}", "")]
    assert found == case["answer"].strip().splitlines()


def test_every_file_has_an_answer() -> None:
    assert {each.name for each in FOLDER.iterdir()} - {"answers.toml"} == {each["file"] for each in ANSWERS.values()}
