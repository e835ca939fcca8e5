"""The error of a contract document that cannot be compared."""


class DocumentError(Exception):
    """The document cannot be read, or it is not an OpenAPI document. The text is one line and names the place."""
