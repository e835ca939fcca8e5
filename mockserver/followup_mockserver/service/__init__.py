"""The mock as a whole: ``MockService`` in memory, ``MockServer`` on a socket."""
