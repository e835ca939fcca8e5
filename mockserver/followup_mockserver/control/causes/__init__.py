"""The chain of causes: what happened to an object, what caused it, and what did not happen and why."""

from followup_mockserver.control.causes.chain import explain, messages_not_sent, occurrences_of, outbound_events
from followup_mockserver.control.causes.occurrences import HistoryEntry, Occurrence

__all__ = ["HistoryEntry", "Occurrence", "explain", "messages_not_sent", "occurrences_of", "outbound_events"]
