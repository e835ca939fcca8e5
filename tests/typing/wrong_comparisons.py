"""Comparisons that can never be true: errors of mypy, and of pyright in strict mode."""

# pyright: strict

from followup import FollowUp, WebhookEvent


def use(client: FollowUp, event: WebhookEvent) -> None:
    appointment = client.appointments.retrieve("apt_1")
    _ = appointment.status == "canceled"  # type: ignore[comparison-overlap]  # pyright: ignore[reportUnnecessaryComparison]
    _ = event.type == "appointment.canceled"  # type: ignore[comparison-overlap]  # pyright: ignore[reportUnnecessaryComparison]
    _ = client.patients.retrieve("pat_1").stage == "finished"  # type: ignore[comparison-overlap]  # pyright: ignore[reportUnnecessaryComparison]
    for delivery in client.webhook_deliveries.list(status="pending"):
        _ = delivery.status == "success"  # type: ignore[comparison-overlap]  # pyright: ignore[reportUnnecessaryComparison]
