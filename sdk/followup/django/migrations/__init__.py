"""The migrations of the app. Each version of the tables has one, and all of them do the same."""
