"""Redaction: no personal data, a limited length, and no control characters."""

import pytest

from followup._core.redaction import redacted, visible


@pytest.mark.parametrize(
    "text",
    [
        "Ana wrote from ana.perez+x@clinic.example twice",
        "GET /v1/patients?email=ana%40clinic.example failed",
        "<ana@x>",
        "+54 9 11 5555-0000",
        "phone +5491155550000 is taken",
        "tel:5491155550000",
        "(011) 5555-0000",
        "DNI 30.123.456",
        "30 123 456",
        "٣٠١٢٣٤٥٦",
        "born on 1980-05-17",
        "DNI 30,123,456",
        "DNI 30\u2212123\u2212456",
        "DNI 30 . 123 . 456",
        "DNI ３０１２３４５６",
        "ana＠x.com",
        "born on 1980-01-01T00:00:00Z",
        "born on 1980-01-01 00:00",
    ],
)
def test_addresses_and_long_numbers_are_not_shown(text: str) -> None:
    shown = redacted(text)
    assert "…" in shown
    assert "@" not in shown
    assert "%40" not in shown
    assert sum(character.isdigit() for character in shown) <= 5


@pytest.mark.parametrize(
    "text",
    [
        "This must be an ISO 8601 timestamp with an offset, such as 2026-09-28T12:00:00Z.",
        "2026-09-28T12:00:00.000Z is before 2026-09-28T09:00:00-03:00 and after 2026-09-28 12:00",
        "There is no such version; there is 2026-09-28.",
        "There is no patient pat_00000000123456789012.",
        "Midnight is past: 2026-09-28T00:00:01Z, 2026-09-28T00:01, 2026-09-28T00:00:00.5Z",
        "Request 0b9ad6a4-1234-5678-9012-123456789012 failed.",
        "This must be from 1 to 100, not 12345.",
        "at most 1,048,576 bytes",
        "at least 5,000 characters; 1, 2, 3, 4, 5, 6, 7",
        "events[12].data.visit.visitedAt: This field is required.",
    ],
)
def test_timestamps_ids_of_the_service_and_short_numbers_are_shown(text: str) -> None:
    assert redacted(text) == text


LONG = "Patient reports a persistent headache since Monday, worse in the morning, and asks for another visit soon. " * 2


@pytest.mark.parametrize(
    ("sent", "text", "shown"),
    [
        ("Ana Pérez", "Ana Pérez is unknown; ask Ana Pérez.", "… is unknown; ask …."),
        ("2026-09-28T12:00:00Z", "not 2026-09-28T12:00:00Z", "not …"),
        ("0b9ad6a4-1234-5678-9012-123456789012", "no 0b9ad6a4-1234-5678-9012-123456789012", "no …"),
        ("1,048,576", "at most 1,048,576 bytes", "at most … bytes"),
        ("AA", "AARDVARK", "AARDVARK"),
        ("Ana", "Ana, Ana's, manager, analysis_Ana, Ana", "…, …'s, manager, analysis_Ana, …"),
        ("api", "api_error", "api_error"),
        ("30111", "dni30111x", "dni…x"),
        ("fu_key", "xfu_keyx", "x…x"),
        ("Pérez 30123456", "Pérez 30123456", "…"),
        ("x" * 200, f"<{'x' * 200}> is too long", "<…"),
        ("long " * 2_000, f"cannot use: {'long ' * 50}… (cut)", "cannot use: …"),
        ("Ana Pérez", "ANA PÉREZ is unknown", "… is unknown"),
        ("Ana Pérez", "ana perez is unknown", "… is unknown"),
        ("Ana Pérez ", "'Ana Pérez'", "'…'"),
        ("Ana", "İana Ana", "İana …"),
        ("Ana Pérez", "name ANA PÉREZ, or ana pérez gomez", "name …, or … gomez"),
        ("D" * 200, f"first: {'d' * 30}...", "first: …"),
        (LONG, f"cannot use '{LONG.upper()[:30]}...' here", "cannot use '…"),
        (LONG * 10, f"cannot use '{LONG * 10}' here", "cannot use '…"),
        ("2026-09-28T12:00:00Z", "such as 2026-09-28T12:30:00Z", "such as 2026-09-28T12:30:00Z"),
    ],
)
def test_values_of_the_request_are_not_shown(sent: str, text: str, shown: str) -> None:
    assert redacted(text, [sent, "something else", "x" * 100]) == shown


def test_a_long_text_is_cut_and_nothing_personal_is_left_at_the_cut() -> None:
    assert redacted("a" * 2_000) == "a" * 1_000 + "…"
    assert redacted("ab" * 500) == "ab" * 500
    assert redacted("abcdef", max_length=3) == "abc…"
    for position in range(940, 1_000):
        text = "x" * position + " ana@clinic.example +5491155550000 Luisa Pérez " + "y" * 1_000
        shown = redacted(text, ["Luisa Pérez"]).removeprefix("x" * position)
        assert not any(part in shown for part in ("ana", "549", "Lui")), position


@pytest.mark.parametrize("character", ["\x00", "\x07", "\x1b", "\r", "\n", "\t", "\x7f", "\x85", "\x9b", "\xad"])
def test_control_characters_are_spelled_out(character: str) -> None:
    assert visible(f"a{character}b") == f"a{character.encode('unicode_escape').decode()}b"
    assert visible(f"a{character}b").isprintable()
    assert redacted(f"a{character}b") == visible(f"a{character}b")


@pytest.mark.parametrize("code", [0x061C, 0x200B, 0x200E, 0x2028, 0x202E, 0x2066, 0xFEFF, 0xD800, 0xE0041])
def test_characters_that_reorder_or_hide_text_are_spelled_out(code: int) -> None:
    assert visible(f"a{chr(code)}b") == f"a{chr(code).encode('unicode_escape').decode()}b"


def test_names_in_any_script_stay_as_they_are() -> None:
    for name in ("Núñez", "محمد", "می\u200cخواهم", "क्\u200dष", "李 小龍", "👩\u200d⚕️"):
        assert visible(name) == name


REPEATED = ["a", "%40", "1", "1-(", "a@", "@", ".a", "1 ", "1,", "_", "é", "pat_", "\x1b", "2026-09-28T12:00:00"]


@pytest.mark.usefixtures("hang_guard")
@pytest.mark.parametrize("pattern", REPEATED)
def test_the_work_does_not_grow_with_the_text(pattern: str) -> None:
    assert len(redacted(pattern * (3_000_000 // len(pattern)))) <= 4_001
