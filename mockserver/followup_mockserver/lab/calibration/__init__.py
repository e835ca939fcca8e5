"""``followup-mock calibrate``: asks a test environment of the real service what the specification leaves open.

It is a client program: it uses the API as any client does, and knows nothing of the mock but the names of its options.
``run`` keeps what they share, and the list of everything that was written. ``questions`` has one function for
each question, and makes the settings file.
"""
