"""The internals of the SDK that the mock server uses. It imports no other private module; import-linter enforces this.

The mock derives its request and response schemas from the SDK's declarations, so it needs more than the public names.
Before you change an internal of the SDK, check here whether the mock depends on it. None of these names is public: they
change without notice.
"""

from followup._annotations import *  # noqa: F403 - all of its public names
from followup._call.options import DEFAULT_TIMEOUT as DEFAULT_TIMEOUT
from followup._codec.decode import decode as decode
from followup._codec.encode import NOT_GIVEN as NOT_GIVEN
from followup._codec.encode import encode as encode
from followup._codec.names import *  # noqa: F403 - all of its public names
from followup._declarations.declarations import Declaration as Declaration
from followup._declarations.declarations import Parameter as Parameter
from followup._declarations.declarations import descriptions_in as descriptions_in
from followup._declarations.declarations import lazy as lazy
from followup._declarations.operations import declarations_of as declarations_of
from followup._declarations.operations import group_name as group_name
from followup._frames import clears_frames_of as clears_frames_of
from followup._redaction import redacted as redacted
from followup._redaction import visible as visible
from followup._results.results import NO_EXTRA as NO_EXTRA
from followup._results.results import Model as Model
from followup._threads import ATTEMPT_THREAD as ATTEMPT_THREAD
from followup._threads import addresses_of as addresses_of
from followup._threads import result_within as result_within
from followup._time import REAL_TIME as REAL_TIME
from followup._time import Time as Time
from followup._time import reproducible_randomness as reproducible_randomness
from followup._time import use_virtual_time as use_virtual_time
from followup._time import virtual_store_time as virtual_store_time
from followup._time import virtual_time as virtual_time
from followup.resources import all_groups as all_groups
from followup.resources.account import ServiceLine as ServiceLine
from followup.resources.appointments import Appointments as Appointments
from followup.resources.appointments import AppointmentSource as AppointmentSource
from followup.resources.appointments import AppointmentStatus as AppointmentStatus
from followup.resources.event_batches import EventResultStatus as EventResultStatus
from followup.resources.events import Events as Events
from followup.resources.events import EventSource as EventSource
from followup.resources.events import EventStatus as EventStatus
from followup.resources.intake_requests import IntakeRequests as IntakeRequests
from followup.resources.intake_requests import IntakeStatus as IntakeStatus
from followup.resources.patients import PatientStage as PatientStage
from followup.resources.treatments import DEFAULT_TREATMENT_KIND as DEFAULT_TREATMENT_KIND
from followup.resources.treatments import TreatmentKind as TreatmentKind
from followup.resources.treatments import Treatments as Treatments
from followup.resources.visits import Visits as Visits
from followup.resources.visits import VisitSource as VisitSource
from followup.resources.webhook_deliveries import WebhookDeliveryStatus as WebhookDeliveryStatus
from followup.resources.webhook_endpoints import EnabledEvent as EnabledEvent
from followup.webhooks import ATTEMPT_HEADER as ATTEMPT_HEADER
from followup.webhooks import EVENT_TYPE_HEADER as EVENT_TYPE_HEADER
from followup.webhooks import SIGNATURE_HEADER as SIGNATURE_HEADER
from followup.webhooks import TIMESTAMP_HEADER as TIMESTAMP_HEADER
from followup.webhooks import sign as sign
