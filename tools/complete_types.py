"""Checks that all public names of a package have types: ``python tools/complete_types.py PACKAGE``.

It asks ``pyright --verifytypes``, which has no exceptions. The app of Django needs one, since Django has no types.
"""

import json
import subprocess
import sys

WITHOUT_TYPES = "followup.django."


def main(package: str) -> None:
    """Print the public names whose types are unknown, and end with status 1 if there are any."""
    command = ["pyright", "--verifytypes", package, "--ignoreexternal", "--outputjson"]
    answer = json.loads(subprocess.run(command, capture_output=True, check=False, text=True).stdout)  # noqa: S603
    symbols = [each for each in answer["typeCompleteness"]["symbols"] if not each["name"].startswith(WITHOUT_TYPES)]
    exported = [each for each in symbols if each["isExported"]]
    unknown = [each["name"] for each in exported if not each["isTypeKnown"]]
    print(f"{package}: {len(exported)} public names, {len(unknown)} of them without a known type")  # noqa: T201
    sys.exit("\n".join(unknown) or (None if exported else "pyright found no public names in it"))


main(sys.argv[1])
