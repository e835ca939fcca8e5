"""What a call returns or raises."""
