"""The page at ``/_mock/``: what the service did, and the test controls.

The page itself holds no data. Its script asks for views, which are rendered here as HTML, and for calls of the control
API; both are protected as that API is.
"""
