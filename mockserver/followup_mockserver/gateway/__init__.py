"""From a request to its answer: the checks that every operation shares, without Flask."""
