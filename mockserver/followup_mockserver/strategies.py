"""Hypothesis strategies: arguments of all 32 operations, and webhooks as the service sends them.

They need the extra ``testing``, which installs Hypothesis. The arguments are derived from the declarations of the
operations, and the webhooks are made by the rules of the mock.
"""

try:
    import hypothesis as _hypothesis  # noqa: F401
except ModuleNotFoundError as _error:
    if _error.name != "hypothesis":
        raise
    from followup._for_mockserver import installation

    raise ImportError(
        f"{__name__} needs Hypothesis, which is not installed: {installation('testing')}", name="hypothesis"
    ) from None

from followup_mockserver.lab.strategies import operation, signed_webhook, webhook_event

__all__ = ["operation", "signed_webhook", "webhook_event"]
