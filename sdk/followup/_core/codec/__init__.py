"""The codec: converts arguments and result objects between Python and JSON, following their annotations."""
