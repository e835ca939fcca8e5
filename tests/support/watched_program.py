"""A program of a clinic that uses every part of the SDK, with marks in all data; it watches connections and logs.

It prints the addresses that it connected to and the hosts that it looked up, and writes everything that is logged into
the file ``all.log``.
"""

import contextlib
import json
import logging
import sys
import time
from operator import attrgetter
from pathlib import Path
from typing import Any

from contract.specification import OPERATIONS
from sqlalchemy import create_engine
from telemetry.planting import DAY, DOCUMENT, ECHO, MARK, PHONE, arguments_of

from followup import FollowUp, FollowUpError, PatientInput, inbound
from followup.cli import main
from followup.imports import Import
from followup.inbox import Inbox, Received
from followup.outbox import Outbox
from support.webhook_events import SECRET, body_of, headers_of

DATABASE = "sqlite:///clinic.db"
PATIENT: PatientInput = {"full_name": ECHO, "phone": PHONE, "dni": DOCUMENT, "date_of_birth": DAY}
MAP = """
kind = "patients"
zone = "UTC"
country = "AR"
max_rejected = 100
[columns]
"patient.external_id" = "Id"
"patient.phone" = "Phone"
"patient.full_name" = "Name"
"""
addresses: set[str] = set()


def watch(event: str, arguments: Any) -> None:
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo"):
        addresses.add(str(arguments[0] if event == "socket.getaddrinfo" else arguments[1][0]))


def call_everything(client: FollowUp) -> None:
    for each in OPERATIONS:
        arguments, keywords = arguments_of(each)
        with contextlib.suppress(FollowUpError):  # the marked ids do not exist
            attrgetter(each.name)(client)(*arguments, **keywords)


def use_the_stores(client: FollowUp) -> None:
    outbox, inbox, engine = Outbox(DATABASE), Inbox(DATABASE, secret=SECRET), create_engine(DATABASE)
    outbox.create_tables()
    inbox.create_tables()
    Path("patients.csv").write_text(f"Id,Phone,Name\n{MARK}-1,{PHONE},{ECHO}\n{MARK}-2,12,{ECHO}\n", encoding="utf-8")
    Path("patients.toml").write_text(MAP, encoding="utf-8")
    Import.load("patients.toml").run("patients.csv", DATABASE)
    with engine.begin() as connection:
        outbox.record(connection, inbound.patient_upserted(patient=PATIENT))
        outbox.record(connection, inbound.patient_upserted(patient={"phone": MARK}))  # the service rejects it
    outbox.drain(client)

    @inbox.otherwise
    def fail(_: Received) -> None:
        raise ValueError(ECHO)

    body = body_of(data={"patient": {"fullName": ECHO, "phone": PHONE}})
    inbox.receive(body, headers_of(body))
    inbox.receive(body + ECHO.encode(), headers_of(body))
    inbox.receive(body, headers_of(body, sent=time.time() - 3600))
    inbox.drain()
    outbox.erase(phone=PHONE, waiting=True)
    inbox.erase(phone=PHONE, waiting=True)
    client.webhook_endpoints.create(url="https://clinic.example/webhooks", enabled_events=["*"])
    for endpoint in client.webhook_endpoints.list():
        inbox.catch_up(client, webhook_endpoint=endpoint.id)


if __name__ == "__main__":
    sys.addaudithook(watch)
    logging.basicConfig(level=logging.DEBUG, filename="all.log")
    with FollowUp() as client:
        call_everything(client)
        use_the_stores(client)
    sys.argv = ["followup", "doctor", "--json"]
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(None):
        main()
    print(json.dumps(sorted(addresses)))
