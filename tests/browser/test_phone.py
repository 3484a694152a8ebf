"""What the pages of the documentation do on a narrow screen: docs/phone.py with its style sheet."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
TABLE = (
    '<section id="others"><table class="table"><thead><tr><th><p>class</p></th>'
    "<th><p>choose it when</p></th><th><p>cost</p></th></tr></thead>"
    "<tbody><tr><td><p>KernelMap</p></td><td><p>always</p></td><td><p></p></td></tr></tbody>"
    "</table></section>"
)


@pytest.fixture(scope="module")
def phone():
    spec = importlib.util.spec_from_file_location("phone", DOCS / "phone.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def written(path, body, image=None):
    style = (DOCS / "_static/mercer.css").read_text(encoding="utf-8")
    if image is not None:
        body = body.replace("_images/figure.png", image.as_uri())
    head = f'<meta charset="utf-8"><style>{style}</style>'
    page = f'<!doctype html><html data-theme="light">{head}<article class="bd-article">{body}'
    path.write_text(page + "</article></html>", encoding="utf-8")
    return f"file://{path}"


@pytest.mark.parametrize(("inches", "scrolls"), [(9.0, True), (5.0, False)])
def test_wide_figures_scroll_and_pages_do_not(phone, inches, scrolls, tmp_path, new_page):
    image = pytest.importorskip("PIL.Image")
    figure = tmp_path / "figure.png"
    image.new("RGB", (round(100 * inches), 300)).save(figure, dpi=(100, 100))
    body = phone.framed('<p><img src="_images/figure.png" /></p>', lambda name: tmp_path / name)
    page = new_page(written(tmp_path / "page.html", body, figure), (390, 780))
    shown = page.locator("img").bounding_box()["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert (shown > 390) == scrolls
    if scrolls:
        assert shown == pytest.approx(phone.READABLE * inches, abs=2)


def test_a_full_stop_stays_with_its_formula(phone, tmp_path, new_page):
    formula = '<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline"><mi>K</mi></math>'
    body = phone.unbroken(f'<p style="width: 0">{formula} is {formula}.</p>')
    page = new_page(written(tmp_path / "page.html", body), (390, 780))
    lines = "element => element.getClientRects().length"
    assert page.locator(".unbroken").text_content() == "K."  # and not "K is K."
    assert page.locator(".unbroken").evaluate(lines) == 1


def test_long_names_break_at_their_joints(phone):
    cell = '<table><td><span class="pre">{}</span></td></table>'
    name = "tests/test_laws.py::test_symmetric"
    broken = "tests/<wbr>test_<wbr>laws.<wbr>py::<wbr>test_<wbr>symmetric"
    assert phone.breakable(cell.format(name)) == cell.format(broken)
    assert phone.breakable(cell.format("max_rank")) == cell.format("max_rank")


def test_cells_carry_the_heading_of_their_column(phone, tmp_path, new_page):
    address = written(tmp_path / "page.html", phone.labelled(TABLE))
    said = "c => getComputedStyle(c, '::before').content"
    narrow = new_page(address, (390, 780)).locator("td")
    assert [narrow.nth(i).evaluate(said) for i in (0, 1)] == ["none", '"choose it when: "']
    assert not narrow.nth(2).is_visible()  # nothing to say
    wide = new_page(address, (1366, 768)).locator("td")
    assert wide.nth(1).evaluate(said) == "none"
