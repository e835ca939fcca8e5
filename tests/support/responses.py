"""Response bodies in the format of the service; keyword arguments replace or add fields."""

from typing import Any

TIME = "2026-09-28T12:00:00.000Z"


def patient(id: str = "pat_1", **fields: Any) -> dict[str, Any]:
    """Return a patient."""
    return {
        "id": id,
        "object": "patient",
        "fullName": "Ana Pérez",
        "phone": "+5491155550000",
        "email": None,
        "dni": "30123456",
        "externalId": None,
        "dateOfBirth": "1980-05-17",
        "stage": "scheduled",
        "optedOut": False,
        "createdAt": TIME,
        "updatedAt": TIME,
        **fields,
    }


def appointment(id: str = "apt_1", **fields: Any) -> dict[str, Any]:
    """Return an appointment."""
    return {
        "id": id,
        "object": "appointment",
        "patient": "pat_1",
        "doctor": None,
        "startAt": TIME,
        "status": "confirmed",
        "type": None,
        "externalId": None,
        "source": "api",
        "cancelledAt": None,
        "createdAt": TIME,
        "updatedAt": TIME,
        **fields,
    }


def page(*items: dict[str, Any], more: bool = False) -> dict[str, Any]:
    """Return a page of a list."""
    return {"object": "list", "data": list(items), "hasMore": more, "url": "/v1/patients"}


def error(type: str = "invalid_request_error", **fields: Any) -> dict[str, Any]:
    """Return the body of an error."""
    return {"error": {"type": type, "code": None, "message": None, "param": None, **fields}}
