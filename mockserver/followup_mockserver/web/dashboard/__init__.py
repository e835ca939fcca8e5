"""The dashboard at ``/_mock/``: API calls, objects and test controls in a browser.

The page itself holds no data. Its script requests the views, which are rendered here as HTML, and calls the control
API. Both are protected in the same way as that API.
"""
