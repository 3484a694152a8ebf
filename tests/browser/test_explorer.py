"""The explorer in a real browser: sliders move points, keys work, and the data stay text."""

import numpy as np
import pandas as pd
import pytest

from mercer import RBF, Spectrum
from mercer.explore import explore

pytest.importorskip("bokeh", reason="bokeh is not installed: mercer[report]")

EVIL = '<script>window.owned = true</script><img src=x onerror="window.owned = true">'
POINTS = "Bokeh.documents[0].get_model_by_name('points')"
RESTS = "!document.querySelector('#status').classList.contains('busy')"


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    chosen = np.isin(y, (2, 4, 7))
    folder = tmp_path_factory.mktemp("saved")
    with explore(
        X[chosen] / 16, y[chosen], RBF(), image_shape=(8, 8), target_name="digit", folder=folder
    ) as running:
        yield running


@pytest.fixture
def opened(new_page):
    """Opens an explorer's page, and waits until everything has come to rest."""

    def open_page(explorer, size=(1366, 860), dark=False):
        page = new_page(explorer.url, size, "dark" if dark else "light")
        page.wait_for_selector("html[data-ready=true]")
        page.wait_for_function(RESTS)
        page.wait_for_selector("#sketch", state="hidden")
        return page

    return open_page


def _places(page):
    return np.array(page.evaluate(f"[Array.from({POINTS}.data.x), Array.from({POINTS}.data.y)]"))


def _frame(page):
    """Where the picture lies on the screen: left, top, width, height."""
    page.locator("#space").scroll_into_view_if_needed()
    return page.evaluate(
        """() => {
            const view = Bokeh.index.find_one(Bokeh.documents[0].get_model_by_name("space"));
            const box = view.el.getBoundingClientRect(), frame = view.frame.bbox;
            return [box.left + frame.left, box.top + frame.top, frame.width, frame.height];
        }"""
    )


def _pixel(page, x, y):
    left, top, width, height = _frame(page)
    low, high, bottom, up = page.evaluate(
        """() => {
            const {x_range, y_range} = Bokeh.documents[0].get_model_by_name("space");
            return [x_range.start, x_range.end, y_range.start, y_range.end];
        }"""
    )
    return left + width * (x - low) / (high - low), top + height * (up - y) / (up - bottom)


def test_the_keyboard_moves_a_slider_and_the_slider_moves_points(digits, opened, record_property):
    page = opened(digits)
    before, score = _places(page), page.locator("#score").inner_text()
    slider = page.locator(".knob input[type=range]").first
    slider.focus()
    for _ in range(6):
        page.keyboard.press("PageDown")
    page.wait_for_function("window.mercerTiming.length > 0")
    # The picture that follows the hand is drawn above Bokeh's, which then has all points.
    assert page.evaluate(
        """() => { const sketch = document.querySelector("#sketch");
             const pixels = sketch.getContext("2d").getImageData(0, 0, sketch.width, sketch.height);
             return pixels.data.some((value) => value > 0); }"""
    )
    page.wait_for_function("window.mercerFullTiming.length > 0")
    page.wait_for_selector("#sketch", state="hidden")
    page.wait_for_function(RESTS)
    after = _places(page)
    assert np.abs(after - before).max() > 0.02
    assert np.abs(after).max() <= 1.0 + 1e-6
    assert float(score) > 0.8
    assert "RBF(gamma=" in page.locator("#expression").input_value()
    assert "KernelDiscriminant" in page.locator("#code pre").inner_text()
    assert page.locator(".knob .curve").count() == 1
    # The axes did not flip: most points are near where they were.
    assert np.corrcoef(after[0], before[0])[0, 1] > 0.5
    record_property("slider to picture, ms", page.evaluate("window.mercerTiming"))
    record_property("slider to all points, ms", page.evaluate("window.mercerFullTiming"))


def test_a_typed_kernel_is_used_and_a_wrong_one_refused(digits, opened):
    page = opened(digits)
    page.fill("#expression", "RBF(0.1) + Lineer()")
    page.keyboard.press("Enter")
    page.locator("#error").wait_for(state="visible")
    assert "Did you mean Linear?" in page.locator("#error").inner_text()
    page.fill("#expression", "RBF(0.1) * Polynomial(2)")
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelectorAll('.knob').length === 4")
    page.wait_for_function(RESTS)
    assert not page.locator("#error").is_visible()
    page.select_option("#part", "Linear")
    page.click("button[data-how=replace]")
    page.wait_for_function("document.querySelector('#expression').value === 'Linear()'")
    page.wait_for_function(RESTS)
    page.fill("#expression", "RBF()")
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelectorAll('.knob').length === 1")
    page.wait_for_function(RESTS)


def test_points_are_hovered_clicked_and_drawn_around(digits, opened):
    page = opened(digits)
    x, y = _places(page)
    i = int(np.argmax(x))
    page.mouse.move(*_pixel(page, x[i], y[i]))
    tip = page.locator(".tip:visible").first
    tip.wait_for()
    assert tip.locator("img").first.get_attribute("src").startswith("data:image/png;base64,")
    page.mouse.click(*_pixel(page, x[i], y[i]))
    page.locator("#point").wait_for(state="visible")
    page.wait_for_function("document.querySelector('#point h2').textContent.startsWith('Row')")
    assert page.locator("#point .thumbs img").count() >= 6
    page.mouse.click(*_pixel(page, -1.05, 1.05))
    page.wait_for_function(
        "document.querySelector('#point h2').textContent === 'What would be here?'"
    )
    assert "Predicted here" in page.locator("#point").inner_text()
    corners = [(-1.05, -1.05), (-1.05, 1.05), (0.0, 1.05), (0.0, -1.05), (-1.05, -1.05)]
    pixels = [_pixel(page, *corner) for corner in corners]
    page.mouse.move(*pixels[0])
    page.mouse.down()  # and on at once: a long rest would be a press, not a drag
    for pixel in pixels[1:]:
        page.mouse.move(*pixel, steps=8)
    page.mouse.up()
    page.locator("#selection").wait_for(state="visible")
    inside = int((x < 0).sum())
    assert page.locator("#selection h2").inner_text().startswith(f"{inside} of")
    assert len(digits.selection) == inside
    with page.expect_download() as download:
        page.click("#export")
    lines = download.value.path().read_text().splitlines()
    assert len(lines) == inside + 1
    page.click("#clear")
    page.locator("#selection").wait_for(state="hidden")


def test_spaces_are_kept_beside_each_other_and_share_the_selection(digits, opened):
    page = opened(digits)
    page.click("#keep")
    page.locator("#kept-0").wait_for(state="visible")
    page.locator("#legend button").first.focus()
    page.keyboard.press("Enter")
    page.locator("#selection").wait_for(state="visible")
    assert "2: " in page.locator("#selection").inner_text()
    kept = page.evaluate(
        "Array.from(Bokeh.documents[0].get_model_by_name('kept0').renderers[0].data_source.data.x)"
    )
    assert np.allclose(kept, _places(page)[0])
    chosen = page.evaluate(
        "Bokeh.documents[0].get_model_by_name('kept0').renderers[0].data_source.selected.indices"
    )
    assert chosen == page.evaluate(f"{POINTS}.selected.indices") != []
    shown = page.locator("#kept-0 .bk-Figure").bounding_box()
    assert shown["width"] > 100
    page.click("#kept-0 button[data-place]")
    page.locator("#kept").wait_for(state="hidden")


def test_views_switch(digits, opened):
    page = opened(digits)
    before = _places(page)
    page.click("button[data-view=discriminant]")
    page.wait_for_function(
        "document.querySelector('button[data-view=discriminant]').ariaPressed === 'true'"
    )
    page.wait_for_function(f"Math.abs({POINTS}.data.x[0] - {before[0][0]}) > 1e-3")
    page.click("button[data-view='kernel PCA']")
    page.wait_for_function(RESTS)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_phone_shows_all_of_it(digits, opened, dark):
    page = opened(digits, size=(390, 780), dark=dark)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    left, _, width, height = _frame(page)
    assert left >= 0
    assert 250 < width <= 390
    assert abs(width - height) < 2
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    lightness = sum(int(v) for v in paper[4:-1].split(",")) / 3
    assert (lightness < 60) == dark
    for control in page.locator("button:visible, select:visible").all():
        assert control.bounding_box()["height"] >= 24


def test_names_and_labels_stay_text(opened, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=[EVIL, "b"])
    frame["town"] = rng.choice([EVIL, "Rome"], 60)
    y = np.where(frame["b"] > 0, EVIL, "x")
    with explore(frame, y, RBF(), target_name=EVIL, folder=tmp_path) as running:
        page = opened(running)
        page.fill("#row", "3")
        page.keyboard.press("Enter")
        page.locator("#point").wait_for(state="visible")
        page.locator("#legend button").first.click()
        page.locator("#selection").wait_for(state="visible")
        x, y_place = _places(page)
        page.mouse.move(*_pixel(page, x[3], y_place[3]))
        page.wait_for_timeout(300)
        page.click("#keep")
        page.locator("#kept-0").wait_for(state="visible")
        assert EVIL in page.locator("#about").inner_text()
        assert EVIL in page.locator("#legend").inner_text()
        assert EVIL in page.locator("#point").inner_text()
        assert page.evaluate("window.owned === undefined")
        assert page.locator("img[src=x]").count() == 0


def test_objects_have_no_columns_for_prior_draws(opened, tmp_path):
    with explore(["abab", "ba", "cc", "cdc"] * 5, None, Spectrum(2), folder=tmp_path) as running:
        page = opened(running)
        assert not page.get_by_text("Prior draws").is_visible()
        assert page.locator("#matrix").is_visible()
