"""What there is in a mock: the settings and objects of its organizations, and the forms of their fields.

What happens to them is in ``rules`` and ``deliveries``. Nothing here knows a request or HTTP.
"""
