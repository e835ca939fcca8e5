"""The signing secrets of ``followup-mock listen``: a receiver keeps its secret over restarts of mock and command."""

import json
import os
import secrets
import string
from pathlib import Path

from followup.cli.exits import fail
from followup_mockserver.cli.private_files import write_private_file
from followup_mockserver.schema.formats import SECRET_RULE, is_valid_secret

_FILE = "listen-secrets.json"
_CHARACTERS = string.ascii_letters + string.digits
_LENGTH = 24


def secret_of(url: str) -> tuple[str, str | None]:
    """Return the secret of the receiver at a URL, made when it is first asked for.

    Args:
        url: URL of the receiver.

    Returns:
        The secret, and the reason why it could not be stored; None if it is stored.

    Raises:
        CommandFailed: the stored secret is invalid.
    """
    path = _folder() / _FILE
    known = _read(path)
    if url in known:
        if not is_valid_secret(known[url]):
            fail(f"the secret for {url} in {path} must be {SECRET_RULE}; correct it, or pass --secret")
        return known[url], None
    known[url] = "whsec_" + "".join(secrets.choice(_CHARACTERS) for _ in range(_LENGTH))
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private_file(path, json.dumps(known, indent=2) + "\n")
    except OSError as error:
        return known[url], f"cannot write {path}: {error.strerror}"
    return known[url], None


def _folder() -> Path:
    """Return the folder for files that a program keeps for a user between its runs."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "followup-mock"


def _read(path: Path) -> dict[str, str]:
    """Return the secrets by URL; none if the file cannot be used."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {url: secret for url, secret in content.items() if isinstance(secret, str)}
