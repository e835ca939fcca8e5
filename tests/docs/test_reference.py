"""The documentation builds without warnings; its reference lists every public name and no internal ones."""

import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from contract import specification as spec

ROOT = Path(__file__).parents[2]

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
    "FollowUp.events.send_all",
    "inbound.visit_completed",
    "show_personal_data",
    "verify_signature",
    "construct_event",
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a copy of the documentation as ``nox -s docs`` does, and return the folder of its pages."""
    folder = tmp_path_factory.mktemp("documents")
    for name in ("docs", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("_build", "__pycache__"))
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs", "built"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr
    return folder / "built"


def entries(built: Path) -> dict[str, str]:
    """Return the names in the inventory of the documentation, with the address of each."""
    inventory = (built / "objects.inv").read_bytes().split(b"\n", 4)[4]
    found = re.findall(r"^(\S+) py:\w+ -?\d+ (\S+) ", zlib.decompress(inventory).decode(), re.MULTILINE)
    return {name: address.replace("$", name) for name, address in found}


def section(built: Path, name: str) -> str:
    """Return the text of an entry, without markup."""
    page, anchor = entries(built)[name].split("#")
    _, _, after = (built / page).read_text().partition(f'id="{anchor}"')
    entry, _, _ = after.partition("</dd></dl>\n\n")
    return " ".join(re.sub(r"<[^>]+>", " ", entry).split())


def test_everything_public_has_an_entry(built: Path) -> None:
    names = entries(built)
    expected = [f"FollowUp.{operation.name}" for operation in spec.OPERATIONS] + ERRORS + DATA + OTHERS
    assert [name for name in expected if f"followup.{name}" not in names] == []
    for name in expected:
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
        "start_at – time at which it begins",
        "Returns",
    ):
        assert part in create, create
    assert "Raises : EventBatchError" in section(built, "followup.FollowUp.events.create")
    assert "id – id of the patient, begins with pat_" in section(built, "followup.FollowUp.patients.retrieve")


def test_signatures_show_no_internal_types(built: Path) -> None:
    for page in ("operations", "inbound", "objects", "sdk"):
        text = (built / "reference" / f"{page}.html").read_text()
        for internal in ("Annotated", "IdPrefix", "NotGiven", ":returns:", ":param", ":ivar"):
            assert internal not in text, (page, internal)
