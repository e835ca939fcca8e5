"""Import of a clinic's own files: tables of appointments, visits or patients, of which only what changed is sent.

It needs the extra ``import`` (SQLAlchemy, python-calamine and phonenumberslite).
"""

from importlib.util import find_spec

from followup._version import installation

_NEEDED = ("sqlalchemy", "python_calamine", "phonenumbers")
if _missing := next((each for each in _NEEDED if find_spec(each) is None), None):
    raise ModuleNotFoundError(f"followup.imports needs {_missing}: {installation('import')}", name=_missing)

from followup.imports.compare import Report
from followup.imports.doubts import Doubt
from followup.imports.job import Difference, Import, ImportRefused

__all__ = ["Difference", "Doubt", "Import", "ImportRefused", "Report"]
