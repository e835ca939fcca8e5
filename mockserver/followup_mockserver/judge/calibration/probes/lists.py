"""Pages and cursors (specification, section 4, Conventions)."""

from followup_mockserver.judge.calibration.points import point
from followup_mockserver.judge.calibration.probes.requests import UNKNOWN, verdict
from followup_mockserver.judge.calibration.run import Run

BOOK = "patients:read patients:write appointments:read appointments:write"


@point(
    scopes="patients:read patients:write",
    writes=["patients"],
    mock="both: 400 invalid_request_error parameter_invalid; unknown: 400 invalid_request_error resource_missing; "
    "of another type: 400 invalid_request_error parameter_invalid",
)
def cursors(run: Run) -> str:
    """What happens with both cursors, an unknown one, and one of another type?"""
    known = run.patient["id"]
    both = run.ask("GET", "/v1/patients", params={"startingAfter": known, "endingBefore": known})
    unknown = run.ask("GET", "/v1/patients", params={"startingAfter": f"pat_{UNKNOWN}"})
    other = run.ask("GET", "/v1/patients", params={"startingAfter": f"apt_{UNKNOWN}"})
    return f"both: {verdict(both)}; unknown: {verdict(unknown)}; of another type: {verdict(other)}"


@point(
    scopes=BOOK,
    writes=["patients", "appointments"],
    mock="the nearest one, hasMore true; all before it: in order, hasMore false",
)
def has_more_backwards(run: Run) -> str:
    """What does hasMore mean with endingBefore, and which objects does the page have?"""
    patient = run.second_patient["id"]
    newest = [run.book(patient=patient)["id"] for _ in range(3)][::-1]
    one, all_ = (
        run.make("GET", "/v1/appointments", params={"patient": patient, "endingBefore": newest[2], "limit": limit})
        for limit in (1, 2)
    )
    shown = [[each["id"] for each in page["data"]] for page in (one, all_)]
    nearest = {newest[1]: "the nearest one", newest[0]: "the newest one"}.get(next(iter(shown[0]), ""), "another one")
    order = "in order" if shown[1] == newest[:2] else "reversed" if shown[1] == newest[1::-1] else "others"
    more = ["true" if page["hasMore"] is True else "false" for page in (one, all_)]
    return f"{nearest}, hasMore {more[0]}; all before it: {order}, hasMore {more[1]}"
