"""The kernel under a slider of the lessons, in a real browser, compared with mercer."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import RBF, KernelMap, KernelPCA, KernelRidge, Polynomial, Sigmoid, check_mercer

pytest.importorskip("docutils", reason="docutils is not installed: mercer[docs]")

DOCS = Path(__file__).parents[2] / "docs"
VIEWS = "gram spectrum map residual pca component boundary"
KERNELS = {
    "rbf": RBF,
    "polynomial": lambda gamma: Polynomial(3, gamma),
    "sigmoid": lambda gamma: Sigmoid(gamma, -1.0),
}
FIGURE = "document.querySelector('figure').kernel"
PLACES = [[0.0, 0.0], [-1.2, 0.4], [0.9, 1.1]]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    spec = importlib.util.spec_from_file_location("slider", DOCS / "slider.py")
    slider = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(slider)
    folder = tmp_path_factory.mktemp("slider")
    (folder / "_static").symlink_to(DOCS / "_static")
    block = slider.block(VIEWS, "", sliders="gamma alpha", kernels="rbf polynomial sigmoid")
    (folder / "page.html").write_text(
        '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        '<link rel="stylesheet" href="_static/mercer.css">'
        "<style>:root { color-scheme: light dark } body { color: CanvasText }</style>" + block
    )
    return folder / "page.html"


def press(page, name, key, times):
    slider = page.locator(f"input[name={name}]")
    slider.focus()
    for _ in range(times):
        page.keyboard.press(key)
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def values(page):
    return page.evaluate(
        f"""(places) => {{
            const m = {FIGURE}, u = m.centred.vectors;
            return {{
                X: m.X, y: m.y, K: m.K, gamma: m.gamma, alpha: m.alpha, values: m.values,
                centred: m.centred.values, predictions: places.map(m.predict),
                residuals: places.map(m.residual), scores: places.map((z) => m.score(z, 0)),
                coordinates: places.map((z) => m.coordinates(z).slice(0, 2)),
            }};
        }}""",
        PLACES,
    )


def test_the_keyboard_moves_it_and_its_numbers_are_those_of_mercer(path, new_page):
    page = new_page(f"file://{path}")
    seen = []
    for key, times in (("ArrowRight", 0), ("ArrowRight", 7), ("ArrowLeft", 15)):
        press(page, "gamma", key, times)
        press(page, "alpha", key, times)
        m = {name: np.array(value) for name, value in values(page).items()}
        X, y, gamma, alpha = m["X"], m["y"], float(m["gamma"]), float(m["alpha"])
        kernel = RBF(gamma)
        assert_allclose(m["K"], kernel(X), atol=1e-12)
        assert_allclose(m["values"], np.linalg.eigvalsh(kernel(X))[::-1], atol=1e-6)
        assert_allclose(m["values"], np.linalg.eigvalsh(kernel(X))[::-1], atol=1e-12)
        ridge = KernelRidge(alpha, kernel).fit(X, y)
        assert_allclose(m["predictions"], ridge.predict(PLACES), atol=1e-6)
        pca = KernelPCA(3, kernel).fit(X)
        assert_allclose(m["centred"][:3], pca.eigenvalues_, atol=1e-6)
        assert_allclose(np.abs(m["scores"]), np.abs(pca.transform(PLACES)[:, 0]), atol=1e-6)
        eigen = KernelMap(kernel, basis="eigen").fit(X)
        leading = np.abs(eigen.transform(PLACES)[:, :2])
        assert_allclose(np.abs(m["coordinates"]), leading, atol=1e-6)
        assert_allclose(m["residuals"], eigen.residual(PLACES), atol=1e-6)
        seen.append((gamma, alpha))
    assert seen[0] == pytest.approx((1.0, 0.01))
    assert seen[1] == pytest.approx((10**0.35, 10**-1.65))
    assert seen[2] == pytest.approx((10**-0.4, 10**-2.4))


@pytest.mark.parametrize("name", KERNELS)
def test_each_kernel_is_the_librarys_and_so_is_the_verdict(name, path, new_page):
    page = new_page(f"file://{path}")
    page.select_option("select[name=kernel]", name)
    press(page, "gamma", "ArrowRight", 4)
    m = values(page)
    kernel, X = KERNELS[name](m["gamma"]), np.array(m["X"])
    assert_allclose(m["K"], kernel(X), rtol=1e-12, atol=1e-14)
    spectrum = np.linalg.eigvalsh(kernel(X))
    assert_allclose(m["values"][::-1], spectrum, atol=1e-12 * spectrum[-1])
    refuted = m["values"][-1] < -1e-9 * m["values"][0]
    assert refuted == (not check_mercer(kernel, X))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1100, 390])
def test_it_fits_is_named_and_draws_in_the_colours_of_the_page(width, scheme, path, new_page):
    page = new_page(f"file://{path}", (width, 900), scheme)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    for name in ("gamma", "alpha"):
        slider = page.get_by_label(name)
        assert slider.get_attribute("aria-valuetext") in ("1", "0.01")
    canvases = page.locator("canvas[role=img]")
    assert canvases.count() == len(VIEWS.split())
    for i in range(canvases.count()):
        assert ": " in canvases.nth(i).get_attribute("aria-label")
        assert canvases.nth(i).bounding_box()["width"] > 130
    ink = """(canvas) => { const { data } = canvas.getContext("2d").getImageData(0, 0, 440, 440);
        let drawn = 0; for (let i = 3; i < data.length; i += 4) drawn += data[i] > 0;
        return drawn; }"""
    assert all(canvases.nth(i).evaluate(ink) > 5000 for i in range(canvases.count()))
    line = page.evaluate("getComputedStyle(document.querySelector('figure')).color")
    assert line == ("rgb(255, 255, 255)" if scheme == "dark" else "rgb(0, 0, 0)")
    # The picture moves with the hand, and the rest of the page does not.
    before = canvases.first.evaluate("(canvas) => canvas.toDataURL()")
    press(page, "gamma", "ArrowRight", 10)
    assert canvases.first.evaluate("(canvas) => canvas.toDataURL()") != before


def test_it_is_small():
    assert (DOCS / "_static/slider.js").stat().st_size < 15_000
