"""One browser for all pages: Debian's chromium, without a network."""

import contextlib
import shutil

import pytest

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(autouse=True, scope="module")
def quick(few_trees):
    """Pages are looked at; a hundred rounds of boosting show no more."""


@pytest.fixture
def new_page(browser):
    """Opens an address and collects what goes wrong, requests to the outside included.

    A test passes only if there was nothing.
    """
    with pages_of(browser) as opened:
        yield opened


@pytest.fixture(scope="module")
def lasting_page(browser):
    """The same for pages that several tests look at, one after the other."""
    with pages_of(browser) as opened:
        yield opened


@contextlib.contextmanager
def pages_of(browser):
    pages = []

    def opened(address, size=(1366, 768), scheme="light", timeout=60_000):
        viewport = {"width": size[0], "height": size[1]}
        page = browser.new_page(viewport=viewport, color_scheme=scheme)
        pages.append(page)
        page.problems = []
        page.on(
            "console",
            lambda m: page.problems.append(m.text) if m.type in ("error", "warning") else None,
        )
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        allowed = ("file:" if address.startswith("file:") else address.split("?")[0],)
        allowed += ("data:", "blob:")
        page.on(
            "request",
            lambda r: None if r.url.startswith(allowed) else page.problems.append(r.url),
        )
        page.set_default_timeout(timeout)
        page.goto(address)
        return page

    yield opened
    for page in pages:
        problems = page.problems
        page.close()
        assert problems == []
