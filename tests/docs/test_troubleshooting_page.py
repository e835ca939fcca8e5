"""Every message of the page on troubleshooting is one that the code really contains."""

import re
from collections.abc import Callable

import pytest
from support.pages import ROOT, read

from followup import FollowUp
from followup_mockserver import MockService

CELLS = re.findall(r"^\| (.*?) \|", read("troubleshooting.md"), re.MULTILINE)
MESSAGES = [cell for cell in CELLS if cell != "message" and not cell.startswith("`HTTP status")]


def source() -> str:
    """Return the code of both packages, with the parts of long texts joined and their variables replaced by ``…``."""
    files = [file for folder in ("sdk", "mockserver") for file in sorted((ROOT / folder).rglob("*.py"))]
    text = "\n".join(file.read_text() for file in files)
    return re.sub(r"\{[^{}\n]*\}", "…", re.sub(r"\"\s*\n\s*f?\"", "", text))


SOURCE = source()


def test_each_message_is_one_text() -> None:
    assert len(MESSAGES) > 30
    assert [cell for cell in MESSAGES if not re.fullmatch(r"`[^`]+`", cell)] == []
    assert len(MESSAGES) == len(set(MESSAGES))


COMPOSED: dict[str, Callable[[], object]] = {
    "no api_key: pass api_key=..., or set the environment variable FOLLOWUP_API_KEY": lambda: FollowUp(base_url="x"),
    "no base_url: pass base_url=..., or set the environment variable": lambda: FollowUp(api_key="x"),
    "There is no such patient.": lambda: MockService().client().patients.retrieve("pat_x"),
    "This must be an RFC 3339 timestamp with an offset": lambda: (
        MockService().client().visits.create(patient="pat_x", visited_at="2030-01-01")
    ),
}
"""Messages that the code composes of parts, and calls that cause them."""


@pytest.mark.parametrize("message", COMPOSED)
def test_the_call_causes_the_message(message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert f"`{message}`" in MESSAGES
    for variable in ("FOLLOWUP_API_KEY", "FOLLOWUP_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(Exception, match=re.escape(message)):
        COMPOSED[message]()


@pytest.mark.parametrize("message", [each for each in MESSAGES if each.strip("`") not in COMPOSED])
def test_the_code_contains_the_message(message: str) -> None:
    text = message.strip("`")
    assert text in SOURCE or _with_any_values(text), text


def _with_any_values(text: str) -> bool:
    """Return whether the code has the message in one place, with any short text in place of each ``…``.

    The code has the first letter of a sentence in either case, because sentences are also parts of longer ones.
    """
    parts = [re.escape(part) for part in text.split("…")]
    parts[0] = f"(?i:{parts[0][:1]}){parts[0][1:]}"
    return re.search(r"[^\n\"]{0,60}".join(parts), SOURCE) is not None


def test_the_search_finds_no_message_that_does_not_exist() -> None:
    assert not _with_any_values("signature is wrong")
    assert not _with_any_values("header … is absent")
