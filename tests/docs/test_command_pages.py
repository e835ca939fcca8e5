"""The pages of the commands begin with examples, and describe an option of many commands once."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs/reference/commands"
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


def commands() -> list[str]:
    """Return the words of each command in the index, without those of groups."""
    return re.findall(r"^\| \[`([^`]+)`\]", INDEX, re.MULTILINE)


@pytest.mark.parametrize("words", commands())
def test_a_command_has_examples_before_its_options(words: str) -> None:
    before, fence, after = SECTIONS[words].partition("```sh\n")
    assert fence
    assert after.startswith(words)
    assert not re.search(r"^- ", before, re.MULTILINE)


def test_the_index_lists_the_commands_of_both_programs() -> None:
    assert {each.split()[0] for each in commands()} == {"followup", "followup-mock"}
    assert len(commands()) > 80


def test_common_options_are_described_once() -> None:
    described = re.findall(r"^- \*\*`(--[\w-]+)", INDEX.partition("## Common options")[2], re.MULTILINE)
    assert set(COMMON) <= set(described)
    for words, text in SECTIONS.items():
        assert not re.search(r"^- \*\*`--(token|idempotency-key)\b", text, re.MULTILINE), words
    assert SECTIONS["followup-mock advance"].endswith(
        "- [Common options](index.md#common-options): `--json`, `--url`, `--api-key`, `--token`.\n\n"
        '<a id="followup-mock-clock"></a>\n\n'
    )


def test_options_have_placeholders_defaults_and_environment_variables() -> None:
    assert (
        "- **`--port N`**: Port to listen on; 0 picks a free one. Default: `4210`.\n" in SECTIONS["followup-mock serve"]
    )
    assert "with a 400. Default: `--refuse-unknown-fields`.\n" in SECTIONS["followup-mock serve"]
    assert "remembered. Default: `24`.\n" in SECTIONS["followup-mock serve"]
    assert "- **`DURATION`**: Duration, such as 90s" in SECTIONS["followup-mock advance"]
    assert "Default: `http://127.0.0.1:4210`. Environment variable: `FOLLOWUP_BASE_URL`.\n" in INDEX


def test_values_keep_their_spelling() -> None:
    disturb = SECTIONS["followup-mock disturb"]
    assert "wrong_signature and old_signature give the first attempt" in disturb
    assert "wrong-signature" not in disturb


def test_exit_statuses_of_a_command_are_on_its_page() -> None:
    assert "Exit status: 0 without a FAIL, 1 with one" in SECTIONS["followup doctor"]


@pytest.mark.parametrize("page", PAGES)
def test_no_text_is_about_values_of_python(page: str) -> None:
    words = r"\b(datetime|snake_case keyword|iterable|None|True|False|kwargs|tuple|str)\b"
    assert not re.search(words, (FOLDER / page).read_text()), page
