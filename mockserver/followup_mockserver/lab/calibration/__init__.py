"""``followup-mock calibrate``: asks a test environment of the real service what the specification leaves open.

It is a client program: it uses the API as any client does, and knows nothing of the mock but the names of its options.

- ``service`` sends requests.
- ``run`` keeps what the questions share, and the list of everything that was written; ``phones`` invents numbers.
- ``probes`` has one function for each open point that a setting of the mock follows, or on which many integrations
  depend.
- ``calibrate`` asks all questions, says why the other points are not asked, cleans up, and reports.
"""
