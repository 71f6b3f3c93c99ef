"""POST /answers stores an answer of a model only if its quotations stand in letters of the user."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import psycopg
from fastapi import FastAPI, Header, HTTPException
from pydantic import BaseModel, Field
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import DBAPIError

import textsim_db as ts

db = ts.connect()  # TEXTSIM_DATABASE_URL, or the embedded PostgreSQL
engine = create_engine(make_url(db.url).set(drivername="postgresql+psycopg"))


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    yield
    engine.dispose()
    db.close()


app = FastAPI(lifespan=lifespan)


class Quotation(BaseModel):
    letter: int
    body: str


class Answer(BaseModel):
    body: str
    quotations: Annotated[list[Quotation], Field(min_length=1)]


# In your application, the user who is logged in.
User = Annotated[str, Header(alias="X-User")]

ADD_ANSWER = text("INSERT INTO answer (owner, body) VALUES (:owner, :body) RETURNING id")
ADD_QUOTATIONS = text(
    "INSERT INTO quotation (answer, letter, body) VALUES (:answer, :letter, :body)"
)
PLACES = text(
    'SELECT q.letter, q.body, q.start, q."end" FROM placed_quotation q JOIN answer a ON a.id = q.answer '
    "WHERE a.id = :id AND a.owner = :owner"
)


@app.post("/answers", status_code=201)
def add_answer(answer: Answer, user: User) -> int:
    try:
        with engine.begin() as connection:
            values = {"owner": user, "body": answer.body}
            answer_id: int = connection.execute(ADD_ANSWER, values).scalar_one()
            rows = [{"answer": answer_id, **each.model_dump()} for each in answer.quotations]
            connection.execute(ADD_QUOTATIONS, rows)
    except DBAPIError as error:
        # 22 and 23 are the classes of data exceptions and of violated constraints.
        if not isinstance(error.orig, psycopg.Error) or str(error.orig.sqlstate)[:2] not in (
            "22",
            "23",
        ):
            raise
        raise HTTPException(422, error.orig.diag.message_primary) from error
    return answer_id


@app.get("/answers/{answer_id}/quotations")
def quotations(answer_id: int, user: User) -> list[dict[str, Any]]:
    with engine.connect() as connection:
        rows = connection.execute(PLACES, {"id": answer_id, "owner": user})
        return [dict(row) for row in rows.mappings()]
