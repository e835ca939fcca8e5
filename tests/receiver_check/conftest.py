"""Reports about receivers that run in this process, on real sockets."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from receiver_check.receivers import SECRET, Receiver, served

from followup_mockserver.lab.receiver_check import Report, Times, check_receiver

SYNCHRONOUS = Times(probing=0.6, settling=0.2)
"""For receivers that have done their work before they respond."""

Check = Callable[..., Report]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Checks a receiver of a class, with its probe or without."""

    def run(
        kind: type[Receiver], *, secret: str = SECRET, probe: bool = True, times: Times = SYNCHRONOUS, **options: Any
    ) -> Report:
        with served(kind(tmp_path / "clinic.db")) as url:
            return check_receiver(
                f"{url}/webhooks", secret, f"{url}/handled" if probe else None, times=times, **options
            )

    return run


def outcomes(report: Report) -> dict[str, str]:
    return {each.case: each.outcome for each in report.cases}


def failed(report: Report) -> set[str]:
    return {each.case for each in report.cases if each.outcome == "FAIL"}


def detail(report: Report, case: str) -> str:
    return next(each.detail for each in report.cases if each.case == case)
