"""A file that is written or replaced while it is read is noticed, and nothing of it is recorded."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.systems import needs_replaced_files

from followup import ConfigurationError
from followup.imports import Import
from followup.outbox import Outbox

MAP = """
kind = "patients"
zone = "Europe/Madrid"
country = "ES"
[columns]
"patient.external_id" = "id"
"patient.full_name" = "name"
"""


def append(file: Path) -> None:
    with file.open("a") as stream:
        stream.write("late,Late\n")


def replace(file: Path) -> None:
    other = file.with_suffix(".new")
    other.write_bytes(file.read_bytes())
    information = file.stat()
    os.utime(other, ns=(information.st_atime_ns, information.st_mtime_ns))
    other.replace(file)


def rewrite(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content.replace(b"Ana", b"Eva"))
    os.utime(file, (1, 1))


@pytest.mark.parametrize("change", [append, pytest.param(replace, marks=needs_replaced_files), rewrite])
@pytest.mark.parametrize("moment", ["early in the first pass", "late in the first pass", "in the second pass"])
def test_a_change_while_it_is_read_is_noticed(change: Callable[[Path], None], moment: str, tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text(MAP, encoding="utf-8")
    file, database = tmp_path / "patients.csv", f"sqlite:///{tmp_path}/clinic.db"
    file.write_text("id,name\n" + "".join(f"{number},Ana {number}\n" for number in range(3_000)), encoding="utf-8")
    outbox = Outbox(database)
    outbox.create_tables()
    fractions = []

    def on_progress(rows: int, total: int) -> None:
        fraction = rows / total
        bounds = {"early in the first pass": 0.3, "late in the first pass": 0.6, "in the second pass": 0.9}
        if fraction >= bounds[moment] and not fractions:
            fractions.append(fraction)
            change(file)

    with pytest.raises(ConfigurationError, match=r"patients\.csv changed while it was read"):
        Import.load(tmp_path / "map.toml").run(file, database, on_progress=on_progress)
    assert fractions
    assert outbox.status().waiting == 0
    outbox.close()


def test_progress_tells_the_rows_that_were_read_and_about_how_many_there_are(tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text(MAP, encoding="utf-8")
    (tmp_path / "patients.csv").write_text(
        "id,name\n" + "".join(f"{number},Ana\n" for number in range(5_000)), encoding="utf-8"
    )
    seen: list[tuple[int, int]] = []
    Import.load(tmp_path / "map.toml").check(
        tmp_path / "patients.csv", on_progress=lambda rows, total: seen.append((rows, total))
    )
    assert [rows for rows, _ in seen] == [1_000, 2_000, 3_000, 4_000, 5_000, 5_000]
    assert all(rows <= total for rows, total in seen)
    assert 4_900 < seen[-2][1] < 5_100
    assert seen[-1] == (5_000, 5_000)


def test_what_is_no_file_is_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text(MAP, encoding="utf-8")
    job = Import.load(tmp_path / "map.toml")
    with pytest.raises(ConfigurationError, match="must be a regular file"):
        job.check(tmp_path)
    with pytest.raises(FileNotFoundError):
        job.check(tmp_path / "missing.csv")
