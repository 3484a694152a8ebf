"""The page of `mercer differ` in a real browser, wide and narrow, light and dark."""

import numpy as np
import pandas as pd
import pytest

from mercer import two_sample_test
from mercer.explore.report.difference import (
    _leading_pairs,
    _space_figure,
    _witness_figure,
    _WitnessField,
    write_difference,
)

pytest.importorskip("bokeh", reason="bokeh is not installed: mercer[report]")

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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1366, 390])
def test_it_draws_fits_and_fetches_nothing(width, scheme, path, new_page):
    page = new_page(f"file://{path}", (width, 800), scheme)
    page.wait_for_function(DRAWN)
    assert "The files differ" in page.locator("h2").inner_text()
    assert page.locator("main article").count() == 4  # the space, and three pairs of columns
    # Tables scroll in themselves; the page does not move sideways.
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    # What stands above a picture can be read as a whole.
    assert page.evaluate(
        "[...document.querySelectorAll('main .hint')].every(p => p.scrollWidth <= p.clientWidth)"
    )
    assert page.evaluate("window.owned") is None


def test_pictures_let_the_page_shine_through(result):
    """They are not white boxes on a dark page; a click on a name hides its rows."""
    points = [result.samples.some_points(which, 50) for which in (0, 1)]
    names = ("january.csv", "february.csv")
    field = _WitnessField.of(result, points, _leading_pairs(result, points)[0])
    for panel in (_space_figure(result, points, names), _witness_figure(field, points, names, 1.0)):
        assert panel.background_fill_color is None
        assert panel.border_fill_color is None
        assert panel.legend[0].click_policy == "hide"
        assert panel.above == [panel.legend[0]]  # where it hides no point
