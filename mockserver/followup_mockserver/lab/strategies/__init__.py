"""How ``followup_mockserver.strategies`` draws arguments and webhooks with Hypothesis."""
