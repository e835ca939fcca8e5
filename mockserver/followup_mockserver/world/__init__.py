"""What there is in a mock: its state, the settings of its organizations, the forms of fields, the words for outcomes.

What happens to objects is in ``rules`` and ``deliveries``. Nothing here knows a request or HTTP.
"""
