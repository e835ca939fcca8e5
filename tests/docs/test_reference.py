"""The documentation builds without warnings; its reference lists every public name and no internal ones."""

import html
import json
import re
import zlib
from pathlib import Path

from contract import specification as spec
from support.pages import DOCS, PROGRAMS, output_of, read

import followup
import followup_mockserver

METHODS = [
    *("FollowUp.with_options", "AsyncFollowUp.with_options", "FollowUp.close", "AsyncFollowUp.close"),
    *("Page.next_page", "FollowUp.events.send_all"),
]


def entries(built: Path) -> dict[str, str]:
    """Return the names in the inventory of the documentation, with the address of each."""
    inventory = (built / "objects.inv").read_bytes().split(b"\n", 4)[4]
    found = re.findall(r"^(\S+) py:\w+ -?\d+ (\S+) ", zlib.decompress(inventory).decode(), re.MULTILINE)
    return {name: address.replace("$", name) for name, address in found}


def section(built: Path, name: str) -> str:
    """Return the text of an entry, without markup."""
    page, anchor = entries(built)[name].split("#")
    _, _, after = (built / page).read_text().partition(f'<section id="{anchor}">')
    entry, _, _ = after.partition("</section>")
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", entry)).split())


def test_everything_public_has_an_entry(built: Path) -> None:
    names = entries(built)
    operations = [f"FollowUp.{operation.name}" for operation in spec.OPERATIONS]
    expected = [*operations, *METHODS, *{*followup.__all__} - {"NotGiven", "__version__"}]
    assert [name for name in expected if f"followup.{name}" not in names] == []
    assert [name for name in followup_mockserver.__all__ if f"followup_mockserver.{name}" not in names] == []
    for name in expected:
        page, anchor = names[f"followup.{name}"].split("#")
        assert f'<section id="{anchor}">' in (built / page).read_text(), name


def test_each_operation_has_an_anchor_on_the_page_of_its_group(built: Path) -> None:
    for operation in spec.OPERATIONS:
        group, _, _ = operation.name.partition(".")
        anchor = operation.name.replace(".", "-").replace("_", "-")
        address = f"reference/operations/{group}.html#{anchor}"
        assert entries(built)[f"followup.FollowUp.{operation.name}"] == address
        assert f'<a id="{anchor}"></a>' in read(f"reference/operations/{group}.md")


def test_an_operation_shows_its_signature_arguments_result_and_errors(built: Path) -> None:
    create = section(built, "followup.FollowUp.appointments.create")
    for part in (
        "POST appointments.create¶ POST /v1/appointments",
        "Idempotency key Rules appointments:write follow_up yes specification, section 4",
        "patient: PatientId | PatientInput,",
        "external_id: str | None = NOT_GIVEN,",
        ") -> Appointment",
        "start_at (datetime | str, required): time at which it begins",
        "Returns Appointment: The appointment, new or existing.",
        "appointment = await client.appointments.create(",
        "POST /v1/appointments HTTP/1.1 Authorization: Bearer fu_test_mock Content-Type: application/json",
        '"startAt": "2026-10-05T14:30:00.000Z"',
    ):
        assert part in create, (part, create)
    assert "EventBatchError: no event was accepted" in section(built, "followup.FollowUp.events.create")


def test_each_argument_of_an_operation_has_an_anchor(built: Path) -> None:
    page = (built / "reference/operations/appointments.html").read_text()
    for anchor in ("appointments-create-start-at", "appointments-update-start-at", "appointments-list-limit"):
        assert page.count(f'<li id="{anchor}">') == page.count(f'href="#{anchor}"') == 1


def test_a_type_links_to_the_class_of_its_page() -> None:
    """Outbox and inbox have classes of the same names, and other modules have some of the names of ours."""
    outbox, inbox = read("reference/outbox.md"), read("reference/inbox.md")
    for page in (outbox, inbox):
        assert "**Returns** [`DrainReport`](#drainreport): " in page
        assert "**Returns** [`list[DeadEvent]`](#deadevent)." in page
        assert "- **`stop`** (`threading.Event | None`): " in page
    assert "**Returns** [`OutboxStatus`](#outboxstatus)." in outbox
    assert "client: FollowUp,\n    webhook_endpoint: str | None = None," in inbox


def test_signatures_show_no_internal_types() -> None:
    for page in (DOCS / "reference").rglob("*.md"):
        text = page.read_text()
        for internal in ("Annotated", "IdPrefix", "NotGiven", "NonEmpty", ":returns:", ":param", ":ivar", "``x"):
            assert internal not in text, (page, internal)


def test_the_pages_are_what_the_generator_makes_of_the_code() -> None:
    """If this fails, run ``python docs/programs/reference_pages.py``."""
    generated = json.loads(
        output_of("import json, reference_pages; print(json.dumps(reference_pages.pages()))", PROGRAMS)
    )
    folder = DOCS / "reference"
    written = {str(each.relative_to(folder)): each.read_text(encoding="utf-8") for each in folder.rglob("*.md")}
    assert sorted(written) == sorted(generated)
    for page, text in generated.items():
        assert written[page] == text, page


def test_the_markdown_of_every_listed_page_is_in_the_built_documentation(built: Path) -> None:
    listed = re.findall(r"^- \[[^]]+\]\(([^)]+)\)", (built / "llms.txt").read_text(), re.MULTILINE)
    assert len(listed) > 100
    assert [page for page in listed if not (built / page).read_text().strip()] == []
