"""A server-side cursor that is closed in the client even if its CLOSE fails."""

from __future__ import annotations

from typing import Any

import psycopg


class ServerCursor(psycopg.ServerCursor[tuple[Any, ...]]):
    """A cursor of psycopg, which leaves it open and warns if a call is cancelled within CLOSE."""

    def close(self) -> None:
        """Close the cursor; raise the driver's errors."""
        try:
            super().close()
        except psycopg.Error:
            # The transaction has failed, and with it the server's cursor: this call sends nothing.
            super().close()
            raise
