"""The pages of the commands begin with examples, and describe an option of many commands once."""

import re

import pytest
from support.pages import DOCS

FOLDER = DOCS / "reference/commands"
INDEX = (FOLDER / "index.md").read_text()
PAGES = sorted(each.name for each in FOLDER.glob("*.md") if each.name != "index.md")
COMMON = ["--json", "--url", "--api-key", "--token", "--database", "--columns", "--name", "--idempotency-key"]


def sections() -> dict[str, str]:
    """Return the text about each command, by its words."""
    found = {}
    for page in PAGES:
        for text in re.split(r"^##? (?=followup)", (FOLDER / page).read_text(), flags=re.MULTILINE)[1:]:
            title, _, rest = text.partition("\n")
            found[title] = rest
    return found


SECTIONS = sections()


COMMANDS = re.findall(r"^\| \[`([^`]+)`\]", INDEX, re.MULTILINE)
"""The words of each command in the index, without those of groups."""


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_has_examples_before_its_options(words: str) -> None:
    before, fence, after = SECTIONS[words].partition("```sh\n")
    assert fence
    assert after.startswith(words)
    assert not re.search(r"^- ", before, re.MULTILINE)


def test_the_index_lists_the_commands_of_both_programs() -> None:
    assert {each.split()[0] for each in COMMANDS} == {"followup", "followup-mock"}
    assert len(COMMANDS) > 80


def test_common_options_are_described_once() -> None:
    described = re.findall(r"^- \*\*`(--[\w-]+)", INDEX.partition("## Common options")[2], re.MULTILINE)
    assert set(COMMON) <= set(described)
    for words, text in SECTIONS.items():
        assert not re.search(r"^- \*\*`--(token|idempotency-key)\b", text, re.MULTILINE), words
    assert SECTIONS["followup-mock advance"].endswith(
        "- [Common options](index.md#common-options): `--json`, `--csv`, `--ids`, `--columns`, "
        "`--url`, `--api-key`, `--token`.\n\n"
        '<a id="followup-mock-clock"></a>\n\n'
    )


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("followup-mock serve", "- **`--port N`**: Port to listen on; 0 picks a free one. Default: `4210`.\n"),
        ("followup-mock serve", "with a 400. Default: `--refuse-unknown-fields`.\n"),
        ("followup-mock serve", "remembered. Default: `24`.\n"),
        ("followup-mock advance", "- **`DURATION`**: Duration, such as 90s"),
        ("followup-mock webhook-fault", "wrong_signature and old_signature give the first attempt"),
        ("followup doctor", "Exit status: 0 without a FAIL, 1 with one"),
    ],
)
def test_a_command_shows_its_placeholders_defaults_values_and_statuses(words: str, text: str) -> None:
    assert text in SECTIONS[words]


def test_common_options_have_defaults_and_environment_variables() -> None:
    assert "Default: `http://127.0.0.1:4210`. Environment variable: `FOLLOWUP_BASE_URL`.\n" in INDEX


@pytest.mark.parametrize("page", PAGES)
def test_no_text_is_about_values_of_python(page: str) -> None:
    words = r"\b(datetime|snake_case keyword|iterable|None|True|False|kwargs|tuple|str)\b"
    assert not re.search(words, (FOLDER / page).read_text()), page
