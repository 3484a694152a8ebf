"""The page in a real browser: it draws, hovers, selects, switches, and runs nothing of the data."""

import re

import numpy as np
import pandas as pd
import pytest

from mercer import RBF, Linear, Polynomial, WeisfeilerLehman, compare_kernels

pytest.importorskip("bokeh", reason="bokeh is not installed: mercer[report]")

EVIL = '<script>window.owned = true</script><img src=x onerror="window.owned = true">'
SIZES = {"laptop": (1366, 768), "projector": (1920, 1080)}


def _digits():
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    chosen = np.flatnonzero(np.isin(y, (2, 4, 7)))[:120]
    return X[chosen] / 16, y[chosen]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Three kernels on digits, with thumbnails."""
    X, y = _digits()
    kernels = {"k1": Polynomial(9, gamma=1 / 64, coef0=0.0), "line": Linear(), "RBF": RBF()}
    comparison = compare_kernels(
        X, y, kernels, image_shape=(8, 8), embeddings=["kernel PCA", "discriminant"]
    )
    path = tmp_path_factory.mktemp("page") / "report.html"
    comparison.to_html(path)
    return comparison, path


SOURCE = "Bokeh.documents[0].get_model_by_name('points')"


@pytest.fixture
def open_page(new_page):
    """Opens a report that was written to a file."""
    return lambda *args, **options: _opened(new_page, *args, **options)


def _opened(new_page, path, size=SIZES["laptop"], scheme="light"):
    page = new_page(f"file://{path}", size, scheme)
    page.wait_for_selector("html[data-ready=true]")
    page.wait_for_function("Bokeh.index.roots.every(view => view.has_finished())")
    return page


@pytest.fixture(scope="module")
def page_of_all(report, lasting_page):
    return _opened(lasting_page, report[1])


@pytest.fixture
def page(page_of_all):
    """The report's page, as it is when it is opened: opening takes longer than most tests."""
    page_of_all.mouse.move(0, 0)
    page_of_all.get_by_role("button", name="kernel PCA").click()
    page_of_all.get_by_role("button", name="all points").click()
    page_of_all.evaluate(f"{SOURCE}.selected.indices = []")
    page_of_all.evaluate("window.scrollTo(0, 0)")
    return page_of_all


def _panel(page, number):
    """Where the frame of a panel lies on the screen: left, top, width, height."""
    page.locator(f"#panel-{number}").scroll_into_view_if_needed()
    return page.evaluate(
        """number => {
            const model = Bokeh.documents[0].get_model_by_name("panel " + number);
            const view = Bokeh.index.find_one(model);
            const box = view.el.getBoundingClientRect(), frame = view.frame.bbox;
            return [box.left + frame.left, box.top + frame.top, frame.width, frame.height];
        }""",
        number,
    )


def _place(page, number, point):
    """The pixel at which a point of the data is drawn."""
    left, top, *_ = _panel(page, number)
    x, y = page.evaluate(
        """([number, i]) => {
            const model = Bokeh.documents[0].get_model_by_name("panel " + number);
            const frame = Bokeh.index.find_one(model).frame;
            const data = Bokeh.documents[0].get_model_by_name("points").data;
            return [frame.x_scale.compute(data["x" + number][i]) - frame.bbox.left,
                    frame.y_scale.compute(data["y" + number][i]) - frame.bbox.top];
        }""",
        [number, point],
    )
    return left + x, top + y


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_panels_are_drawn_and_fit_the_screen(report, open_page, size):
    comparison, path = report
    page = open_page(path, size)
    assert page.locator("h2").inner_text() == comparison.headline
    assert page.locator("article h3 span").all_inner_texts() == [s.name for s in comparison.spaces]
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    for number in range(3):
        left, _, width, height = _panel(page, number)
        assert left >= 0
        assert left + width <= size[0]
        assert min(width, height) > 200
    # Three kernels stand side by side, and the picture shows points: many colours, not one.
    assert len({round(_panel(page, n)[1]) for n in range(3)}) == 1
    assert len(set(page.locator("#panel-0").screenshot())) > 50


def test_hover_shows_the_sample(report, page):
    comparison, _ = report
    point = int(np.flatnonzero(comparison.held_out)[0])
    page.mouse.move(*_place(page, 1, point))
    tip = page.locator(".tip:visible").first
    tip.wait_for(timeout=5000)
    images = tip.locator("img").evaluate_all("all => all.map(i => [i.src, i.naturalWidth])")
    assert images[0][0].startswith("data:image/png;base64,")
    assert images[0][1] == 8
    assert tip.locator(".tip-label").inner_text() in {"2", "4", "7"}


def test_lasso_in_one_panel_selects_in_all(report, page):
    comparison, _ = report
    left, top, width, height = _panel(page, 2)
    page.mouse.move(left + 2, top + 2)
    page.mouse.down()
    for x, y in [(0.5, 0.01), (0.5, 0.99), (0.01, 0.99), (0.01, 0.02)]:
        page.mouse.move(left + x * width, top + y * height, steps=8)
    page.mouse.up()
    page.wait_for_function(f"{SOURCE}.selected.indices.length > 0")
    chosen = page.evaluate(f"Array.from({SOURCE}.selected.indices)")
    Z = comparison.spaces[2].embeddings["kernel PCA"]
    middle = (Z[:, 0].min() + Z[:, 0].max()) / 2
    expected = set(np.flatnonzero(Z[:, 0] < middle))
    assert 0 < len(chosen) < len(comparison)
    assert len(expected ^ set(chosen)) <= 4  # those on the line itself
    # The other panels draw from the same source, so theirs is the same selection.
    shared = page.evaluate(
        f"""[0, 1, 2].every(n => Bokeh.documents[0].get_model_by_name("panel " + n)
             .renderers[0].data_source === {SOURCE})"""
    )
    assert shared
    assert page.locator("#selection").inner_text().startswith(f"{len(chosen)} points selected: ")
    assert page.locator("#strip img").count() == min(len(chosen), 60)


def test_switching_the_embedding_moves_the_points(report, page):
    comparison, _ = report
    page.get_by_role("button", name="discriminant").click()
    for number, space in enumerate(comparison.spaces):
        drawn = page.evaluate(f"Array.from({SOURCE}.data.x{number})")
        np.testing.assert_allclose(drawn, space.embeddings["discriminant"][:, 0], rtol=1e-6)
        # Bokeh computes a range when it next paints.
        shown = f"Bokeh.documents[0].get_model_by_name('panel {number}').x_range"
        low, high = min(drawn), max(drawn)
        for _ in range(100):
            if page.evaluate(f"{shown}.start < {low} && {high} < {shown}.end"):
                break
            page.wait_for_timeout(50)
        else:
            pytest.fail(f"panel {number} does not show all points")
    pressed = page.locator("#embeddings button[aria-pressed=true]").all_inner_texts()
    assert pressed == ["discriminant"]


def test_new_points_alone_and_a_class_by_its_legend(report, page):
    comparison, _ = report
    views = "Bokeh.documents[0].get_model_by_name('panel 0').renderers[0].view.indices"
    assert page.evaluate(f"Array.from({views}).length") == len(comparison)
    page.get_by_role("button", name="new points only").click()
    drawn = page.evaluate(f"Array.from({views})")
    assert drawn == np.flatnonzero(comparison.held_out).tolist()
    page.get_by_role("button", name="all points").click()
    legend = page.locator("#legend button", has_text="4")
    legend.click()
    chosen = page.evaluate(f"Array.from({SOURCE}.selected.indices)")
    assert chosen == np.flatnonzero(comparison.target == 4).tolist()
    legend.click()
    assert page.evaluate(f"{SOURCE}.selected.indices.length") == 0


def test_text_of_the_data_is_never_markup(open_page, tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=[EVIL, "b"])
    y = np.where(frame["b"] > 0, EVIL, "harmless")
    comparison = compare_kernels(
        frame.to_numpy(),
        y,
        {EVIL: RBF(0.5), "</script><h1>x</h1>": Linear()},
        samples=frame,
        embeddings=["kernel PCA"],
    )
    path = tmp_path / "evil.html"
    comparison.to_html(path, title=EVIL)
    page = open_page(path)
    assert page.title() == EVIL
    assert page.locator("h1").count() == 1
    page.mouse.move(*_place(page, 0, int(np.flatnonzero(comparison.held_out)[0])))
    tip = page.locator(".tip:visible").first
    tip.wait_for(timeout=5000)
    assert "<script>" in tip.inner_text()
    page.locator("#legend button").first.click()
    page.locator("#strip span").first.wait_for(timeout=5000)
    assert page.evaluate("window.owned") is None


def test_a_numeric_target_and_texts(open_page, tmp_path, rng):
    X = rng.normal(size=(60, 2))
    texts = [f"sample number {i}" for i in range(60)]
    comparison = compare_kernels(
        X, X[:, 0] + 0.1 * X[:, 1], [Linear(), RBF()], samples=texts, embeddings=["kernel PCA"]
    )
    path = tmp_path / "numbers.html"
    comparison.to_html(path)
    page = open_page(path)
    assert page.locator("i.scale").is_visible()
    page.mouse.move(*_place(page, 0, int(np.flatnonzero(comparison.held_out)[5])))
    tip = page.locator(".tip:visible").first
    tip.wait_for(timeout=5000)
    assert "sample number" in tip.inner_text()


def test_units_are_equally_long_in_both_directions(page):
    for embedding in ("kernel PCA", "discriminant"):
        page.get_by_role("button", name=embedding).click()
        page.wait_for_timeout(300)
        for number in range(3):
            panel = f"Bokeh.documents[0].get_model_by_name('panel {number}')"
            x0, x1, y0, y1 = page.evaluate(
                f"[{panel}.x_range.start, {panel}.x_range.end,"
                f" {panel}.y_range.start, {panel}.y_range.end]"
            )
            _, _, width, height = _panel(page, number)
            assert abs((x1 - x0) / width / ((y1 - y0) / height) - 1) < 0.02


def test_selected_rows_are_a_table_that_can_be_sorted(open_page, tmp_path, rng):
    table = pd.DataFrame({"age": rng.normal(size=40), "town": ["Rome", "Oslo"] * 20})
    y = np.where(table["age"] > 0, "old", "young")
    comparison = compare_kernels(
        table, y, [Linear()], embeddings=["kernel PCA", "discriminant"], repeats=1
    )
    path = tmp_path / "table.html"
    comparison.to_html(path)
    page = open_page(path)
    page.locator("#legend button", has_text="old").click()
    chosen = int((y == "old").sum())
    assert page.locator("#rows tr").count() == chosen + 1
    assert "age" in page.locator("#difference").inner_text()
    page.locator("#rows th", has_text="age").click()
    ages = [float(t) for t in page.locator("#rows td:nth-child(3)").all_inner_texts()]
    assert ages == sorted(ages)
    page.get_by_role("button", name="discriminant").click()
    assert page.locator("#rows tr").count() == chosen + 1  # the selection stays
    with page.expect_download() as download:
        page.locator("#export").click()
    assert len(pd.read_csv(download.value.path())) == chosen
    assert "KernelDiscriminant" in page.locator("#code").inner_text()


def test_graphs_are_drawn_in_tips_and_in_the_strip(open_page, tmp_path):
    chain = [(i, i + 1) for i in range(5)]
    graphs = [(chain, "CCCCCO"), ([*chain, (5, 0)], "CCCCCC")] * 8
    comparison = compare_kernels(
        graphs, ["chain", "ring"] * 8, [WeisfeilerLehman(1)], cv=2, embeddings=["kernel PCA"]
    )
    path = tmp_path / "graphs.html"
    comparison.to_html(path)
    page = open_page(path)
    page.mouse.move(*_place(page, 0, int(np.flatnonzero(comparison.held_out)[0])))
    tip = page.locator(".tip:visible").first
    tip.wait_for(timeout=5000)
    assert "6 nodes" in tip.inner_text()
    assert tip.locator("img").evaluate("i => i.naturalWidth") > 50  # the browser can read it
    page.locator("#legend button", has_text="ring").click()
    assert page.locator("#strip img").count() == 8


def test_a_dark_page_has_light_points_and_ink(open_page, tmp_path, rng):
    X = rng.normal(size=(60, 2))
    comparison = compare_kernels(X, X[:, 0], [Linear()], cv=2, embeddings=["kernel PCA"])
    path = tmp_path / "dark.html"
    comparison.to_html(path)

    def darkest(page):
        colours = page.evaluate(f"Array.from({SOURCE}.data.colour)")
        return min(sum(int(c[i : i + 2], 16) for i in (1, 3, 5)) for c in colours)

    def brightness(page, what):
        colour = page.evaluate(f"getComputedStyle(document.body).{what}")
        return sum(int(v) for v in re.findall(r"\d+", colour)[:3])

    light, dark = open_page(path), open_page(path, scheme="dark")
    assert brightness(light, "color") < 200 < 600 < brightness(light, "backgroundColor")
    assert brightness(dark, "backgroundColor") < 200 < 600 < brightness(dark, "color")
    assert darkest(light) < 150 < 250 < darkest(dark)
