"""Checks a live webhook receiver: plays the cases of its duty, and judges what it sees (specification, section 6.2)."""
