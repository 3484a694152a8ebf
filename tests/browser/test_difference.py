"""The page of `mercer differ` in a real browser, wide and narrow, light and dark."""

import shutil

import numpy as np
import pandas as pd
import pytest

from mercer import two_sample_test
from mercer.explore.report.difference import (
    WitnessField,
    leading_pairs,
    space_figure,
    witness_figure,
    write_difference,
)

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("bokeh", reason="bokeh is not installed: mercer[report]")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
EVIL = '<img src=x onerror="window.owned = true">'
DRAWN = "window.Bokeh && Bokeh.index.roots.length && Bokeh.index.roots.every(v => v.has_finished())"


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)

    def month(n, rise):
        return pd.DataFrame(
            {
                "age": rng.normal(40, 10, n),
                "income, before tax and after everything else": rng.lognormal(10, 0.4, n) * rise,
                "hours": rng.gamma(4, 10, n),
                "town": rng.choice(["Rome", EVIL], n),
            }
        )

    return two_sample_test(month(150, 1.0), month(120, 1.8), n_permutations=99, random_state=0)


@pytest.fixture(scope="module")
def path(result, tmp_path_factory):
    path = tmp_path_factory.mktemp("differ") / "differ.html"
    write_difference(result, path, names=("january.csv", "february.csv"))
    return path


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1366, 390])
def test_it_draws_fits_and_fetches_nothing(width, scheme, path, browser):
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    problems = []
    page.on(
        "console", lambda m: problems.append(m.text) if m.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "request",
        lambda r: None if r.url.startswith(("file:", "data:", "blob:")) else problems.append(r.url),
    )
    page.goto(f"file://{path}")
    page.wait_for_function(DRAWN, timeout=60_000)
    assert "The files differ" in page.locator("h2").inner_text()
    assert page.locator("main article").count() == 4  # the space, and three pairs of columns
    # Tables scroll in themselves; the page does not move sideways.
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    # What stands above a picture can be read as a whole.
    assert page.evaluate(
        "[...document.querySelectorAll('main .hint')].every(p => p.scrollWidth <= p.clientWidth)"
    )
    assert page.evaluate("window.owned") is None
    assert problems == []
    page.close()


def test_pictures_let_the_page_shine_through(result):
    """They are not white boxes on a dark page; a click on a name hides its rows."""
    points = [result.samples.some_points(which, 50) for which in (0, 1)]
    names = ("january.csv", "february.csv")
    field = WitnessField.of(result, points, leading_pairs(result, points)[0])
    for panel in (space_figure(result, points, names), witness_figure(field, points, names, 1.0)):
        assert panel.background_fill_color is None
        assert panel.border_fill_color is None
        assert panel.legend[0].click_policy == "hide"
        assert panel.above == [panel.legend[0]]  # where it hides no point
