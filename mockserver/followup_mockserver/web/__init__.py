"""The HTTP interface of the mock: operations, control API and dashboard. The only package that imports Flask."""
