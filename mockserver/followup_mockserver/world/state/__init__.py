"""The state of the mock: the tenants, and the collections, queues and records that they consist of."""
