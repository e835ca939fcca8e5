"""The patient follow-up service in memory, to test against."""

from followup_mockserver.control import ClockState, NewOrganization, PendingJob, PendingReminder
from followup_mockserver.engine import Advanced, JobRun
from followup_mockserver.errors import ServiceError
from followup_mockserver.faults import Fault
from followup_mockserver.journal import JournalEntry
from followup_mockserver.organization import KeyRecord
from followup_mockserver.records import Attempt, Message
from followup_mockserver.server import MockServer
from followup_mockserver.service import MockService

__all__ = [
    "Advanced",
    "Attempt",
    "ClockState",
    "Fault",
    "JobRun",
    "JournalEntry",
    "KeyRecord",
    "Message",
    "MockServer",
    "MockService",
    "NewOrganization",
    "PendingJob",
    "PendingReminder",
    "ServiceError",
]
