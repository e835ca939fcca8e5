"""Tools that judge: simulations, strategies, the comparison of contracts, calibration and the receiver check.

Only the commands and the modules that users import (``simulation``, ``strategies``) import them.
"""
