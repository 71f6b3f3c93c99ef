"""The lines for Django of the page From JavaScript, as an application of one table."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.docs.page import ROOT
from textsim_db.db import schema

pytestmark = pytest.mark.more

PAGE = ROOT / "docs" / "how-to" / "from-javascript.md"
SETTINGS = """
INSTALLED_APPS = ["desk"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {{"default": {{"ENGINE": "django.db.backends.postgresql", **{0}}}}}
"""
USE = """
import django
django.setup()
from desk.intake import file_ticket
from desk.models import Ticket

first = file_ticket("The app crashes when I upload a photo from my phone")
assert file_ticket("App crashes when I upload a photo from my phone!") == first
assert file_ticket("How do I change my password?") != first
(like,) = Ticket.objects.like("the app crashes when I upload a photo of my phone")
assert like == first and like.similarity > 0.6
assert Ticket.objects.count() == 2
"""


def test_an_application_finds_tickets_and_keeps_them_unique(
    empty_database_url: str, tmp_path: Path
) -> None:
    pytest.importorskip("django")
    blocks = re.findall(
        r"^```python\n# (desk/\S+)\n(.*?)^```", PAGE.read_text("utf-8"), re.S | re.M
    )
    assert len(blocks) == 3
    migrations = tmp_path / "desk" / "migrations"
    migrations.mkdir(parents=True)
    for name, code in blocks:
        (tmp_path / name).write_text(code, "utf-8")
    (migrations / "textsim.sql").write_text(schema.script(has_transaction=False), "utf-8")
    for package in (migrations, migrations.parent):
        (package / "__init__.py").touch()
    address = conninfo_to_dict(empty_database_url)
    names = {
        "dbname": "NAME",
        "user": "USER",
        "password": "PASSWORD",
        "host": "HOST",
        "port": "PORT",
    }
    database = {names[key]: str(value) for key, value in address.items() if key in names}
    (tmp_path / "settings.py").write_text(SETTINGS.format(database), "utf-8")

    later = (migrations / "0002_textsim.py").rename(tmp_path / "0002_textsim.py")
    run(tmp_path, "-m", "django", "makemigrations", "desk")
    later.rename(migrations / later.name)
    for migration in (), ("desk", "0001"), ():
        run(tmp_path, "-m", "django", "migrate", *migration)
    run(tmp_path, "-c", USE)


def run(folder: Path, *arguments: str) -> None:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "settings"}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
