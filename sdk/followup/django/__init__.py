"""followup in a Django project: ``client``, ``outbox`` and ``inbox`` as the settings describe them, and a webhook view.

Add ``"followup.django"`` to ``INSTALLED_APPS``. Importing this module needs no settings: each object is made at its
first use, and anew when the settings or the name of the database have changed, as in a test.

It needs Django, and the extra ``store`` (SQLAlchemy).
"""

from importlib.util import find_spec

if find_spec("django") is None:
    raise ModuleNotFoundError("followup.django needs Django: python -m pip install django", name="django")

from django.db.transaction import non_atomic_requests
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from followup.django.from_settings import DjangoFollowUp
from followup.django.stores import DjangoInbox, DjangoOutbox, RecordedEvent

__all__ = ["DjangoFollowUp", "DjangoInbox", "DjangoOutbox", "RecordedEvent", "client", "inbox", "outbox", "webhook"]

client: DjangoFollowUp = DjangoFollowUp()
outbox: DjangoOutbox = DjangoOutbox()
inbox: DjangoInbox = DjangoInbox()


# The signature authenticates the sender. With ATOMIC_REQUESTS, a wait for a lock could outlast that for the response.
@non_atomic_requests
@csrf_exempt
@require_POST
def webhook(request: HttpRequest) -> HttpResponse:
    """Verify a webhook, and store its event: 204, 400 or 503, as ``inbox.receive`` returns it."""
    return HttpResponse(status=inbox.receive(request.body, request.headers))
