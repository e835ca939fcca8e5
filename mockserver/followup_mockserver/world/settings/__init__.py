"""Options of a mock, settings of an organization, and the file that sets both."""
