"""A correct integration of a web application: FastAPI, the ORM of SQLAlchemy, the outbox and the inbox."""

from datetime import datetime
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from sqlalchemy import create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from starlette.routing import Route

from followup import FollowUp
from followup.inbox import Inbox, Received
from followup.outbox import Outbox
from followup_mockserver.simulation import Booking
from support.integrations.stores import Recording


class Base(DeclarativeBase): ...


class Slot(Base):
    __tablename__ = "slots"
    external_id: Mapped[str] = mapped_column(primary_key=True)
    phone: Mapped[str]
    full_name: Mapped[str]
    start_at: Mapped[str | None]
    status: Mapped[str | None]


class Work(Base):
    __tablename__ = "work"
    number: Mapped[int] = mapped_column(primary_key=True)
    event_id: Mapped[str]


class WebApplication(Recording):
    """Everything in one SQLite file: the tables of the ORM, the outbox and the inbox."""

    def start(self, client: FollowUp, folder: Path) -> None:
        self.client = client
        self.engine = create_engine(f"sqlite:///{folder / 'clinic.db'}")
        self.outbox = Outbox(self.engine)
        self.inbox = Inbox(self.engine, secret=self.secret)
        Base.metadata.create_all(self.engine)
        self.outbox.create_tables()
        self.inbox.create_tables()
        self.inbox.otherwise(self.handle)
        self.app = FastAPI()
        self.app.router.routes.append(Route("/webhooks", self.inbox.asgi_app))

    def receiver(self) -> Any:
        return self.app

    def handle(self, received: Received) -> None:
        with received.session() as session:
            session.add(Work(event_id=received.event.id))
            appointment = received.event.appointment
            slot = appointment and session.get(Slot, appointment.external_id)
            if appointment is not None and slot is not None and not received.is_stale:
                slot.status = appointment.status

    def commit(self, booking: Booking, start_at: datetime | None, event: Any) -> None:
        values = {"phone": booking.phone, "full_name": booking.full_name}
        with Session(self.engine) as session, session.begin():
            session.merge(Slot(external_id=booking.external_id, start_at=start_at and start_at.isoformat(), **values))
            self.outbox.record(session, event)

    def work(self) -> None:
        self.outbox.drain(self.client)
        self.inbox.drain()

    def bookings(self) -> dict[str, datetime | None]:
        with Session(self.engine) as session:
            return {
                each.external_id: each.start_at and datetime.fromisoformat(each.start_at)
                for each in session.scalars(select(Slot))
            }

    def handled(self) -> list[str]:
        with Session(self.engine) as session:
            return list(session.scalars(select(Work.event_id)))
