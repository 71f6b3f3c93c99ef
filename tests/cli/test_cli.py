"""The command line as a user meets it, on a real server."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.one_server
