"""A server-side cursor that is closed in the client even if its CLOSE fails."""

from __future__ import annotations

from typing import Any

import psycopg


class ServerCursor(psycopg.ServerCursor[tuple[Any, ...]]):
    """A cursor that is closed even if its CLOSE is cancelled; that of psycopg stays open, and warns."""

    def close(self) -> None:
        """Close the cursor; raise the driver's errors."""
        try:
            super().close()
        except psycopg.Error:
            # The transaction has failed, and with it the server's cursor: this call sends nothing.
            super().close()
            raise
