"""``followup-mock calibrate``: asks a test environment of the real service what the specification leaves open.

It is a client program: it uses the API as any client does, and knows nothing of the mock but the names of its options.

- ``service`` sends requests.
- ``run`` keeps what the questions share, and ``created`` the list of everything that was written.
- ``probes`` has one function for each open point that a setting of the mock follows, or that changes what an integrator
  writes.
- ``calibrate`` asks all questions, says why the other points are not asked, cleans up, and reports.
"""
