"""The client of a Django project."""

import os
from typing import Any

from followup import FollowUp
from followup.django.late import Late, setting


class DjangoFollowUp(Late, FollowUp):
    """A ``FollowUp`` with the key and the URL of ``FOLLOWUP``, else of the environment. Threads may share it."""

    def __init__(self) -> None:
        super().__init__()
        self.__dict__["_stand_in"] = None

    def _stand_for(self, client: FollowUp | None) -> None:
        """Be this client, in a test, whatever the settings are; with None, that of the settings again."""
        self.__dict__["_stand_in"] = client

    def _described(self) -> object:
        variables = (os.environ.get(each) for each in ("FOLLOWUP_API_KEY", "FOLLOWUP_BASE_URL"))
        return self.__dict__["_stand_in"], setting("API_KEY"), setting("BASE_URL"), *variables

    def _make(self) -> Any:
        self.close()  # that of before
        return self.__dict__["_stand_in"] or FollowUp(api_key=setting("API_KEY"), base_url=setting("BASE_URL"))

    def close(self) -> None:
        """Close the connections. The next call opens others."""
        made, self.__dict__["_made"] = self.__dict__["_made"], None
        if made is not None:
            made[1].close()
