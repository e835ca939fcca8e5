"""A webhook receiver in Django, in one file, which stores events for ``clinic_inbox.py``.

Set the environment variables FOLLOWUP_DATABASE_URL and FOLLOWUP_WEBHOOK_SECRET, and run it with
``python django_receiver.py runserver``.
"""

import functools
import os
import sys

import django
from clinic_inbox import create_inbox
from django.conf import settings
from django.core.management import execute_from_command_line
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

if not settings.configured:
    settings.configure(
        ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY=os.urandom(24).hex(), USE_TZ=True
    )
    django.setup()


inbox = functools.cache(create_inbox)  # created by the first request of each process


@csrf_exempt  # the signature authenticates the sender
@require_POST
def webhook(request: HttpRequest) -> HttpResponse:
    """Verify a webhook, and store its event."""
    return HttpResponse(status=inbox().receive(request.body, request.headers))


urlpatterns = [path("webhooks", webhook)]
application = get_wsgi_application()

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
