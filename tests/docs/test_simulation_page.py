"""The page about the simulation shows the message that its code really raises."""

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs/how-to/simulation.md"


def test_the_message_is_the_one_that_the_code_raises() -> None:
    text = PAGE.read_text()
    code = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    [message] = re.findall(r"^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    [call] = re.findall(r"^`(simulate\(.*?\))` raises", text, re.MULTILINE)
    names: dict[str, Any] = {}
    exec(code[0], names)
    with pytest.raises(AssertionError) as found:
        eval(call, names)
    assert str(found.value) == message.rstrip()
    with pytest.raises(AssertionError, match="B1: bookings"):
        eval(message.splitlines()[-1], names)
