"""The app of Django."""

from django.apps import AppConfig
from django.conf import settings
from django.core import checks


class FollowUpConfig(AppConfig):
    """The app ``followup.django``.

    Attributes:
        databases: the name of each database by its alias, before tests gave them others.
    """

    name = "followup.django"
    label = "followup_django"
    verbose_name = "Patient follow-up"

    def ready(self) -> None:
        """Register the checks."""
        from followup.django.checks import check_settings, check_tables

        self.databases = {alias: str(each.get("NAME", "")) for alias, each in settings.DATABASES.items()}
        checks.register(check_settings)
        checks.register(check_tables, checks.Tags.database)
