"""Programs that judge what others have built, by what is seen from outside."""
