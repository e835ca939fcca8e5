"""What a call is: how operations are declared, encoded, sent, repeated and decoded, and what they return or raise.

The operations themselves are in ``resources``; nothing here knows one of them, the outbox, the inbox or a command.
"""
