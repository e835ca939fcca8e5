"""The admin pages of what waits, is held or is dead.

They read and write the database of ``FOLLOWUP["DATABASE"]``, whatever the router says, over Django's own connection:
with ``ATOMIC_REQUESTS``, another one would wait for this one.
"""

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import Case, Exists, F, OuterRef, Value, When
from django.utils.html import format_html

from followup import ConfigurationError
from followup._store.leases import datetime_of
from followup._store.schema import DEAD, IN_FLIGHT, WAITING, from_ascii
from followup._store.store import Store
from followup.django import inbox, outbox
from followup.django.from_settings import database_alias
from followup.django.models import VIEW_PERSONAL_DATA, ExactText, InboxEvent, OutboxEvent
from followup.inbox.arrivals import UNHANDLED

HELD = "held"


class _State(admin.SimpleListFilter):
    title = parameter_name = "state"

    def lookups(self, _: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [(each, each.replace("_", " ")) for each in model_admin.states]

    def queryset(self, _: Any, rows: Any) -> Any:
        return rows.filter(shown=self.value()) if self.value() else rows


class _Events(admin.ModelAdmin):
    """The events of a store that are not finished. They are changed by actions only."""

    store: ClassVar[Store]
    states: ClassVar[Sequence[str]]
    content: ClassVar[str]
    stored: ClassVar[str]
    personal: ClassVar[Sequence[str]]

    search_fields = ("event_id",)
    show_full_result_count = False

    def get_queryset(self, request: Any) -> Any:
        rows = super().get_queryset(request).using(database_alias())
        rows = rows.filter(name=self.store.name, state__in=self.states).annotate(shown=F("state"))
        return rows.exclude(**{f"{self.content}__isnull": True})  # of which only the id is left

    def lookup_allowed(self, lookup: str, value: object, request: Any = None) -> bool:  # noqa: ARG002
        # By default, the query of a URL may search any column, also for what its user may not see.
        return lookup.partition("__")[0] in ("state", "type")

    def has_add_permission(self, *_: Any) -> bool:
        return False

    def has_delete_permission(self, *_: Any) -> bool:
        return False

    def has_change_permission(self, request: Any, obj: Any = None) -> bool:
        return obj is None and super().has_change_permission(request)  # to act; no form changes an event

    def get_fields(self, request: Any, _: Any = None) -> Sequence[str]:
        shown = (*self.list_display, "next_attempt")
        is_permitted = request.user.has_perm(f"followup_django.{VIEW_PERSONAL_DATA}")
        return (*shown, *self.personal) if is_permitted else shown

    def get_readonly_fields(self, request: Any, obj: Any = None) -> Sequence[str]:
        return self.get_fields(request, obj)

    @admin.display(description="state")
    def shown_state(self, row: Any) -> str:
        return str(row.shown).replace("_", " ")

    @admin.display(description="stored at")
    def stored_at(self, row: Any) -> Any:
        return datetime_of(getattr(row, self.stored))

    def next_attempt(self, row: Any) -> Any:
        return datetime_of(row.due_at) if row.state == WAITING and row.due_at else None

    @admin.display(description="error")
    def reason(self, row: Any) -> str:
        try:
            return self.store._cipher.reason_in(vars(row))
        except ConfigurationError as error:
            return str(error)

    def payload(self, row: Any) -> Any:
        return format_html("<pre>{}</pre>", json.dumps(self._event_of(row), indent=2, ensure_ascii=False))

    def _event_of(self, row: Any) -> Any:
        stored: Any = getattr(row, self.content)
        if not isinstance(stored, str | None):
            stored = bytes(stored)
        try:
            return json.loads(self.store._cipher.decrypt(stored, row.event_id)) if stored else {}
        except ValueError as error:  # it is damaged, or its key is gone; the other rows are shown
            return {"problem": str(error)}

    def change(self, request: Any, rows: Any, done: str, states: Sequence[str], values: Any) -> None:
        """Change the chosen rows in one of these states, and say how many these were."""
        changing = [each for each in rows if each.state in states]
        same = rows.model.objects.using(rows.db).filter(pk__in=[each.pk for each in changing], state__in=states)
        count = same.update(**values)
        for each in changing:
            self.log_change(request, each, done)
        text = f"{count} of {len(rows)} events: {done}. Only {' and '.join(states)} events can be."
        self.message_user(request, text, messages.SUCCESS if count else messages.WARNING)


@admin.register(OutboxEvent)
class OutboxAdmin(_Events):
    """The events of the outbox that are not sent."""

    store = outbox
    states = (WAITING, IN_FLIGHT, HELD, DEAD)
    content, stored, personal = "event", "recorded_at", ("about", "reason", "payload")
    list_display = ("event_id", "type", "shown_state", "attempts", "stored_at")
    list_filter = (_State,)
    actions = ("retry", "discard")
    ordering = ("seq",)

    def get_queryset(self, request: Any) -> Any:
        rows = super().get_queryset(request)
        of_subject = {each: OuterRef(each) for each in ("name", "subject")}
        dead = OutboxEvent.objects.using(rows.db).filter(**of_subject, blocks_subject=True, state=DEAD)
        is_held = When(Exists(dead.filter(seq__lt=OuterRef("seq"))), state=WAITING, then=Value(HELD, ExactText()))
        return rows.annotate(shown=Case(is_held, default="state"))

    def type(self, row: Any) -> Any:
        return self._event_of(row).get("type")

    @admin.display(description="subject")
    def about(self, row: Any) -> str:
        return from_ascii(row.subject)

    @admin.action(permissions=["change"], description="Retry: send dead events again")
    def retry(self, request: Any, rows: Any) -> None:
        self.change(request, rows, "will be sent again", [DEAD], outbox._retried)

    @admin.action(permissions=["change"], description="Discard dead events, and free their subjects")
    def discard(self, request: Any, rows: Any) -> None:
        now = round(outbox._clock.now().timestamp() * 1000)
        self.change(request, rows, "discarded", [DEAD], {**outbox._discarded, "finished_at": now})


@admin.register(InboxEvent)
class InboxAdmin(_Events):
    """The events of the inbox that are not done."""

    store = inbox
    states = (WAITING, IN_FLIGHT, DEAD, UNHANDLED)
    content, stored, personal = "body", "received_at", ("reason", "payload")
    list_display = ("event_id", "type", "ref", "shown_state", "attempts", "stored_at")
    list_filter = (_State, "type")
    actions = ("retry",)
    ordering = ("occurred_at", "seq")

    @admin.action(permissions=["change"], description="Retry: handle dead and unhandled events again")
    def retry(self, request: Any, rows: Any) -> None:
        self.change(request, rows, "will be handled again", [DEAD, UNHANDLED], inbox._retried)
