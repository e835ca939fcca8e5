"""For which organization a request of the control API or the dashboard acts."""

from collections.abc import Callable

from flask import request

from followup_mockserver.control import Control
from followup_mockserver.engine import Engine
from followup_mockserver.gateway.auth import bearer_token
from followup_mockserver.schema.errors import ServiceError
from followup_mockserver.state.registry import Registry
from followup_mockserver.webhooks.mounts import Mounts


def acting_control(registry: Registry, engine: Engine, mounts: Mounts) -> Callable[[], Control]:
    """Gives the control of the organization whose key the current request carries, or else of the default one."""

    def control() -> Control:
        key = bearer_token({"authorization": request.headers.get("Authorization", "")})
        if key is not None and registry.by_key(key) is None:
            raise ServiceError(401, "authentication_error", "api_key_invalid", "There is no such API key.")
        return Control(registry, engine, mounts, key)

    return control
