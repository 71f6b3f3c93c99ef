"""POST /listings answers 409, with the id of the standing listing, if the text is nearly the same."""

import re

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import textsim_db as ts

db = ts.connect()  # TEXTSIM_DATABASE_URL, or the embedded PostgreSQL
app = FastAPI()


class Base(DeclarativeBase): ...


class Listing(Base):
    __tablename__ = "listing"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    body: Mapped[str]


class NewListing(BaseModel):
    title: str
    body: str


@app.post("/listings", status_code=201)
def create_listing(new: NewListing) -> dict[str, int]:
    with Session(db.engine) as session:
        listing = Listing(**new.model_dump())
        session.add(listing)
        session.commit()
        return {"id": listing.id}


@app.exception_handler(IntegrityError)
def answer_conflict(request: Request, error: IntegrityError) -> JSONResponse:
    constraint, detail = report_of(error)
    standing = re.match(r"Key \((\d+)\) has similarity ([\d.]+)", detail or "")
    if constraint != "listings" or not standing:
        raise error
    answer = {"standing": int(standing[1]), "similarity": round(float(standing[2]), 3)}
    return JSONResponse(answer, status_code=409)


def report_of(error: IntegrityError) -> tuple[str | None, str | None]:
    """Return the constraint and the detail: psycopg has them in diag, asyncpg in the error itself."""
    report = getattr(error.orig, "diag", None)
    if report is not None:
        return report.constraint_name, report.message_detail
    cause = getattr(error.orig, "__cause__", None)  # SQLAlchemy wraps the error of asyncpg
    return getattr(cause, "constraint_name", None), getattr(cause, "detail", None)
