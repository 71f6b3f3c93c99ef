"""The review in a browser, as a process, and keys and texts that must not act on its pages."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.commands import process

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'-alert(1)-'",
    "{{ 7 * 7 }}{% raw %}",
    "\u202egnp.exe\u202d",
    "\u2066isolate",
    "a\r\nb\tc",
    "&amp;&lt;",
    "שלום",
    "javascript:alert(1)",
    "/../..//evil.example/?a=b&c#d",
    "</textarea></title></style><svg onload=alert(1)>",
    "",
]


@contextmanager
def serving(url: str, *args: str) -> Iterator[str]:
    """Run the command, yield the address that it prints, and interrupt it; it has to end cleanly."""
    started = process("review", *args, "--no-browser", url=url)
    try:
        assert started.stdout is not None
        yield started.stdout.readline().strip()
        started.send_signal(signal.SIGINT)
        out, messages = started.communicate(timeout=20)
        assert (started.returncode, out) == (0, ""), messages
        assert messages.endswith("ended\n")
        assert "Traceback" not in messages
    finally:
        started.kill()
        started.communicate()
