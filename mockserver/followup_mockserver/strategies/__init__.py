"""Hypothesis strategies: arguments of all 32 operations, and webhooks as the service sends them.

They need Hypothesis: ``python -m pip install 'followup[testing]'``. For example, a property of your own mapping::

    from hypothesis import given
    from followup_mockserver import strategies

    @given(strategies.operation("patients.create"))
    def test_every_patient_can_be_sent(call): ...
"""

try:
    import hypothesis as _hypothesis  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "hypothesis":
        raise
    raise ImportError(
        f"{__name__} needs Hypothesis, which is not installed: python -m pip install 'followup[testing]'",
        name="hypothesis",
    ) from None

from followup_mockserver.strategies.operations import operation
from followup_mockserver.strategies.webhooks import signed_webhook, webhook_event

__all__ = ["operation", "signed_webhook", "webhook_event"]
