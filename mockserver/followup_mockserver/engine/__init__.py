"""Runs the jobs that are due, in order, with the clock at each job's own due time.

In process nothing runs in the background: ``advance`` runs every job in the calling thread, ``advance_async`` in the
calling task, one after the other. What both do is a generator that yields the delivery attempts. In a server, a
scheduler thread sleeps until the next job is due, and workers make the delivery attempts. No attempt is sent while a
tenant's lock is held.
"""

from followup_mockserver.engine.engine import Engine, Target

__all__ = ["Engine", "Target"]
