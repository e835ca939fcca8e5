"""The account: the organization that owns the API key (specification, sections 2 and 4)."""

# pyright: reportReturnType=false

from typing import Literal

import attrs

from followup._core.api_rules import AccountId
from followup._core.operations import Resource, get
from followup._core.results import Model, Result

ServiceLine = Literal["follow_up", "network"]


@attrs.define(kw_only=True, eq=False, repr=False)
class ApiKey(Model):
    """The API key of a request, without its value (specification, section 5).

    Attributes:
        name: name of the key, chosen by the organization.
        prefix: the first characters of its value, which differ between production and test keys.
        scopes: its permissions, such as ``patients:write``.
    """

    name: str
    prefix: str
    scopes: list[str]


@attrs.define(kw_only=True, eq=False, repr=False)
class Account(Result):
    """The organization of the API key, as the API returns it (specification, section 2).

    Attributes:
        type: kind of institution, such as ``clinic``, ``pharmacy`` or ``lab``.
        time_zone: IANA name of its time zone, such as ``America/Argentina/Buenos_Aires``.
        service_lines: ``follow_up`` (patient follow-up), ``network`` (referral network).
        livemode: true in production, false in the test environment.
        api_key: the key of the request.
    """

    id: AccountId
    object: Literal["account"]
    name: str
    type: str
    time_zone: str
    service_lines: list[ServiceLine]
    livemode: bool
    api_key: ApiKey


class AccountGroup(Resource, group="account"):
    """The organization of the API key."""

    @get("/v1/account")
    def retrieve(self) -> Account:
        """Retrieve the organization of the API key.

        It needs no scope, so it shows whether an integration is configured (specification, section 4, Account).

        Returns:
            The organization, with the name, prefix and scopes of the key.

        Raises:
            AuthenticationError: the key is invalid, revoked or expired.
        """
