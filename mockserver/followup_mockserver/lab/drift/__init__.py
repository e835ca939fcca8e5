"""Compares a contract document of the service with the one that the SDK and the mock implement."""
