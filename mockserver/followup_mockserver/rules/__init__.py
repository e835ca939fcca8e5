"""The rules of the service: one file per group of operations, one function per operation, none of which knows HTTP."""
