"""The state of a mock: tenants, what they consist of (collections, clock and jobs, history, journal), and snapshots.

A module belongs here if it stores and finds. What decides is in ``rules``; what sends is in ``deliveries``; what shows
the state to people is in ``control`` and ``web``.
"""
