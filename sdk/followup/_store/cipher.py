"""Encryption at rest: what a store with a cipher writes into its rows, and how it reads them.

Payloads and errors are encrypted. Subjects have to be compared, so they become hashes, keyed with a salt that is random
for each store. The salt is encrypted too: a plain one would let whoever has a copy of the database try all phones. Its
row is also the mark that a store is encrypted.

Rows that were written without a cipher stay readable beside the others, until ``reencrypt`` rewrites them.
"""

import base64
import hashlib
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, AnyStr, Final, Protocol

import sqlalchemy as sa

from followup._core.codec.kinds import kind_of
from followup._core.errors import ConfigurationError
from followup._store.execution import Execution, Rows
from followup._store.schema import LONGEST_REASON, SALTS, as_ascii, from_ascii

MARK: Final = "followup-encrypted:"
"""The beginning of what is encrypted. No JSON begins so, and no reason that is stored plain."""

_HASH_MARK: Final = "blake2b:"

_SALT_MARK: Final = "followup-salt:"
"""The beginning of each salt. A cipher that does not authenticate decrypts with a wrong key, too, but not to this."""

_MOST_UNREADABLE = 500
"""Rows that a relay passes over. If there are more of them, the cipher as a whole is wrong."""

_FORGOTTEN_AFTER = 300.0
"""Seconds after which rows that could not be decrypted are tried again: a cipher may ask a server for its key."""

Hash = Callable[[str], str]
"""Returns a subject as it is stored."""


class Cipher(Protocol):
    """Encrypts what is stored, as ``Fernet`` and ``MultiFernet`` of the package ``cryptography`` do.

    It has to authenticate: ``decrypt`` raises an exception for what ``encrypt`` has not returned, whatever exception.
    """

    def encrypt(self, data: bytes, /) -> bytes:
        """Return the data encrypted."""
        ...

    def decrypt(self, data: bytes, /) -> bytes:
        """Return encrypted data decrypted."""
        ...


class RowCipher:
    """Encrypts and decrypts the rows of a store, with the user's cipher or with none.

    Attributes:
        component: ``outbox`` or ``inbox``.
        name: name of the store.
        is_on: whether there is a cipher.
        salt_query: reads the row of the salt.
    """

    def __init__(self, cipher: Cipher | None, component: str, name: str) -> None:
        """Check the cipher.

        Raises:
            ConfigurationError: it is no such object.
        """
        methods = [getattr(cipher, each, None) for each in ("encrypt", "decrypt")]
        if cipher is not None and (isinstance(cipher, type) or not all(map(callable, methods))):
            found = f"the class {cipher.__name__}" if isinstance(cipher, type) else kind_of(cipher)
            raise ConfigurationError(
                "cipher must be an object with the methods encrypt(bytes) and decrypt(bytes), such as "
                f"cryptography.fernet.Fernet(key), not {found}"
            )
        self.component = component
        self.name = name
        self.is_on: bool = cipher is not None
        # As an attribute of this object, vars() would show it, with its key perhaps.
        self._cipher: Callable[[], Cipher | None] = lambda: cipher
        of_store = (SALTS.c.component == component, SALTS.c.name == name)
        self.salt_query: sa.Select[Any] = sa.select(SALTS.c.salt).where(*of_store)
        self._last_hash: tuple[str, Hash] | None = None

    def encrypt(self, plain: AnyStr) -> AnyStr:
        """Return a text or a body as it is stored.

        Raises:
            ConfigurationError: the cipher fails.
        """
        cipher = self._cipher()
        if cipher is None:
            return plain
        token: object = None
        try:
            token = cipher.encrypt(plain.encode() if isinstance(plain, str) else plain)
            problem = f"returns {kind_of(token)}, not bytes"
        except Exception as error:  # noqa: BLE001 - its text may contain the data or the key
            problem = f"raises {type(error).__name__}"
        if not isinstance(token, bytes):
            raise ConfigurationError(f"the encrypt method of the cipher {problem}")
        # A token may be any bytes, and this column is of text.
        if isinstance(plain, str):
            return MARK + base64.b64encode(token).decode()
        return MARK.encode() + token

    def decrypt(self, stored: AnyStr, event_id: str) -> AnyStr:
        """Return a text or a body that is stored, decrypted if it was encrypted.

        Raises:
            ConfigurationError: it cannot be decrypted; the message names the event.
        """
        plain, problem = self._decrypted(stored)
        if plain is None:
            raise ConfigurationError(f"event {event_id} cannot be decrypted: {problem}")
        return plain

    def _decrypted(self, stored: AnyStr) -> tuple[AnyStr | None, str]:
        """Return it decrypted; or None, and what is wrong."""
        if not (stored.startswith(MARK) if isinstance(stored, str) else stored.startswith(MARK.encode())):
            return stored, ""
        cipher, token = self._cipher(), stored[len(MARK) :]
        if cipher is None:
            return None, f"the {self.component} has no cipher"
        try:
            if isinstance(token, str):
                return cipher.decrypt(base64.b64decode(token, validate=True)).decode(), ""
            return bytes(cipher.decrypt(token)), ""
        except Exception as error:  # noqa: BLE001 - its text may contain the data or the key
            kind = type(error).__name__
            return None, f"the cipher lacks its key, or the row is damaged ({kind})"

    def reason(self, text: str | None) -> str | None:
        """Return a reason as it is stored, which others have written: the service, or an exception.

        Whatever the text is, each database can store it, in any encoding: U+0000 and lone surrogates are replaced, and
        it is cut.
        """
        if text is None:
            return None
        cut = text[:LONGEST_REASON].replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
        # With a space before it, a reason that looks encrypted is not decrypted when it is read.
        return self.encrypt(as_ascii(f" {cut}" if cut.startswith(MARK) else cut))

    def reason_in(self, row: Any) -> str:
        """Return the reason that a row has stored, as text; empty if it has none.

        Raises:
            ConfigurationError: it cannot be decrypted; the message names the event.
        """
        return from_ascii(self.decrypt(row["error"] or "", row["event_id"]))

    def hash_in(self, rows: Rows) -> Hash | None:
        """Return the hash of subjects, for the result of ``salt_query``; None if a cipher is used for the first time.

        Raises:
            ConfigurationError: the store is encrypted, and there is no cipher, or it is not the right one.
        """
        store = f"the {self.component} {self.name!r}"
        if not rows:
            return None if self.is_on else unhashed
        if not self.is_on:
            raise ConfigurationError(f"{store} is encrypted: pass cipher=..., with the key that it was encrypted with")
        stored: str = rows[0][0]
        last = self._last_hash  # many transactions read the same salt, and some ciphers ask a server
        if last is not None and last[0] == stored:
            return last[1]
        plain, _ = self._decrypted(stored)
        if plain is None or not plain.startswith(_SALT_MARK):
            raise ConfigurationError(f"{store} is encrypted under a key that the cipher does not have")
        salt = bytes.fromhex(plain.removeprefix(_SALT_MARK))

        def hashed(subject: str) -> str:
            return _HASH_MARK + hashlib.blake2b(subject.encode(), key=salt, digest_size=32).hexdigest()

        self._last_hash = stored, hashed
        return hashed

    async def hash_on(self, execute: Execution, adopt: Callable[[Execution, str, Hash], Awaitable[None]]) -> Hash:
        """Return the hash of subjects; store the salt, where a cipher is used for the first time.

        Args:
            execute: executes a statement in a transaction.
            adopt: then hashes the subjects that later events are compared with.

        Raises:
            ConfigurationError: as ``hash_in`` raises it.
        """
        if self.is_on and not execute.dialect.is_server:
            await execute(execute.dialect.lock("", None))  # before it reads
        hashed = self.hash_in(await execute(self.salt_query))
        if hashed is not None:
            return hashed
        new = self.encrypt(_SALT_MARK + secrets.token_hex(32))
        await execute(execute.dialect.insert_if_absent(SALTS, component=self.component, name=self.name, salt=new))
        # FOR UPDATE, because the snapshot of a caller's transaction may be older than the row of another process.
        rows = await execute(self.salt_query.with_for_update())
        hashed = self.hash_in(rows) or unhashed
        # Of several processes, the one whose salt was stored does this.
        if rows[0][0] == new:
            await adopt(execute, self.name, hashed)
        return hashed


def unhashed(subject: str) -> str:
    """Return the subject, in a store without a cipher."""
    return subject


def is_hashed(subject: str) -> bool:
    """Return whether a stored subject is a hash."""
    return subject.startswith(_HASH_MARK)


class UnreadableRows:
    """Rows that could not be decrypted, and that a relay or worker passes over, so that the others go on.

    Args:
        cipher: the cipher of the store.
    """

    def __init__(self, cipher: RowCipher) -> None:
        self._cipher = cipher
        self.name: str = cipher.name
        self._problems: dict[int, str] = {}
        self._since = 0.0

    @property
    def are_too_many(self) -> bool:
        """Whether the work should end."""
        return len(self._problems) >= _MOST_UNREADABLE

    def begin(self, now: float) -> None:
        """Begin a round of work.

        Args:
            now: seconds of a clock that never goes back.
        """
        if not self._problems or now - self._since > _FORGOTTEN_AFTER:
            self._problems.clear()
            self._since = now

    def read(self, row: Any, stored: AnyStr) -> AnyStr | None:
        """Return what a row has stored, decrypted; None if that fails, which is logged once."""
        try:
            return self._cipher.decrypt(stored, row.event_id)
        except ConfigurationError as error:
            self._problems[row.seq] = str(error)
            logger = logging.getLogger(f"followup.{self._cipher.component}")
            logger.error("%s: %s; it stays as it is", self.name, error)  # noqa: TRY400 - the traceback may show data
            return None

    def are_not(self, seq: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
        """Return the condition that a row is none of these."""
        return seq.not_in([*self._problems]) if self._problems else sa.true()

    def check(self) -> None:
        """Raise the problem of the first row, if there is any.

        Raises:
            ConfigurationError: a row could not be decrypted; the message names its event.
        """
        if self._problems:
            first, *others = self._problems.values()
            raise ConfigurationError(f"{first}; {len(others)} others cannot, either" if others else first)
