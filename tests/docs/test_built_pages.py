"""The pages as they are built: links lead somewhere, pictures are there, a browser shows each page at the widths of a screen and a phone.

`tox -e docs` builds them and says where they are, by NUMBASCAN_HTML.
"""

import os
import shutil
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

HTML = os.environ.get("NUMBASCAN_HTML")
WIDTHS = (1280, 400)  # a laptop, a phone
GENERATED = {"genindex.html", "py-modindex.html", "search.html"}  # Sphinx's own

pytestmark = pytest.mark.skipif(HTML is None, reason="the pages are not built: tox -e docs")


class Page(HTMLParser):
    """The places, links and pictures of a page."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.pictures, self.sources = set(), [], [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag == "img":
            self.pictures.append(given)
        if tag in ("img", "script") and given.get("src"):
            self.sources.append(given["src"])


def pages():
    return sorted(Path(HTML).rglob("*.html"))


@cache
def page(path):
    return Page(path)


def is_internal(address):
    return not urlsplit(address).scheme and not address.startswith("//")


def target(path, address):
    """The file that an address of a page means."""
    name = unquote(urlsplit(address).path)
    return (path.parent / name).resolve() if name else path.resolve()


def test_all_pages_are_there():
    assert {"index.html", "api.html", "errors.html", "gallery/index.html", "guide/first_steps.html"} <= {
        path.relative_to(HTML).as_posix() for path in pages()
    }
    assert len(pages()) > 100


def test_every_internal_link_leads_somewhere():
    lost = []
    for path in pages():
        for link in filter(is_internal, page(path).links):
            file, place = target(path, link), unquote(urlsplit(link).fragment)
            if not file.exists() or (place and file.suffix == ".html" and place not in page(file).ids):
                lost.append((path.relative_to(HTML).as_posix(), link))
    assert lost == []


def test_every_picture_and_script_is_there():
    lost = [
        (path.name, source) for path in pages() for source in filter(is_internal, page(path).sources) if not target(path, source).exists()
    ]
    assert lost == []


def test_every_picture_says_what_it_shows():
    silent = [(path.name, picture) for path in pages() for picture in page(path).pictures if "alt" not in picture]
    assert silent == []  # alt="" is for those whose title stands beside them


@pytest.fixture(scope="module")
def browser():
    """A Chromium without a window: the system's, or the one that `playwright install chromium` has brought."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        names = ("chromium", "chromium-browser", "google-chrome")
        path = next(filter(None, map(shutil.which, names)), started.chromium.executable_path)
        if not Path(path).exists():
            pytest.skip("there is no Chromium: apt-get install chromium, or playwright install chromium")
        with started.chromium.launch(executable_path=path, args=["--no-sandbox"]) as chromium:
            yield chromium


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_browser_shows_every_page(browser, width, scheme):
    shown = pages() if scheme == "light" else [Path(HTML) / "index.html"]
    sheet = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    faults = []
    sheet.on("pageerror", lambda error: faults.append(f"script: {error}"))
    sheet.route("http*://**", lambda route: route.abort())  # nothing beyond the pages is asked for: MathJax, where there is a network
    sheet.on("requestfailed", lambda request: faults.append(f"missing: {request.url}") if request.url.startswith("file:") else None)
    found = []
    for path in shown:
        sheet.goto(path.as_uri())
        broken = sheet.evaluate(
            "[...document.images].filter(i => i.loading != 'lazy' && i.offsetParent && !(i.complete && i.naturalWidth)).map(i => i.src)"
        )
        faults += [f"picture: {source}" for source in broken]
        if sheet.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
            faults.append("wider than the screen")
        found += [(path.relative_to(HTML).as_posix(), fault) for fault in faults]
        faults.clear()
    sheet.close()
    assert found == []
