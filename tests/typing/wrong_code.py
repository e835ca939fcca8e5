"""Code that is wrong: each marked line is an error of both checkers, which report a mark where there is none."""

from followup import AsyncFollowUp, FollowUp, FolowUp  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
from followup_mockserver import MockServce, MockService  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


def use(client: FollowUp) -> None:
    client.patients.create()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    client.patients.create(phone=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.patients.create(phone=None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.patients.create(phone="1", full_name=5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.appointments.update("apt_1", start_at=None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.patients.create("1")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    client.patients.create(phone="1", fullName="Ana")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    client.patients.retrieve()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    client.patients.update("pat_1", phone="1")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    client.patients.list(limit="10")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.appointments.list(status="lost")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.appointments.create(patient=5, start_at="x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.events.create(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.webhook_endpoints.create(url="https://x", enabled_events=["nothing"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    client.webhook_endpoints.ping("we_1", reason="x")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    client.patiens.list()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    client.patients.creat(phone="1")  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    assert client.patients.retrieve("pat_1").stage != "finished"  # type: ignore[comparison-overlap]
    client.patients.retrieve("pat_1").fullName  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


async def use_async(client: AsyncFollowUp) -> None:
    await client.patients.create()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    for _ in client.patients.list():  # type: ignore[attr-defined]  # pyright: ignore[reportGeneralTypeIssues]
        break
    await client.patiens.list()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


def use_mock(service: MockService) -> None:
    service.patiens  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
