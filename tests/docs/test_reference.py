"""The built documents: no warning, an entry for everything that a user calls, and none for what is internal."""

import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

OPERATIONS = [
    "account.retrieve",
    "patients.create",
    "patients.retrieve",
    "patients.update",
    "patients.list",
    "doctors.retrieve",
    "doctors.list",
    "appointments.create",
    "appointments.retrieve",
    "appointments.update",
    "appointments.cancel",
    "appointments.list",
    "visits.create",
    "visits.retrieve",
    "visits.list",
    "intake_requests.create",
    "intake_requests.retrieve",
    "intake_requests.list",
    "treatments.create",
    "treatments.retrieve",
    "treatments.list",
    "events.create",
    "events.retrieve",
    "events.list",
    "webhook_endpoints.create",
    "webhook_endpoints.retrieve",
    "webhook_endpoints.update",
    "webhook_endpoints.delete",
    "webhook_endpoints.list",
    "webhook_endpoints.ping",
    "webhook_deliveries.retrieve",
    "webhook_deliveries.list",
]

ERRORS = [
    "FollowUpError",
    "ConfigurationError",
    "APIConnectionError",
    "APITimeoutError",
    "APIStatusError",
    "InvalidRequestError",
    "IdempotencyError",
    "EventBatchError",
    "AuthenticationError",
    "PermissionDeniedError",
    "NotFoundError",
    "ConflictError",
    "RateLimitError",
    "InternalServerError",
    "ResponseDecodeError",
    "PaginationError",
    "WebhookSignatureError",
]

DATA = [
    "Account",
    "Patient",
    "Doctor",
    "Appointment",
    "Visit",
    "IntakeRequest",
    "Treatment",
    "Event",
    "EventBatch",
    "EventResult",
    "WebhookEndpoint",
    "WebhookDelivery",
    "DeletedObject",
    "WebhookEvent",
    "PatientInput",
    "DoctorInput",
    "ContactInput",
    "CoverageInput",
    "SenderInput",
    "EventInput",
]

OTHERS = [
    "FollowUp",
    "AsyncFollowUp",
    "FollowUp.with_options",
    "AsyncFollowUp.with_options",
    "FollowUp.close",
    "AsyncFollowUp.close",
    "Page",
    "AsyncPage",
    "Page.next_page",
    "ResponseInfo",
    "verify_signature",
    "construct_event",
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documents, built as ``nox -s docs`` builds them, but from a copy."""
    folder = tmp_path_factory.mktemp("documents")
    for name in ("docs", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("_build", "__pycache__"))
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs", "built"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr
    return folder / "built"


def entries(built: Path) -> dict[str, str]:
    """The names in the inventory of the documents, with the address of each."""
    inventory = (built / "objects.inv").read_bytes().split(b"\n", 4)[4]
    found = re.findall(r"^(\S+) py:\w+ -?\d+ (\S+) ", zlib.decompress(inventory).decode(), re.MULTILINE)
    return {name: address.replace("$", name) for name, address in found}


def section(built: Path, name: str) -> str:
    """The text of an entry, as a reader sees it."""
    page, anchor = entries(built)[name].split("#")
    _, _, after = (built / page).read_text().partition(f'id="{anchor}"')
    entry, _, _ = after.partition("</dd></dl>\n\n")
    return " ".join(re.sub(r"<[^>]+>", " ", entry).split())


def test_there_are_32_operations() -> None:
    assert len(OPERATIONS) == 32


def test_everything_public_has_an_entry(built: Path) -> None:
    names = entries(built)
    wanted = [f"FollowUp.{operation}" for operation in OPERATIONS] + ERRORS + DATA + OTHERS
    assert [name for name in wanted if f"followup.{name}" not in names] == []
    for name in wanted:
        page, anchor = names[f"followup.{name}"].split("#")
        assert f'id="{anchor}"' in (built / page).read_text(), name


def test_nothing_internal_has_an_entry(built: Path) -> None:
    internal = {"perform", "start_listing", "group", "declarations"}
    assert [name for name in entries(built) if name.rpartition(".")[2] in internal] == []


def test_an_operation_shows_its_signature_arguments_result_and_errors(built: Path) -> None:
    create = section(built, "followup.FollowUp.appointments.create")
    for part in (
        "patient : PatientId | PatientInput ,",
        "doctor : DoctorId | DoctorInput | None = NOT_GIVEN ,",
        "external_id : str | None = NOT_GIVEN ,",
        "Appointment",
        "start_at – when it begins",
        "Returns",
    ):
        assert part in create, create
    assert "Raises : EventBatchError" in section(built, "followup.FollowUp.events.create")
    assert "id – id of the patient, begins with pat_" in section(built, "followup.FollowUp.patients.retrieve")


def test_signatures_are_for_people(built: Path) -> None:
    for page in ("operations", "objects", "sdk"):
        text = (built / "reference" / f"{page}.html").read_text()
        for noise in ("Annotated", "IdPrefix", "NotGiven", ":returns:", ":param", ":ivar"):
            assert noise not in text, (page, noise)
