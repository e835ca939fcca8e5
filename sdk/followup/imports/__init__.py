"""Import of a clinic's own files: tables of appointments, visits or patients, of which only what changed is sent.

It needs the extra ``import`` (SQLAlchemy, python-calamine and phonenumberslite).
"""

from importlib.util import find_spec

from followup._version import installation

if _missing := [each for each in ("sqlalchemy", "python_calamine", "phonenumbers") if find_spec(each) is None]:
    raise ModuleNotFoundError(f"followup.imports needs {_missing[0]}: {installation('import')}", name=_missing[0])

from followup.imports.compare import Report
from followup.imports.doubts import Doubt
from followup.imports.job import Import, ImportRefused
from followup.imports.verify import Difference

__all__ = ["Difference", "Doubt", "Import", "ImportRefused", "Report"]
