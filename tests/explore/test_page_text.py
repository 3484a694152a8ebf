"""The page as text: self-contained, small, escaped. What a browser makes of it: tests/browser."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

pytest.importorskip("bokeh", reason="bokeh is not installed: mercer[report]")

from mercer import RBF, Linear, compare_kernels
from mercer.explore.plots.style import as_text
from mercer.explore.report import figures, thumbnails

EVIL = "</script><script>alert(1)</script>"


@pytest.fixture(scope="module")
def comparison():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = np.where(X[:, 0] > 0, "up", "down")
    return compare_kernels(X, y, {"line": Linear(), "ball": RBF()}, embeddings=["kernel PCA"])


def test_written_where_asked(comparison, tmp_path):
    path = tmp_path / "page.html"
    assert comparison.to_html(path) == str(path)
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    with pytest.raises(FileNotFoundError, match="no folder"):
        comparison.to_html(tmp_path / "missing" / "page.html")


def test_page_holds_the_verdict_and_the_table(comparison):
    html = comparison.to_html()
    assert comparison.headline in html
    for space in comparison.spaces:
        assert f">{space.name}</a>" in html
        assert f"{space.score:.3f}" in html


def test_nothing_is_fetched(comparison):
    html = comparison.to_html()
    outside = re.findall(
        r"<(?:script|link|img|iframe)[^>]+(?:src|href)=[\"']?(?!data:)[^\"'>]+", html
    )
    assert outside == []
    assert "default-src 'none'" in html


def test_text_of_the_data_is_escaped():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=[EVIL, "b"])
    y = np.where(frame["b"] > 0, EVIL, "x")
    kernels = {EVIL: RBF(0.5), "other": Linear()}
    found = compare_kernels(frame.to_numpy(), y, kernels, samples=frame, embeddings=["kernel PCA"])
    html = found.to_html(title=EVIL)
    assert EVIL not in html
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert" in html


def test_five_thousand_images_stay_small():
    """Fifteen megabytes for 5000 points of 28 x 28 pixels and four kernels."""
    rng = np.random.default_rng(0)
    X = np.where(rng.uniform(size=(5000, 784)) < 0.2, rng.integers(0, 256, (5000, 784)), 0)
    y = rng.integers(0, 10, 5000)
    few = compare_kernels(
        X[:60],
        y[:60] % 3,
        [Linear(), RBF(1.0), RBF(2.0), RBF(3.0)],
        embeddings=["kernel PCA"],
        repeats=1,
        baselines=False,
    )
    # The page's size depends on numbers of points, not on where they lie.
    few.target = few.data.target = y
    few.held_out = np.arange(5000) % 2 == 0
    few.rows = few.data.rows = np.arange(5000)
    few.data.shown, few.data.image_shape = X, (28, 28)
    for space in few.spaces:
        space.predicted = None
        for name in ("t-SNE", "kernel PCA", "discriminant"):
            space.embeddings[name] = rng.normal(size=(5000, 2))
    html = few.to_html()
    assert len(html.encode()) < 15e6
    # Not WebGL, which shows nothing in a browser without a GPU, and needs 'unsafe-eval'.
    assert '"output_backend":"webgl"' not in html
    assert "unsafe-eval" not in html


def test_a_page_works_without_embeddings():
    X = np.random.default_rng(0).normal(size=(20, 2))
    html = compare_kernels(X, None, [Linear()], embeddings=[]).to_html()
    assert "Without a target" in html


def test_the_page_says_what_was_done_and_what_to_do_next():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(size=60), "town": rng.choice(["Rome", "Oslo"], 60)})
    y = pd.Series(np.where(table["age"] > 0, "yes", "no"), name="bought")
    found = compare_kernels(table, y, [Linear(), RBF()], embeddings=["kernel PCA"], repeats=1)
    found.command = "mercer compare people.csv -t bought"
    html = found.to_html()
    told = ["target: <b>bought</b>", "2 classes", found.command, "gradient boosting"]
    told += ["1 column of categories", 'id="copy"', "TableEncoder()", "true bought"]
    for words in told:
        assert words in html, words


def test_a_class_has_one_name_on_the_page(rng):
    """A click on the legend selects the points whose label it shows; classes may be floats."""
    from mercer.explore.data import Explored
    from mercer.explore.live.row_facts import label_of

    X, y = rng.normal(size=(20, 2)), np.repeat([0.0, 1.0], 10)
    found = compare_kernels(X, y, [Linear()], cv=2, repeats=1, embeddings=[], task="classification")
    legend = re.findall(r'data-label="([^"]*)"', found.to_html())
    assert legend == ["0", "1"]
    assert set(figures._data_source(found, None, [""] * 20).data["label"]) == set(legend)
    data = Explored.of(X, y, Linear(), task="classification")
    assert {label_of(data, i) for i in range(20)} == set(data.classes)


def test_numbers_are_written_as_people_do():
    assert [as_text(v) for v in (2.0, 12345.0, 0.123456, 1e20, "a", 7)] == [
        "2", "12345", "0.1235", "1e+20", "a", "7"
    ]  # fmt: skip


# --- what is shown of a point ---------------------------------------------------------------------


class _Shown:
    def __init__(self, shown, image_shape=None):
        self.shown, self.image_shape = shown, image_shape

    def __len__(self):
        return self.shown.shape[0] if hasattr(self.shown, "shape") else len(self.shown)


def test_values_of_tables():
    frame = pd.DataFrame({"age": [1.23456], "name": ["x" * 100]})
    _, (text,) = thumbnails.described(_Shown(frame))
    assert text.split("\n")[0] == "age: 1.235"
    assert len(text) < 100
    _, (text,) = thumbnails.described(_Shown(np.arange(20.0)[None]))
    assert text.endswith("… 12 more")
    _, (text,) = thumbnails.described(_Shown(scipy.sparse.csr_array([[0.0, 3.0, -7.0]])))
    assert text == "x2: -7\nx1: 3"


def test_texts_are_shortened():
    images, texts = thumbnails.described(_Shown(["short", "long " * 100]))
    assert images is None
    assert texts[0] == "short"
    assert len(texts[1]) == thumbnails.LONGEST_TEXT


def _decoded(uri):
    import base64
    import io

    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.split(",")[1]))))


@pytest.mark.parametrize("shape", [(8, 8), (3, 5), (100, 60)])
def test_images_are_ink_on_paper(shape):
    rng = np.random.default_rng(0)
    pixels = rng.uniform(size=(2, *shape))
    pixels[0] = 0
    pixels[1, 0, 0] = 1
    uris, _ = thumbnails.described(_Shown(pixels.reshape(2, -1), shape))
    blank, drawn = map(_decoded, uris)
    assert (blank == 255).all()
    assert max(drawn.shape) <= thumbnails._LARGEST
    if max(shape) <= thumbnails._LARGEST:
        assert drawn.shape == shape
        assert drawn[0, 0] == 0


def test_sparse_rows_are_images_too(rng):
    X = scipy.sparse.csr_array(rng.uniform(size=(20, 12)) * (rng.uniform(size=(20, 12)) < 0.3))
    found = compare_kernels(X, None, [Linear()], image_shape=(3, 4), embeddings=[])
    images, _ = thumbnails.described(found.data)
    assert images == thumbnails.thumbnails(X.toarray().reshape(20, 3, 4))
    with pytest.raises(ValueError, match="needs 16 values per row, got 12"):
        compare_kernels(X, None, [Linear()], image_shape=(4, 4), embeddings=[])


def test_constant_and_missing_pixels_are_no_trouble():
    assert len(thumbnails.thumbnails(np.zeros((3, 4, 4)))) == 3
    assert len(thumbnails.thumbnails(np.full((1, 4, 4), np.nan))) == 1
