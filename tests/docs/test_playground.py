"""The playground in Chromium: what it shows, what it answers to bad input, and equal rows."""

from __future__ import annotations

import base64
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.docs.page import ROOT
from tests.support.browsers import (
    CHROMIUM,
    DRIVER,
    PAGE_SECONDS,
    chromium,
    open_playground,
    serving,
)
from tests.support.connections import Connection
from tests.support.golden import TEXTS
from tests.support.random_texts import random_text

pytest.importorskip("mkdocs", reason="the playground is built by MkDocs")
from scripts import playground

pytestmark = pytest.mark.more

CORPORA = """
SELECT textsim.create_corpus('words', 'word:2', threshold => 0.5, recall => 1);
SELECT textsim.create_corpus('characters', 'char:5', threshold => 0.5, passages => 4);
"""
ADD = "SELECT c.name, textsim.add(c.name, t.n::text, t.body) FROM {} t, textsim.corpus c"
ROWS = (
    """SELECT n, c.name, string_to_array(textsim.normal_form(body), ' ') AS words,
        textsim._shingles_of_form(textsim.normal_form(body), unit, shingle_length) AS shingles,
        s.signature, s.buckets
    FROM {} t, textsim.corpus c, textsim._sketched(c, textsim._form(c, body), NULL) s
    ORDER BY n, c.name""",
    """SELECT c.name, n, p.* FROM {} t, textsim.corpus c, textsim.candidates(c.name, body) p
    ORDER BY 1, 2, 3""",
    "SELECT c.name, p.* FROM textsim.corpus c, textsim.pairs(c.name) p ORDER BY 1, 2, 3",
    "SELECT c.name, p.* FROM textsim.corpus c, textsim.clusters(c.name) p ORDER BY 1, 2",
    "SELECT p.* FROM textsim.shared_passages('characters') p ORDER BY 1, 2, 3, 4, 5",
)
LIST = "(SELECT * FROM unnest({}::text[]) WITH ORDINALITY AS u (body, n))"
# The answer of a promise of a page: its value, or the message of its error.
CALL = """
const [name, args, done] = arguments;
import(`${location.origin}/playground/database.js`).then((database) => database[name](...args))
  .then((value) => done({ value }), (error) => done({ error: error.message }));
"""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    if not (CHROMIUM and DRIVER):
        pytest.skip("Chromium is not installed: apt install chromium-driver")
    if not (site / "playground" / "snapshot.bin").exists():
        pytest.skip("the site has no playground: npm is missing, or reaches no registry")

    with serving(site) as served:
        yield served


@pytest.fixture(scope="module")
def page(address: str) -> Iterator[webdriver.Chrome]:
    """The page, whose PostgreSQL has answered; only the last test changes what other tests use."""
    with chromium() as browser:
        browser.set_script_timeout(PAGE_SECONDS)
        open_playground(browser, address)
        yield browser


def wait(page: webdriver.Chrome, condition: Any) -> Any:
    waiting = WebDriverWait(page, PAGE_SECONDS, ignored_exceptions=[Exception])
    return waiting.until(lambda _: condition())


def text(page: webdriver.Chrome, selector: str) -> str:
    return page.find_element(By.CSS_SELECTOR, selector).text


def fill(page: webdriver.Chrome, name: str, value: str) -> WebElement:
    """Replace what a field has, as pasting does: keys of a keyboard cannot type every character."""
    field = page.find_element(By.ID, name)
    page.execute_script("arguments[0].value = arguments[1]", field, value)
    page.execute_script("arguments[0].dispatchEvent(new Event('input', {bubbles: true}))", field)
    return field


def run(page: webdriver.Chrome, name: str, *args: object) -> Any:
    answer = page.execute_async_script(CALL, name, args)
    assert "error" not in answer, answer
    return answer["value"]


def test_the_page_shows_the_way_of_texts_to_clusters(page: webdriver.Chrome) -> None:
    assert text(page, "#summary") == "6 texts: 4 candidates of 15 possible, 3 pairs, 1 cluster."
    assert "the council voted (also 2, 3)" in text(page, "#step-1")
    rows = [row.text for row in page.find_elements(By.CSS_SELECTOR, "#pair-table tbody tr")]
    assert rows[0] == "1 and 2 18 1.000 pair"
    assert [row.split()[-1] for row in rows].count("pair") == 3
    assert any(row.endswith("below the threshold") for row in rows)
    assert any(row.endswith("not compared") for row in rows)
    assert "3 texts, whose weakest pair has similarity 0.867" in text(page, "#cluster-list")
    page.find_element(By.CSS_SELECTOR, "#console button").click()
    wait(page, lambda: "0.875" in text(page, "#result"))
    fill(page, "typed", "One <two> three four\n\n  one TWO three four!  ")
    wait(page, lambda: text(page, "#summary").startswith("2 texts: 1 candidate of 1 possible"))
    assert "One <two> three" in text(page, "#cluster-list")
    entries = page.get_log("browser")  # type: ignore[no-untyped-call]
    assert [entry for entry in entries if entry["level"] == "SEVERE"] == []


def test_bad_input_is_answered(page: webdriver.Chrome) -> None:
    fill(page, "threshold", "7")
    wait(page, lambda: "threshold is '7'; expected above 0" in text(page, "#summary"))
    assert text(page, "#pair-table") == ""
    fill(page, "threshold", "")
    wait(page, lambda: "invalid input syntax" in text(page, "#summary"))
    fill(page, "threshold", "0.5")
    for typed, answer in {
        "\n \n": "0 texts",
        "…\n!": "2 texts: 0 candidates",
        "a b c d\x00": "invalid byte sequence",
        "word " * 10_000: "1 text: 0 candidates of 0 possible, 0 pairs, 0 clusters. Only the first",
        "\n".join(f"line {n}" for n in range(40)): "30 texts: 0 candidates of 435 possible",
    }.items():
        fill(page, "typed", typed)
        wait(page, lambda answer=answer: answer in text(page, "#summary"))


def test_the_table_stays_unique(page: webdriver.Chrome) -> None:
    def forms() -> list[WebElement]:
        return page.find_elements(By.CSS_SELECTOR, "form.note")

    forms()[-1].find_element(By.TAG_NAME, "button").click()
    wait(page, lambda: 'document "4" matches document "1"' in text(page, "[role=alert]"))
    assert len(forms()) == 4
    fill(page, "note-new", "The bakery opens at six")
    forms()[-1].find_element(By.TAG_NAME, "button").click()
    wait(page, lambda: len(forms()) == 5)
    assert page.switch_to.active_element.get_attribute("id") == "note-new"
    fill(page, "note-4", "The office closes at five on Fridays.").submit()
    wait(page, lambda: 'document "4" matches document "2"' in text(page, "[role=alert]"))
    forms()[1].find_elements(By.TAG_NAME, "button")[1].click()
    wait(page, lambda: len(forms()) == 4)
    fill(page, "note-4", "The office closes at five on Fridays.").submit()
    wait(page, lambda: not page.find_elements(By.CSS_SELECTOR, "[role=alert]"))
    (row,) = run(page, "query", "SELECT body FROM note WHERE id = 4")
    assert row == {"body": "The office closes at five on Fridays."}


def test_any_statement_runs_and_leaves_no_transaction_open(page: webdriver.Chrome) -> None:
    fill(page, "statement", "SELECT textsim.normal_form('A b, c!')").submit()
    wait(page, lambda: "a b c" in text(page, "#result"))
    fill(page, "statement", "BEGIN; DROP TABLE note; SELECT 1 / 0").submit()
    wait(page, lambda: text(page, "#result") == "division by zero")
    fill(page, "statement", "SELECT count(*) > 2 AS notes, NULL AS nothing FROM note").submit()
    wait(page, lambda: "notes nothing\ntrue NULL" in text(page, "#result"))


def test_the_page_fits_a_phone_and_its_fields_have_names(page: webdriver.Chrome) -> None:
    metrics = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    assert page.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    fields = page.find_elements(
        By.CSS_SELECTOR, "article :is(input, select, textarea, button, table)"
    )
    assert len(fields) > 15
    assert [field.get_attribute("outerHTML") for field in fields if not field.accessible_name] == []
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_docs_are_built_without_npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("docs", "scripts", "examples"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
    # In this folder -m finds no package of the checkout, and the environment has textsim_db.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert "the site has no playground: npm" in built.stderr
    assert "built without npm" in (tmp_path / "site" / "playground.html").read_text("utf-8")


def test_a_package_with_another_hash_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(playground.LOCK.parent, tmp_path / "example")
    lock = tmp_path / "example" / playground.LOCK.name
    integrity = re.search(r'sha512-[^"]+', lock.read_text("utf-8"))
    assert integrity
    other = "sha512-" + base64.b64encode(bytes(64)).decode()
    lock.write_text(lock.read_text("utf-8").replace(integrity[0], other), "utf-8")
    monkeypatch.setattr(playground, "LOCK", lock)
    try:
        with pytest.raises(SystemExit, match="another hash than in package-lock"):
            playground.install(tmp_path / "installed")
    except playground.LeftOut as reason:
        pytest.skip(str(reason))


def test_the_tab_has_the_rows_of_the_server(
    page: webdriver.Chrome, address: str, connection: Connection, rng: random.Random, seed: int
) -> None:
    open_playground(page, address)
    texts = [body for body, _ in TEXTS.values()]
    texts += [random_text(rng) for _ in range(180 - len(texts))]
    # Some are nearly the same as another.
    texts += [f"{body} {body[:9]}" for body in rng.sample(texts, 20)]
    connection.execute(CORPORA.encode())
    run(page, "query", "SELECT textsim.drop_corpus(name) FROM textsim.corpus WHERE name = 'texts'")
    run(page, "run", "DROP TABLE note; SELECT textsim.drop_corpus('notes');" + CORPORA)
    for statement in (ADD, *ROWS):
        has_texts = "{}" in statement
        server = connection.execute(
            statement.format(LIST.format("%s")).encode(), [texts] if has_texts else None
        )
        names = [column.name for column in server.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in server.fetchall()]
        tab = run(page, "query", statement.format(LIST.format("$1")), [texts] if has_texts else [])
        assert len(rows) > 3
        assert tab == rows, f"--seed {seed}"
