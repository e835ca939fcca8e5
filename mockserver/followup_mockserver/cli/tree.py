"""The tree that ``explain`` prints on a terminal: what happened, below what caused it, and what is still to come."""

from collections.abc import Callable, Iterator, Sequence

import attrs

from followup._for_mockserver import visible
from followup.cli.lists import Row
from followup.cli.output import fitting, painted, short_ids, style_of, with_local_times, zone_at

_NOW = "— now —"

_TIME = len("2030-01-01 09:00  ")
"""The width of the time at the beginning of a line."""

_GAP = "  "


def tree_of(lines: Sequence[Row], width: int, *, full_ids: bool) -> Iterator[str]:
    """Iterate over the lines of a tree, each with its time, what happened, the outcome, and an id if there is room.

    Args:
        lines: the lines of the timeline, as the control API returns them; at least one.
        width: the width of the terminal. A line that is longer ends with an ellipsis after a word.
        full_ids: whether ids are whole. Then each line has its id, and is wrapped between words if it is longer.
    """
    zone = zone_at(lines[0]["at"])
    room = width - _TIME
    branches = _branches([line["depth"] for line in lines])
    shown = [_Line.of(line, branch, zone, full_ids) for line, branch in zip(lines, branches, strict=True)]
    ends = [(len(each.head), room - len(_GAP + each.outcome + _GAP + each.id)) for each in shown]
    # The outcomes begin in the column where most of them, and their ids, have room.
    column = max(sorted({end for end, _ in ends}), key=lambda at: sum(end <= at <= last for end, last in ends))
    yield painted(f"{f'at ({zone})':{_TIME}}{'what':{column}}{_GAP}outcome", "bold")
    last_at, is_past = "", True
    for line, each in zip(lines, shown, strict=True):
        if line["upcoming"] and is_past:
            is_past = False
            yield _NOW
        at = "" if each.at == last_at and line["depth"] else each.at
        last_at = each.at
        for text in each.printed(column, room, full_ids):
            yield f"{at:{_TIME}}{text}"
            at = ""


@attrs.frozen
class _Line:
    at: str
    head: str
    outcome: str
    id: str
    indent: str
    style: str

    @classmethod
    def of(cls, line: Row, branch: str, zone: str | None, full_ids: bool) -> "_Line":
        shorten: Callable[[str], str] = str if full_ids else short_ids
        times = f", {line['times']} times" if line["times"] > 1 else ""
        return cls(
            at=with_local_times(line["at"], zone),
            head=branch + visible(line["title"]),
            outcome=visible(shorten(with_local_times(line["outcome"], zone))) + times,
            id=visible(shorten(line["id"] or "")),
            indent=" " * (len(branch) + 2),
            style=style_of(line["tone"]),
        )

    def printed(self, column: int, room: int, needs_id: bool) -> Iterator[str]:
        """Iterate over the lines after the time: one, which ends with an ellipsis if it is too long without its id.

        A line that needs its id is wrapped instead.
        """
        for head in (f"{self.head:{column}}", self.head):
            gap = room - len(f"{head}{_GAP}{self.outcome}{self.id}")
            if gap >= len(_GAP) * bool(self.id):
                yield f"{head}{_GAP}{painted(self.outcome, self.style)}{' ' * gap}{painted(self.id, 'dim')}".rstrip()
                return
        head = f"{self.head:{column}}" if column + len(_GAP + self.outcome) <= room and not needs_id else self.head
        whole = _GAP.join(filter(None, (head, self.outcome, self.id if needs_id else "")))
        first, *others = fitting(whole, room, self.indent) if needs_id or len(whole) <= room else [_cut(whole, room)]
        end = len(self.head)
        yield first[:end] + painted(first[end:], self.style)
        yield from (painted(each, self.style) for each in others)


def _cut(text: str, width: int) -> str:
    """Return the beginning of a text, up to the end of a word, and an ellipsis."""
    end = text.rfind(" ", 0, width)
    return text[: end if end > 0 else width - 1].rstrip(" ,:;") + "…"


def _branches(depths: Sequence[int]) -> list[str]:
    """Return what stands before each title: the branches of the tree, by the depths of its lines."""
    found: list[str] = []
    followed: set[int] = set()  # the depths at which another line follows
    for depth in reversed(depths):
        followed = {each for each in followed if each <= depth}
        stems = "".join("│ " if each in followed else "  " for each in range(1, depth))
        found.append(stems + ("├ " if depth in followed else "└ ") if depth else "")
        followed.add(depth)
    return found[::-1]
