"""Snapshots: the state of a mock as versioned JSON, and independent copies of it.

``parts`` is the table of what a snapshot has of each organization; whoever adds state to a tenant adds a row there.
"""
