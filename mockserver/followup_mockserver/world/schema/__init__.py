"""Validation: JSON Schemas for requests, checks for arguments, and the errors for invalid values."""
