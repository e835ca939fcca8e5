"""The rules of the service: one module per group of operations, one function per operation, and no HTTP."""
