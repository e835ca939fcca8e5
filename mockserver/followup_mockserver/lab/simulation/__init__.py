"""How ``followup_mockserver.simulation`` plays a history and checks the promises of an integration."""
