"""The account (specification, section 4, Account)."""

from followup import Account, ApiKey
from followup_mockserver.world.settings import KeyRecord
from followup_mockserver.world.state.tenant import Tenant


def retrieve(tenant: Tenant, *, key: KeyRecord) -> Account:
    """Return the account that an API key belongs to."""
    organization = tenant.organization
    return Account(
        id=organization.id,
        object="account",
        name=organization.name,
        type=organization.type,
        time_zone=organization.time_zone,
        service_lines=list(organization.service_lines),
        livemode=organization.livemode,
        api_key=ApiKey(name=key.name, prefix=key.prefix, scopes=list(key.scopes)),
    )
