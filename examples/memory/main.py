"""POST /memories keeps a text once for each tenant, and counts how often it comes again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Annotated

from fastapi import FastAPI, Header, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from sqlalchemy import make_url, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

import textsim_db as ts

db = ts.connect()  # TEXTSIM_DATABASE_URL, or the embedded PostgreSQL
engine = create_async_engine(make_url(db.url).set(drivername="postgresql+asyncpg"))
new_session = async_sessionmaker(engine, expire_on_commit=False)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    yield
    await engine.dispose()
    db.close()


app = FastAPI(lifespan=lifespan)


@app.exception_handler(DBAPIError)
async def refuse(request: Request, error: DBAPIError) -> JSONResponse:
    """Answer 422 to a value that is no text or number of PostgreSQL, such as one with NUL."""
    if not str(getattr(error.orig, "sqlstate", "")).startswith(
        "22"
    ):  # the class of data exceptions
        raise error
    return JSONResponse({"detail": "a value is too long, or has a character that is no text"}, 422)


class Base(DeclarativeBase): ...


class Memory(Base):
    __tablename__ = "memory"
    id: Mapped[int] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    body: Mapped[str]
    seen: Mapped[int]
    last_seen: Mapped[datetime]
    created_at: Mapped[datetime]


class NewMemory(BaseModel):
    body: str
    force: bool = False  # keep it beside the memory that it matches


class KeptMemory(BaseModel):
    id: int
    body: str
    seen: int
    last_seen: datetime


# In your application, the tenant of the user who is logged in.
Tenant = Annotated[str, Header(alias="X-Tenant")]

REMEMBER = select(Memory).from_statement(text("SELECT * FROM remember(:tenant, :body, :force)"))
FIND = select(Memory).from_statement(
    text(
        "SELECT m.* FROM textsim.matches('memory', :like, scope => :tenant) s "
        "JOIN memory m ON m.id = s.key::bigint ORDER BY s.similarity DESC, m.id"
    )
)
FORGET = text(
    "DELETE FROM memory WHERE tenant = :tenant AND id = :id RETURNING textsim.remove('memory', id::text)"
)


@app.post("/memories", response_model=KeptMemory)
async def remember(new: NewMemory, tenant: Tenant, response: Response) -> Memory:
    async with new_session.begin() as session:
        values = {"tenant": tenant, **new.model_dump()}
        memory: Memory = (await session.scalars(REMEMBER, values)).one()
    response.status_code = 201 if memory.seen == 1 else 200
    return memory


@app.get("/memories", response_model=list[KeptMemory])
async def find(like: str, tenant: Tenant) -> list[Memory]:
    async with new_session() as session:
        return list(await session.scalars(FIND, {"tenant": tenant, "like": like}))


@app.delete("/memories/{memory_id}", status_code=204)
async def forget(memory_id: int, tenant: Tenant) -> None:
    async with new_session.begin() as session:
        removed = await session.execute(FORGET, {"tenant": tenant, "id": memory_id})
        if removed.first() is None:
            raise HTTPException(404, "this tenant has no such memory")
