"""The simulation of a clinic: it plays random histories against the mock, and judges what an integration makes of them.

A clinic is a subclass of ``Clinic``, or of ``OutboxClinic`` if it uses our outbox and inbox; ``simulate`` plays
bookings, faults, repeated and forged webhooks, crashes and restarts, and checks that nothing is lost and nothing is
done twice.
"""

from followup_mockserver import MockService as _MockService  # noqa: F401 - first, because its error names the extra
from followup_mockserver.lab.simulation.clinic import Booking, Clinic, Crash, OutboxClinic
from followup_mockserver.lab.simulation.simulate import simulate

__all__ = ["Booking", "Clinic", "Crash", "OutboxClinic", "simulate"]
