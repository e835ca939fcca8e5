"""Receivers with a planted fault each: the check finds it in the cases that it concerns, and in no others."""

from pathlib import Path

import pytest
from receiver_check import receivers
from receiver_check.conftest import Check, detail, failed, outcomes

from followup_mockserver.lab.receiver_check import Times

REJECTED = ["wrong_secret", "changed_body", "old_timestamp", "future_timestamp", "missing_signature", "uppercase_hex"]
ACCEPTED = ["repeated", "fifty_at_once", "out_of_order", "unknown_type", "unknown_fields", "large_body", "non_ascii"]
CASES = ["genuine", *REJECTED, *ACCEPTED, "in_time"]
FORGED = set(REJECTED)
EFFECTS = set(ACCEPTED[:3])

FAULTS = {
    receivers.AcceptsEverything: FORGED,
    receivers.WorksBeforeItVerifies: FORGED,
    receivers.VerifiesSerializedAgain: {"large_body", "non_ascii"},
    receivers.AcceptsTheFuture: {"future_timestamp"},
    receivers.AcceptsThePast: {"old_timestamp"},
    receivers.IgnoresCase: {"uppercase_hex"},
    receivers.CrashesWithoutSignature: {"missing_signature"},
    receivers.RedirectsForged: FORGED,
    receivers.NeverDeduplicates: {"repeated", "fifty_at_once"},
    receivers.LooksBeforeItInserts: {"fifty_at_once"},
    receivers.ConflictsWithRepetitions: {"repeated", "fifty_at_once"},
    receivers.DropsTheOlder: {"out_of_order"},
    receivers.RejectsUnknownTypes: {"unknown_type"},
    receivers.RejectsUnknownFields: {"unknown_fields"},
    receivers.LimitsBodies: {"large_body"},
    receivers.ReadsAscii: {"non_ascii"},
}


def test_a_correct_receiver_passes_every_case(check: Check) -> None:
    report = check(receivers.Receiver)
    assert outcomes(report) == dict.fromkeys(CASES, "PASS")
    assert [each.case for each in report.cases] == CASES
    assert tuple(map(report.count, ("PASS", "FAIL", "NOT SEEN"))) == (15, 0, 0)


def test_without_a_probe_an_effect_is_not_seen(check: Check) -> None:
    report = check(receivers.Receiver, probe=False)
    assert outcomes(report) == {each: "NOT SEEN" if each in EFFECTS else "PASS" for each in CASES}
    assert tuple(map(report.count, ("PASS", "FAIL", "NOT SEEN"))) == (12, 0, 3)
    assert "--probe" in detail(report, "repeated")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda each: each.__name__)
def test_a_fault_is_found(check: Check, fault: type[receivers.Receiver]) -> None:
    report = check(fault)
    assert failed(report) == FAULTS[fault]
    assert set(outcomes(report).values()) == {"PASS", "FAIL"}


def test_with_the_secret_of_another_endpoint_nothing_passes(check: Check) -> None:
    report = check(receivers.Receiver, secret="whsec_other")
    seen = outcomes(report)
    # A receiver that rejects everything has not shown that it verifies.
    assert seen == {each: "NOT SEEN" if each in {*FORGED, "in_time"} else "FAIL" for each in CASES}
    assert "secret" in detail(report, "genuine")
    assert detail(report, "repeated").endswith("Fix genuine first.")


def test_an_event_that_is_never_handled_fails_each_case_that_must_have_an_effect(check: Check) -> None:
    report = check(receivers.NeverWorks)
    assert failed(report) == {"genuine", *EFFECTS, "unknown_fields", "large_body", "non_ascii"}
    assert "not handled within 0.6 s: appointment.created" in detail(report, "genuine")


def test_a_limit_of_the_rate_is_no_rejection(check: Check) -> None:
    seen = outcomes(check(receivers.LimitsTheRate))
    assert {seen[each] for each in FORGED} == {"NOT SEEN"}
    assert seen["repeated"] == "FAIL"


def test_a_receiver_that_works_too_long_fails_in_time_and_passes_nothing(check: Check) -> None:
    report = check(receivers.WorksTooLong, times=Times(response=0.3, probing=0.3, settling=0.1))
    assert outcomes(report) == {each: "FAIL" if each == "in_time" else "NOT SEEN" for each in CASES}
    assert "No response within 0.3 s in genuine, repeated, fifty_at_once, out_of_order, " in detail(report, "in_time")


def test_a_forged_request_without_a_response_is_neither_accepted_nor_rejected(check: Check) -> None:
    seen = outcomes(check(receivers.IgnoresForged, times=Times(response=2, probing=0.6, settling=0.2)))
    assert {seen[each] for each in FORGED} == {"NOT SEEN"}
    assert seen["genuine"] == seen["unknown_type"] == "PASS"


def test_work_that_is_done_after_the_response_is_waited_for(check: Check) -> None:
    assert check(receivers.WorksLater, times=Times(probing=10, settling=0.1)).count("PASS") == 15


def test_work_that_is_done_again_a_moment_later_is_seen(check: Check) -> None:
    report = check(receivers.WorksAgainLater, times=Times(probing=10, settling=2))
    assert failed(report) == {"repeated", "fifty_at_once"}


def test_a_database_that_was_checked_before_is_no_obstacle(check: Check, tmp_path: Path) -> None:
    for number in (1, 2):
        assert check(receivers.UniqueAppointments).count("PASS") == 15
        # Other events than before: those would be repetitions, and have no effect.
        assert len(receivers.UniqueAppointments(tmp_path / "clinic.db").handled()) == number * 10
