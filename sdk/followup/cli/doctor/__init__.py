"""``followup doctor``: checks everything between this computer and the service, one family of checks per module."""
