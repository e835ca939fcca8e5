"""The waits of the clients in this process, which take no real time."""

from followup_mockserver.state.access import TenantAccess


class WaitControls:
    """List how long clients have waited."""

    _access: TenantAccess

    @property
    def waits(self) -> list[float]:
        """The waits of the organization's clients so far, in seconds, in order; at most the last 10,000.

        A client of a ``MockService`` does not sleep: each of its waits advances the clock, and is listed here. Such are
        the waits before a retry, for the request rate of the client and between the rounds of ``send_all``, and the
        delays by faults, each up to the timeout of the client. Clients of a ``MockServer`` sleep, and are not listed.
        """
        tenant = self._access.tenant
        with tenant.lock:
            return list(tenant.waits)
