"""What the outbox and the inbox share: a database, its clock, locks, leases and the versions of their tables.

The tables live in the user's own database, because only there can an event commit together with the user's own write.
SQLAlchemy Core is the database layer, and SQLite, PostgreSQL and MySQL (or MariaDB) are the databases. These rules hold
for all of them:

- Every time in the tables is a whole number of milliseconds since the epoch, read from one clock (``database``). By
  default that is the clock of the database, because the clocks of two machines differ.
- A transaction that claims rows takes a lock first (``take_lock``), in a statement of its own. At READ COMMITTED a
  statement sees what was committed before it began, so the statements after the lock see all that its previous holder
  has done.
- A claimed row has a lease (``leases``): a token and an end. Only the holder of the token may settle the row, and after
  the end another process may claim it.
"""
