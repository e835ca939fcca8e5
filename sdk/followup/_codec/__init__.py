"""Between Python and JSON: arguments and result objects, by their annotations."""
