"""All that knows httpx and httpcore: the I/O of a call, connections and time limits."""

CLOSED = "the client has been closed: create a new one"
