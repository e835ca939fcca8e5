"""``pytest --followup-coverage``: which outcomes of the operations and webhooks a test suite has met."""
