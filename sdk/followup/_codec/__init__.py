"""Between Python and JSON: names, the encoder of arguments, the decoder of results."""
