"""The functions of the page on webhooks that verify signatures do so, in each language that this machine has."""

import hashlib
import hmac
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/concepts/webhooks.md").read_text()
SECRET = "whsec_u6zSUW1t1Df9V0lC3VppUC9C"
BODY = '{"id":"whd_1","data":{"patient":{"fullName":"José Ñandú"}}}'.encode()

DRIVERS = {
    "javascript": (
        "signature.mjs",
        ["node"],
        """
for (let at = 2; at < process.argv.length; at += 4) {
  const [body, ...texts] = process.argv.slice(at, at + 4).map((each) => Buffer.from(each, "hex"));
  console.log(isGenuine(body, ...texts.map((each) => each.toString("utf8"))));
}
""",
    ),
    "java": (
        "Driver.java",
        ["java"],
        """
class Driver {
    static String text(String hex) { return new String(HexFormat.of().parseHex(hex), StandardCharsets.UTF_8); }
    public static void main(String[] given) throws Exception {
        for (int at = 0; at < given.length; at += 4) {
            System.out.println(WebhookSignature.isGenuine(
                HexFormat.of().parseHex(given[at]), text(given[at + 1]), text(given[at + 2]), text(given[at + 3])));
        }
    }
}
""",
    ),
}
"""By language: file, command, and code that prints the result for each four hexadecimal arguments."""


def signed(timestamp: str, body: bytes = BODY, secret: str = SECRET) -> str:
    """Sign as section 6.2 of the specification says."""
    return "sha256=" + hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


Arguments = tuple[bytes, str, str, str]


def cases() -> dict[str, tuple[Arguments, bool]]:
    """Return the arguments and the result of each case, made late: a test may run long after its collection."""
    now = int(time.time())

    arabic = "".join(chr(ord("٠") + int(digit)) for digit in str(now))

    def at(offset: int) -> Arguments:
        return BODY, str(now + offset), signed(str(now + offset)), SECRET

    return {
        "genuine": (at(0), True),
        "four minutes old": (at(-240), True),
        "four minutes ahead": (at(240), True),
        "ten minutes old": (at(-600), False),
        "ten minutes ahead": (at(600), False),
        "empty body": ((b"", str(now), signed(str(now), b""), SECRET), True),
        "body that is not UTF-8": ((b"\xff\x00", str(now), signed(str(now), b"\xff\x00"), SECRET), True),
        "changed body": ((BODY + b" ", str(now), signed(str(now)), SECRET), False),
        "another secret": ((BODY, str(now), signed(str(now), secret="whsec_x"), SECRET), False),
        "another timestamp": ((BODY, str(now + 1), signed(str(now)), SECRET), False),
        "missing signature": ((BODY, str(now), "", SECRET), False),
        "missing timestamp": ((BODY, "", signed(""), SECRET), False),
        "timestamp with a sign": ((BODY, f"+{now}", signed(f"+{now}"), SECRET), False),
        "negative timestamp": ((BODY, f"-{now}", signed(f"-{now}"), SECRET), False),
        "timestamp with an exponent": ((BODY, "1e9", signed("1e9"), SECRET), False),
        "timestamp with a fraction": ((BODY, f"{now}.0", signed(f"{now}.0"), SECRET), False),
        "timestamp with a separator": ((BODY, f"{now:_}", signed(f"{now:_}"), SECRET), False),
        "no number": ((BODY, "nan", signed("nan"), SECRET), False),
        "infinite": ((BODY, "Infinity", signed("Infinity"), SECRET), False),
        "timestamp with a space": ((BODY, f" {now}", signed(f" {now}"), SECRET), False),
        "timestamp with a line break": ((BODY, f"{now}\n", signed(f"{now}\n"), SECRET), False),
        "timestamp in Arabic digits": ((BODY, arabic, signed(arabic), SECRET), False),
        "endless timestamp": ((BODY, "9" * 40, signed("9" * 40), SECRET), False),
        "timestamp beyond a float": ((BODY, "9" * 400, signed("9" * 400), SECRET), False),
        "timestamp beyond an int": ((BODY, "9" * 5000, signed("9" * 5000), SECRET), False),
        "without its prefix": ((BODY, str(now), signed(str(now)).removeprefix("sha256="), SECRET), False),
        "uppercase": ((BODY, str(now), "sha256=" + signed(str(now))[7:].upper(), SECRET), False),
        "not ASCII": ((BODY, str(now), "sha256=ñ" + signed(str(now))[8:], SECRET), False),
    }


def code(language: str) -> str:
    """Return the first block of the page in this language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0]


def test_python() -> None:
    names: dict[str, Any] = {}
    exec(code("python"), names)
    made = cases()
    found = {name: names["is_genuine"](*arguments) for name, (arguments, _) in made.items()}
    assert found == {name: genuine for name, (_, genuine) in made.items()}


def test_no_other_page_has_a_function_of_its_own() -> None:
    defining = [
        path.name
        for path in (ROOT / "docs").rglob("*.md")
        if "_build" not in path.parts and re.search(r"hmac\.new\(|createHmac\(|getInstance\(\"Hmac", path.read_text())
    ]
    assert defining == ["webhooks.md"]
    assert PAGE.count("def is_genuine") == 1


@pytest.mark.parametrize("language", DRIVERS)
def test_other_languages(language: str, tmp_path: Path) -> None:
    file, [interpreter], driver = DRIVERS[language]
    if shutil.which(interpreter) is None:
        pytest.skip(f"{interpreter} is not installed")
    source = tmp_path / file
    parts = [code(language), driver]
    if language == "java":  # java runs the main method of the first class of a file
        imports, _, declaration = parts[0].partition("final class")
        parts = [imports, driver, "final class" + declaration]
    source.write_text("".join(parts))
    made = cases()
    arguments = [
        (part if isinstance(part, bytes) else part.encode()).hex() for given, _ in made.values() for part in given
    ]
    result = subprocess.run(
        [interpreter, str(source), *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    assert result.returncode == 0, result.stderr
    found = dict(zip(made, [line == "true" for line in result.stdout.split()], strict=True))
    assert found == {name: genuine for name, (_, genuine) in made.items()}


def test_the_page_shows_five_languages() -> None:
    sections = re.findall(r"^### (\S+)\n(.*?)(?=^##)", PAGE, re.MULTILINE | re.DOTALL)
    assert [name for name, text in sections if "```" in text][:5] == ["Python", "JavaScript", "Java", "PHP", "C#"]


def test_the_schedule_is_that_of_the_specification() -> None:
    """Section 6.2 of the specification, Delivery and retries."""
    times = ["1 min", "6 min", "36 min", "2 h 36 min", "7 h 36 min", "17 h 36 min", "1 d 17 h", "2 d 17 h"]
    drawing = (ROOT / "docs/images/webhook-retries.svg").read_text()
    shown = re.findall(r'y="1(?:30|47)"[^>]*>([^<]+)<', drawing)
    assert " ".join(shown) == " ".join(["0", *times])
    [described] = re.findall(r"!\[Attempts follow the first after ([^]]+)\]", PAGE)
    assert described.replace(" and ", ", ").split(", ") == times
