"""The public names, as type checkers and editors see them: at runtime, each is imported on first use."""

from followup_mockserver.control import ClockState as ClockState
from followup_mockserver.control import NewOrganization as NewOrganization
from followup_mockserver.control import PendingJob as PendingJob
from followup_mockserver.control import PendingReminder as PendingReminder
from followup_mockserver.control.occurrences import HistoryEntry as HistoryEntry
from followup_mockserver.pytest_plugin.django_project import DjangoProject as DjangoProject
from followup_mockserver.pytest_plugin.environment import MockEnvironment as MockEnvironment
from followup_mockserver.pytest_plugin.environment import RejectedRequest as RejectedRequest
from followup_mockserver.service.server import MockServer as MockServer
from followup_mockserver.service.service import MockService as MockService
from followup_mockserver.world.schema.errors import ServiceError as ServiceError
from followup_mockserver.world.settings import KeyRecord as KeyRecord
from followup_mockserver.world.settings import MockOptions as MockOptions
from followup_mockserver.world.state.faults import Fault as Fault
from followup_mockserver.world.state.faults import WebhookFault as WebhookFault
from followup_mockserver.world.state.journal import JournalEntry as JournalEntry
from followup_mockserver.world.state.records import Attempt as Attempt
from followup_mockserver.world.state.records import Message as Message
from followup_mockserver.world.state.runs import Advanced as Advanced
from followup_mockserver.world.state.runs import JobRun as JobRun
