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
from support.pages import blocks, read

PAGE = read("concepts/webhooks.md")
SECRET = "whsec_u6zSUW1t1Df9V0lC3VppUC9C"
BODY = '{"id":"whd_1","data":{"patient":{"fullName":"José Ñandú"}}}'.encode()

DRIVERS = {
    "javascript": (
        "signature.mjs",
        "node",
        """
for (let at = 2; at < process.argv.length; at += 4) {
  const [body, ...texts] = process.argv.slice(at, at + 4).map((each) => Buffer.from(each, "hex"));
  console.log(isGenuine(body, ...texts.map((each) => each.toString("utf8"))));
}
""",
    ),
    "java": (
        "Driver.java",
        "java",
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

    def at(timestamp: object, body: bytes = BODY, secret: str = SECRET) -> Arguments:
        return body, str(timestamp), signed(str(timestamp), body, secret), SECRET

    body, timestamp, signature, _ = at(now)
    genuine = {
        "genuine": at(now),
        "four minutes old": at(now - 240),
        "four minutes ahead": at(now + 240),
        "empty body": at(now, b""),
        "body that is not UTF-8": at(now, b"\xff\x00"),
    }
    no_timestamps = ["", f"+{now}", f"-{now}", f"{now}.0", f"{now:_}", f" {now}", f"{now}\n", "1e9", "nan", "Infinity"]
    others = {
        **{f"timestamp {each!r}": at(each) for each in [*no_timestamps, arabic, "9" * 40, "9" * 400, "9" * 5000]},
        "ten minutes old": at(now - 600),
        "ten minutes ahead": at(now + 600),
        "changed body": (body + b" ", timestamp, signature, SECRET),
        "another secret": at(now, secret="whsec_x"),
        "another timestamp": (body, str(now + 1), signature, SECRET),
        "missing signature": (body, timestamp, "", SECRET),
        "without its prefix": (body, timestamp, signature.removeprefix("sha256="), SECRET),
        "uppercase": (body, timestamp, "sha256=" + signature[7:].upper(), SECRET),
        "not ASCII": (body, timestamp, "sha256=ñ" + signature[8:], SECRET),
    }
    return {name: (each, found is genuine) for found in (genuine, others) for name, each in found.items()}


def test_python() -> None:
    names: dict[str, Any] = {}
    exec(blocks(PAGE, "python")[0], names)
    for name, (arguments, genuine) in cases().items():
        assert names["is_genuine"](*arguments) is genuine, name


@pytest.mark.parametrize("language", DRIVERS)
def test_other_languages(language: str, tmp_path: Path) -> None:
    file, interpreter, driver = DRIVERS[language]
    if shutil.which(interpreter) is None:
        pytest.skip(f"{interpreter} is not installed")
    source = tmp_path / file
    parts = [blocks(PAGE, language)[0], driver]
    if language == "java":  # java runs the main method of the first class of a file
        imports, _, declaration = parts[0].partition("final class")
        parts = [imports, driver, "final class" + declaration]
    source.write_text("".join(parts))
    made = cases()
    arguments = [
        (part if isinstance(part, bytes) else part.encode()).hex() for given, _ in made.values() for part in given
    ]
    command = [interpreter, str(source), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    found = dict(zip(made, [line == "true" for line in result.stdout.split()], strict=True))
    assert found == {name: genuine for name, (_, genuine) in made.items()}


def test_the_schedule_is_that_of_the_specification() -> None:
    """Section 6.2 of the specification, Delivery and retries."""
    times = ["1 min", "6 min", "36 min", "2 h 36 min", "7 h 36 min", "17 h 36 min", "1 d 17 h", "2 d 17 h"]
    drawing = read("images/webhook-retries.svg")
    shown = re.findall(r'y="1(?:30|47)"[^>]*>([^<]+)<', drawing)
    assert " ".join(shown) == " ".join(["0", *times])
    [described] = re.findall(r"!\[Attempts follow the first after ([^]]+)\]", PAGE)
    assert described.replace(" and ", ", ").split(", ") == times
