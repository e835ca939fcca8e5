"""Send the nightly CSV export of a clinic; it can be repeated at any time.

Run it with ``python sync_csv.py export.csv``. The columns are patient_id, name, phone, dni,
appointment_id, start and kind.
"""

import csv
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from followup import FollowUp, InvalidRequestError


def sync(client: FollowUp, rows: Iterable[Mapping[str, str]]) -> tuple[int, list[str]]:
    """Send the rows; return the number of those that succeeded, and the problems of the others."""
    done, problems = 0, []
    for number, row in enumerate(rows, start=2):
        try:
            push(client, row)
        except InvalidRequestError as error:
            # The error names the field, and the line is known here: no personal data is printed.
            problems.append(f"line {number}: {error.param}: {error.code}")
        else:
            done += 1
    return done, problems


def push(client: FollowUp, row: Mapping[str, str]) -> None:
    """Send one row."""
    # The external ids make a repetition harmless: an existing object is returned.
    patient = client.patients.create(
        phone=row["phone"], full_name=row["name"], dni=row["dni"], external_id=row["patient_id"]
    )
    client.appointments.create(
        patient=patient.id,
        start_at=row["start"],
        type=row["kind"],
        external_id=row["appointment_id"],
    )


def main(path: str) -> int:
    """Send the file; return the exit status."""
    with FollowUp() as client, Path(path).open(encoding="utf-8", newline="") as file:
        done, problems = sync(client, csv.DictReader(file))
    print(f"{done} rows sent")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
