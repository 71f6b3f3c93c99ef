"""POST /listings answers 409, with the id of the standing listing, if the text is nearly the same."""

import re
from typing import Any

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
    report: Any = getattr(error.orig, "diag", None)
    standing = re.match(r"Key \((\d+)\) has similarity ([\d.]+)", report.message_detail or "")
    if report.constraint_name != "listings" or not standing:
        raise error
    answer = {"standing": int(standing[1]), "similarity": round(float(standing[2]), 3)}
    return JSONResponse(answer, status_code=409)
