"""The limit of section 8 that the conformance cases do not wait for."""

from contract import specification as spec

from followup_mockserver import MockServer, MockService


def test_section_8_an_attempt_has_10_seconds() -> None:
    # That attempts end then is proved with shorter limits; here is the limit that users get.
    assert MockService._attempt_timeout == MockServer._attempt_timeout == spec.WEBHOOK_ATTEMPT_SECONDS
