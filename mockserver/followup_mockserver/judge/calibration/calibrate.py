"""Asks all questions, one after the other."""

from collections.abc import Iterator
from typing import Any, Literal

import attrs

from followup import Account
from followup_mockserver.judge.calibration.not_asked import NOT_ASKED
from followup_mockserver.judge.calibration.points import Point
from followup_mockserver.judge.calibration.probes import POINTS
from followup_mockserver.judge.calibration.run import Run
from followup_mockserver.judge.calibration.service import NotAsked
from followup_mockserver.settings.options import Options


@attrs.frozen
class Finding:
    """What was found about an open point.

    Attributes:
        id: the point.
        outcome: whether the environment does the same as a mock with the default options.
        text: what was found, or why nothing was.
    """

    id: str
    outcome: Literal["same", "different", "not asked"]
    text: str


def ask_all(run: Run) -> Iterator[Finding]:
    """Ask all questions, and yield the finding about each open point as soon as there is one.

    The caller cleans up, whatever happens.
    """
    for each in POINTS:
        yield find(run, each)
    for point_id, reason in NOT_ASKED.items():
        yield _not_asked(point_id, reason)


def find(run: Run, point: Point) -> Finding:
    """Ask about one point. Whatever goes wrong is part of the finding."""
    if (reason := _obstacle(run.account, point)) is not None:
        return _not_asked(point.id, str(reason))
    before = dict(run.settings)
    try:
        text = point.ask(run)
    except NotAsked as reason:
        return _not_asked(point.id, str(reason))
    except Exception as error:  # noqa: BLE001 - a response that no question expects must not end the others
        what = type(error).__name__
        return _not_asked(point.id, f"a response is not as the specification says ({what})")
    if text == point.mock:
        return Finding(point.id, "same", f"found: {text} (the mock: the same)")
    settings = [name for name, value in run.settings.items() if name not in before and value != _default(name)]
    hint = f", without {', '.join(settings)} of [settings]" if settings else ""
    return Finding(point.id, "different", f"found: {text} (the mock: {point.mock}{hint})")


def _not_asked(point_id: str, reason: str) -> Finding:
    return Finding(point_id, "not asked", f"not asked: {reason}")


def _obstacle(account: Account, point: Point) -> str | None:
    lacking = [scope for scope in point.scopes if scope not in account.api_key.scopes]
    if lacking:
        return f"the API key lacks {', '.join(lacking)}"
    if point.needs_line and "follow_up" not in account.service_lines:
        return "the organization lacks the service line follow_up"
    return None


def _default(option: str) -> Any:
    return getattr(Options(), option)
