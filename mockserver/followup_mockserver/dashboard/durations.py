"""Durations in a few words, such as ``2 d 17 h``."""

from datetime import timedelta

_UNITS = (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0), ("s", 1.0))


def in_words(duration: timedelta) -> str:
    """Return a duration in its two largest units: ``2 d 17 h``, ``10 min``, ``0.3 s``."""
    seconds = duration.total_seconds()
    if seconds < 10 and seconds % 1:
        return f"{seconds:.1f} s"
    parts = []
    left = round(seconds)
    for unit, size in _UNITS:
        number, left = divmod(left, int(size))
        if number:
            parts.append(f"{number} {unit}")
    return " ".join(parts[:2]) or "0 s"
