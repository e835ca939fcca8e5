"""``followup-mock calibrate``: asks a test environment of the real service what the specification leaves open.

It is a client program: it uses the API as any client does, and knows nothing of the mock but the names of its options.

- ``service`` sends requests, at a limited rate.
- ``run`` keeps what the questions share, and the list of everything that was written.
- ``probes`` has one function for each open point that a client can observe; ``not_asked`` says why the others are not
  asked.
- ``calibrate`` asks all questions; ``clean_up`` cancels and deletes what the API can.
- ``report`` is the result, as text and as a settings file.
"""
