"""The pages of the commands begin with examples, and describe an option of many commands once."""

import re

from support.pages import DOCS

FOLDER = DOCS / "reference/commands"
INDEX = (FOLDER / "index.md").read_text()
PAGES = sorted(each.name for each in FOLDER.glob("*.md") if each.name != "index.md")


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


def test_each_command_has_examples_before_its_options() -> None:
    assert {each.split()[0] for each in COMMANDS} == {"followup", "followup-mock"}
    assert len(COMMANDS) > 80
    for words in COMMANDS:
        before, fence, after = SECTIONS[words].partition("```sh\n")
        assert fence, words
        assert after.startswith(words)
        assert not re.search(r"^- ", before, re.MULTILINE), words


def test_no_text_about_commands_or_the_control_api_is_about_values_of_python() -> None:
    words = r"\b(datetime|snake_case keyword|iterable|None|True|False|kwargs|tuple|str)\b"
    pages = [*FOLDER.glob("*.md"), *(DOCS / "reference/control_api").glob("*.md")]
    assert [each.name for each in pages if re.search(words, each.read_text())] == []
