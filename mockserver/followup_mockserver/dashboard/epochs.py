"""The epoch of an organization's state: a reset or a restart begins another, and no id from before exists any more."""

import secrets
import weakref

from followup_mockserver.state.tenant import Tenant

_epochs: weakref.WeakKeyDictionary[Tenant, str] = weakref.WeakKeyDictionary()


def epoch_of(tenant: Tenant) -> str:
    """Return what identifies this state among those before and after it. The caller holds the tenant's lock."""
    return _epochs.setdefault(tenant, secrets.token_hex(8))
