"""The attempts of all webhook deliveries, with the responses of the receivers as far as they are kept."""

from collections import OrderedDict
from collections.abc import Iterator

import attrs

from followup_mockserver.state.records import Attempt

LARGEST_RESPONSES = 16 * 1024 * 1024
"""Bytes and characters of all responses together; beyond this the oldest are dropped."""


class Attempts:
    """The attempts of an organization's deliveries. Attempts are kept; the responses of the oldest may be dropped."""

    def __init__(self) -> None:
        self._by_delivery: dict[str, list[Attempt]] = {}
        self._sizes: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._size = 0

    def add(self, attempt: Attempt) -> None:
        """Record an attempt, and drop the oldest responses beyond the limit."""
        of_delivery = self._by_delivery.setdefault(attempt.delivery, [])
        of_delivery.append(attempt)
        if attempt.response is not None:
            self._sizes[attempt.delivery, len(of_delivery) - 1] = attempt.response.size
            self._size += attempt.response.size
            while self._size > LARGEST_RESPONSES:
                self._drop_oldest_response()

    def of(self, delivery: str) -> list[Attempt]:
        """Return the attempts of a delivery, oldest first."""
        return list(self._by_delivery.get(delivery, ()))

    def remove(self, delivery: str) -> None:
        """Remove the attempts of a delivery."""
        for position in range(len(self._by_delivery.pop(delivery, ()))):
            self._size -= self._sizes.pop((delivery, position), 0)

    def deliveries(self) -> list[str]:
        """Return the ids of the deliveries that have attempts."""
        return list(self._by_delivery)

    def copy(self) -> "Attempts":
        """Return an independent copy."""
        copy = Attempts()
        copy._by_delivery = {delivery: list(attempts) for delivery, attempts in self._by_delivery.items()}
        copy._sizes = self._sizes.copy()
        copy._size = self._size
        return copy

    def __iter__(self) -> Iterator[Attempt]:
        """Iterate over all attempts, delivery by delivery."""
        for of_delivery in self._by_delivery.values():
            yield from of_delivery

    def _drop_oldest_response(self) -> None:
        (delivery, position), size = self._sizes.popitem(last=False)
        self._size -= size
        of_delivery = self._by_delivery[delivery]
        of_delivery[position] = attrs.evolve(of_delivery[position], response=None)
