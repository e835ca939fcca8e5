"""Many calls keep to the request rate (specification, section 8)."""

from followup.cli.pace import Pace


def test_section_8_calls_are_spread_over_the_minute() -> None:
    time = [100.0]
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        time[0] += seconds

    pace = Pace(600, lambda: time[0], sleep)
    pace.wait()
    assert slept == []  # the first goes at once
    for _ in range(599):
        pace.wait()
    assert round(time[0] - 100, 6) == 59.9
    slept.clear()
    time[0] += 30  # a response that took long
    pace.wait()
    assert slept == []
    pace.wait()
    assert [round(each, 6) for each in slept] == [0.1]
