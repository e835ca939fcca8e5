"""How webhooks leave the mock: over a socket, or to an application that is mounted in this process."""
