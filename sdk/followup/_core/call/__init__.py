"""The life of a call, without I/O: steps, outcomes, retries, errors, pages and the request rate."""
