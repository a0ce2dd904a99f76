"""`provision report` in a real browser (headless Chromium): on a phone, with everything in the folder."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from parts.cli import call
from parts.records import ENVIRONMENT, put_published, store_here

BROWSER = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None)
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed here (`.ci/install` brings it)"),
]
PAGE = f"environments/{str(ENVIRONMENT).replace('/', '-')}.html"


def browse(*options: str, url: str) -> str:
    """What the browser prints about this page."""
    assert BROWSER is not None
    argv = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *options, url]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a site with one published environment."""
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROVISION_ROOT", str(folder / "root"))
        put_published(store_here())
        assert call("report", str(folder / "out")) == 0
    return folder / "out"


@pytest.mark.parametrize("page", ["index.html", PAGE])
def test_no_page_is_wider_than_a_phone(report: Path, page: str, tmp_path: Path) -> None:
    measure = tmp_path / "measure.html"
    measure.write_text(
        f'<iframe id="f" src="{(report / page).as_uri()}" style="width:320px;height:800px;border:0"></iframe>'
        "<script>f.onload = () => { document.title = 'width ' + f.contentDocument.documentElement.scrollWidth }</script>"
    )
    shown = browse("--allow-file-access-from-files", "--virtual-time-budget=3000", "--dump-dom", url=measure.as_uri())
    found = re.search(r"<title>width (\d+)</title>", shown)
    assert found is not None, shown[:500]
    assert int(found[1]) <= 320


def test_the_link_of_the_first_page_leads_to_the_environment(report: Path) -> None:
    shown = browse("--dump-dom", url=(report / "index.html").as_uri())
    (link,) = set(re.findall(r'href="(environments/[^"]+)"', shown))
    assert link == PAGE
    assert "What was checked" in browse("--dump-dom", url=(report / link).as_uri())
