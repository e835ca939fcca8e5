# ruff: noqa: F401
"""The internals of the SDK that the mock server uses. It imports no other private module; import-linter enforces this.

The mock derives its request and response schemas from the SDK's declarations, so it needs more than the public names.
Before you change an internal of the SDK, check here whether the mock depends on it. None of these names is public: they
change without notice.
"""

from followup._core.api_rules import *  # noqa: F403 - all of its public names
from followup._core.call.options import DEFAULT_TIMEOUT
from followup._core.call.responses import response_of
from followup._core.call.steps import Broken, Outcome, Send, TimedOut
from followup._core.codec import phones
from followup._core.codec.decode import decode
from followup._core.codec.encode import encode
from followup._core.codec.kinds import *  # noqa: F403 - all of its public names
from followup._core.codec.wire import format_timestamp
from followup._core.declarations import Declaration, Parameter, description_of, descriptions_in, lazy
from followup._core.operations import declarations_of, group_name
from followup._core.package_data import package_data, package_text, zone_of
from followup._core.redaction import redacted, visible
from followup._core.results import FrozenValue, Model, Value
from followup._core.threads import addresses_of, is_address, result_within, run_in_thread, start_thread, stop_signals
from followup._core.time import REAL_TIME, Time, reproducible_randomness, virtual_time
from followup._core.tracebacks import clear_frames, clears_frames_of
from followup._version import IS_RELEASED, installation
from followup.resources import all_groups
from followup.resources.account import ServiceLine
from followup.resources.appointments import Appointments, AppointmentSource, AppointmentStatus
from followup.resources.event_batches import EventResultStatus
from followup.resources.events import Events, EventSource, EventStatus
from followup.resources.intake_requests import IDENTIFYING, IntakeRequests, IntakeStatus
from followup.resources.patients import PatientStage
from followup.resources.treatments import DEFAULT_TREATMENT_KIND, TreatmentKind, Treatments
from followup.resources.visits import Visits, VisitSource
from followup.resources.webhook_deliveries import WebhookDeliveryStatus
from followup.resources.webhook_endpoints import EnabledEvent
from followup.webhooks import ATTEMPT_HEADER, EVENT_TYPE_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, sign
