"""The probes: one function for each open point that a client can observe."""

from followup_mockserver.judge.calibration.points import Point
from followup_mockserver.judge.calibration.probes import (
    appointments,
    events,
    idempotency,
    intake,
    lists,
    patients,
    requests,
    webhooks,
)

POINTS: tuple[Point, ...] = tuple(
    each
    for module in (requests, lists, patients, appointments, idempotency, intake, events, webhooks)
    for each in vars(module).values()
    if isinstance(each, Point)
)
"""The open points that are asked about, in this order."""
