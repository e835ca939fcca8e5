"""The probes: one function for each open point that is asked about."""

from followup_mockserver.judge.calibration.probes import appointments, events, patients, requests
from followup_mockserver.judge.calibration.run import Point

POINTS: tuple[Point, ...] = tuple(
    each
    for module in (requests, patients, appointments, events)
    for each in vars(module).values()
    if isinstance(each, Point)
)
"""The open points that are asked about, in this order."""
