"""How hard hypothesis tries: ``--hypothesis-profile fuzz`` makes it try much harder."""

from hypothesis import HealthCheck, settings

settings.register_profile("quick", deadline=None, max_examples=100)
settings.register_profile("fuzz", deadline=None, max_examples=33_400, suppress_health_check=list(HealthCheck))
settings.load_profile("quick")
