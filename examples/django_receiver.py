"""A webhook receiver in Django, in one file.

Set the environment variables CLINIC_INBOX and FOLLOWUP_WEBHOOK_SECRET, and run it with
``python django_receiver.py runserver``.
"""

import logging
import os
import sys

import django
from django.conf import settings
from django.core.management import execute_from_command_line
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from inbox import Inbox

from followup import WebhookSignatureError, construct_event

logger = logging.getLogger("clinic")

if not settings.configured:
    settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY=os.urandom(24).hex(), USE_TZ=True)
    django.setup()


@csrf_exempt  # the signature authenticates the sender
@require_POST
def webhook(request: HttpRequest) -> HttpResponse:
    """Verify a webhook, and store its event."""
    try:
        # The raw body: re-serialized JSON does not match the signature.
        event = construct_event(request.body, request.headers, os.environ["FOLLOWUP_WEBHOOK_SECRET"])
    except WebhookSignatureError as error:
        logger.warning("webhook rejected: %s", error)
        return HttpResponse(status=400)
    Inbox(os.environ["CLINIC_INBOX"]).accept(event)
    return HttpResponse(status=204)


urlpatterns = [path("webhooks", webhook)]
application = get_wsgi_application()

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
