"""Idempotency keys (specification, sections 4 and 7)."""

from followup_mockserver.judge.calibration.points import point
from followup_mockserver.judge.calibration.probes.requests import verdict
from followup_mockserver.judge.calibration.run import Run


@point(
    scopes="patients:read patients:write appointments:write",
    writes=["patients", "appointments"],
    mock="another body: 400 idempotency_error idempotency_key_reused; "
    "another path: 400 idempotency_error idempotency_key_reused; after a failure: free; "
    "a replay: the same bytes, Idempotent-Replayed: true; how long a key is remembered was not asked, because it takes "
    "a day",
)
def idempotency_keys(run: Run) -> str:
    """What happens to a key that is used again?"""
    key = {"Idempotency-Key": run.external_id()}
    body = run.booking()
    run.make("POST", "/v1/appointments", json=body, headers=key)
    first = run.ask("POST", "/v1/appointments", json=body, headers=key)
    again = run.ask("POST", "/v1/appointments", json=body, headers=key)
    other = run.ask("POST", "/v1/appointments", json={**body, "type": "control"}, headers=key)
    path = run.ask("POST", "/v1/patients", json={"phone": run.patient["phone"]}, headers=key)
    failed = {"Idempotency-Key": run.external_id()}
    run.ask("POST", "/v1/patients", json={"phone": 5}, headers=failed)
    after = run.ask("POST", "/v1/patients", json={"phone": run.patient["phone"]}, headers=failed)
    replay = f"Idempotent-Replayed: {'true' if again.headers.get('Idempotent-Replayed') == 'true' else 'absent'}"
    same = "the same bytes" if first.content == again.content else "other bytes"
    return (
        f"another body: {verdict(other)}; another path: {verdict(path)}; "
        f"after a failure: {verdict(after, 'free')}; a replay: {same}, {replay}; "
        "how long a key is remembered was not asked, because it takes a day"
    )
