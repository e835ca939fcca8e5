"""The state of imports: a row for each object, with its start and status, and salted hashes of all else.

A hash is keyed with a salt that is random for each import, so that two databases have different hashes of one phone.
The external id of an appointment has to be known again, because an appointment that is missing in a file may have to be
cancelled. It is stored under a mask of the same salt, so that it cannot be read in a copy of this table alone. An
outbox with a cipher encrypts the salt, so that a copy of all tables is not enough either.

The package ``imports`` reads and writes these tables. They are here because an outbox erases a person in them, too.
"""

import hashlib

import sqlalchemy as sa

from followup._store.cipher import RowCipher
from followup._store.dialects import LONG_BYTES, exact_text, short_bytes
from followup._store.execution import has_table
from followup._store.person import Person
from followup._store.schema import LONGEST_TEXT, Schema

_HASH_BYTES = 16

IMPORTS = sa.Table(
    "followup_imports",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("outbox", exact_text(LONGEST_TEXT), nullable=False),
    sa.Column("name", exact_text(LONGEST_TEXT), nullable=False),
    sa.Column("salt", LONG_BYTES, nullable=False),
    # How many runs have recorded anything: a run that began before another one ended notices it by this number.
    sa.Column("runs", sa.Integer, nullable=False),
    sa.UniqueConstraint("outbox", "name", name="followup_imports_name"),
)

_HASH = short_bytes(_HASH_BYTES)

# The attributes of Known, in their order.
OBJECTS = sa.Table(
    "followup_imported",
    sa.MetaData(),
    sa.Column("import_id", sa.Integer, primary_key=True),
    sa.Column("key", _HASH, primary_key=True),
    sa.Column("phone", _HASH),
    sa.Column("external_id", _HASH),
    sa.Column("dni", _HASH),
    sa.Column("name", LONG_BYTES),
    sa.Column("patient", _HASH),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("at", sa.BigInteger),
    sa.Column("number", LONG_BYTES),
)
sa.Index("followup_imported_by_phone", OBJECTS.c.import_id, OBJECTS.c.phone)
sa.Index("followup_imported_by_dni", OBJECTS.c.import_id, OBJECTS.c.dni)

SCHEMA = Schema("import", 1, (IMPORTS, OBJECTS))


def salted_hash(salt: bytes, *parts: str) -> bytes:
    """Return the salted hash of texts."""
    text = "\0".join(parts).encode(errors="surrogatepass")
    return hashlib.blake2b(text, digest_size=_HASH_BYTES, key=salt).digest()


def forget(connection: sa.Connection, outbox: str, person: Person, cipher: RowCipher) -> None:
    """Erase the hashes about a person in the state of all imports into an outbox.

    The key, the status and the start of an object remain, so that a file that still has the person tells the service
    about new starts of known appointments, and nothing else.
    """
    if not has_table(connection, OBJECTS):
        return
    for each in connection.execute(sa.select(IMPORTS).where(IMPORTS.c.outbox == outbox)).all():
        salt = cipher.decrypt(each.salt, each.name)
        hashes = {
            name: [salted_hash(salt, name, value) for value in person.values_of(name)]
            for name in ("phone", "external_id", "dni")
        }
        hashes["key"] = [salted_hash(salt, "appointments", number) for number in person.appointments()]
        is_theirs = sa.or_(*(OBJECTS.c[name].in_(found) for name, found in hashes.items()))
        nothing = dict.fromkeys(("phone", "external_id", "dni", "name", "patient", "number"))
        connection.execute(sa.update(OBJECTS).where(OBJECTS.c.import_id == each.id, is_theirs).values(nothing))


def reencrypt_salts(connection: sa.Connection, outbox: str, cipher: RowCipher) -> None:
    """Rewrite the salts of all imports into an outbox under its present cipher."""
    if has_table(connection, IMPORTS):
        for each in connection.execute(sa.select(IMPORTS).where(IMPORTS.c.outbox == outbox)).all():
            salt = cipher.encrypt(cipher.decrypt(each.salt, each.name))
            connection.execute(sa.update(IMPORTS).where(IMPORTS.c.id == each.id).values(salt=salt))
