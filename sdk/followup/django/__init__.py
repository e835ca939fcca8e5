"""followup in a Django project: ``client``, ``outbox`` and ``inbox`` as the settings describe them, and a webhook view.

Add ``"followup.django"`` to ``INSTALLED_APPS``. Importing this module needs no settings: each object is made at its
first use, and anew when the settings or the name of the database have changed, as in a test.

It needs Django, and the extra ``store`` (SQLAlchemy).
"""

from importlib.util import find_spec

if find_spec("django") is None:
    raise ModuleNotFoundError("followup.django needs Django: python -m pip install django", name="django")

from followup.django.clients import DjangoFollowUp
from followup.django.stores import DjangoInbox, DjangoOutbox, RecordedEvent
from followup.django.views import webhook_of

__all__ = ["DjangoFollowUp", "DjangoInbox", "DjangoOutbox", "RecordedEvent", "client", "inbox", "outbox", "webhook"]

client: DjangoFollowUp = DjangoFollowUp()
outbox: DjangoOutbox = DjangoOutbox()
inbox: DjangoInbox = DjangoInbox()
webhook = webhook_of(inbox)
