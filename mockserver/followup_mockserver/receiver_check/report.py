"""The report about a receiver."""

from collections.abc import Sequence
from typing import Any

import attrs

from followup_mockserver.receiver_check.judging import Outcome


@attrs.frozen(kw_only=True)
class Verdict:
    """The verdict on one case.

    Attributes:
        case: name of the case.
        outcome: PASS, FAIL or NOT SEEN.
        detail: what was observed; for a failure, also how to fix it.
        specification: section and rule of the specification.
    """

    case: str
    outcome: Outcome
    detail: str
    specification: str


@attrs.frozen(kw_only=True)
class Report:
    """The verdicts on all cases.

    Attributes:
        url: URL of the receiver, without its query.
        cases: the verdicts, in the order of the cases.
    """

    url: str
    cases: Sequence[Verdict]

    @property
    def passed(self) -> int:
        """The number of cases that passed."""
        return self._count("PASS")

    @property
    def failed(self) -> int:
        """The number of cases that failed."""
        return self._count("FAIL")

    @property
    def not_seen(self) -> int:
        """The number of cases whose outcome was not seen."""
        return self._count("NOT SEEN")

    def to_dict(self) -> dict[str, Any]:
        """Return the report as data for JSON."""
        return {
            "url": self.url,
            "cases": [attrs.asdict(each) for each in self.cases],
            "passed": self.passed,
            "failed": self.failed,
            "notSeen": self.not_seen,
        }

    def _count(self, outcome: Outcome) -> int:
        return sum(each.outcome == outcome for each in self.cases)
