"""Code that is wrong: each marked line is an error, and mypy would complain of an unused ignore if it were none."""

from followup import AsyncFollowUp, FollowUp


def use(client: FollowUp) -> None:
    client.patients.create()  # type: ignore[call-arg]
    client.patients.create(phone=1)  # type: ignore[arg-type]
    client.patients.create("1")  # type: ignore[call-arg]
    client.patients.create(phone="1", fullName="Ana")  # type: ignore[call-arg]
    client.patients.retrieve()  # type: ignore[call-arg]
    client.patients.update("pat_1", phone="1")  # type: ignore[call-arg]
    client.patients.list(limit="10")  # type: ignore[arg-type]
    client.appointments.list(status="lost")  # type: ignore[arg-type]
    client.appointments.create(patient=5, start_at="x")  # type: ignore[arg-type]
    client.events.create(5)  # type: ignore[arg-type]
    client.webhook_endpoints.create(url="https://x", enabled_events=["nothing"])  # type: ignore[list-item]
    client.webhook_endpoints.ping("we_1", reason="x")  # type: ignore[call-arg]


async def use_async(client: AsyncFollowUp) -> None:
    await client.patients.create()  # type: ignore[call-arg]
    for _ in client.patients.list():  # type: ignore[attr-defined]
        break
