"""Displays: what they compute, what they draw, and that any axes will do."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris

mpl.use("Agg")

from matplotlib import pyplot as plt

from mercer import (
    RBF,
    FeatureSpaceDisplay,
    GramDisplay,
    KernelDiscriminant,
    KernelMap,
    KernelPCA,
    Linear,
    ResidualDisplay,
    SpectrumDisplay,
    compare_kernels,
)
from mercer.explore.plots.style import COLOURS, literally, looks


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def _drawn(display):
    """Every display draws into the canvas without a complaint."""
    display.figure_.canvas.draw()
    return display


# --- feature space --------------------------------------------------------------------------------


def test_scatter_of_an_estimator_is_its_transform(iris):
    X, y = iris
    pca = KernelPCA(2, kernel=RBF(0.5)).fit(X)
    display = _drawn(FeatureSpaceDisplay.from_estimator(pca, X, y).plot())
    points = np.vstack([collection.get_offsets() for collection in display.points_])
    assert_allclose(points, pca.transform(X), atol=1e-12)  # iris is ordered by class
    assert display.ax_.get_xlabel() == "kernelpca0"
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["0", "1", "2"]


@pytest.mark.parametrize("embedding", ["kernel PCA", "discriminant", "t-SNE"])
def test_scatter_of_a_kernel(embedding, iris):
    if embedding == "t-SNE":
        pytest.importorskip("openTSNE")
    X, y = iris
    display = FeatureSpaceDisplay.from_kernel(RBF(0.5), X, y, embedding=embedding)
    assert display.coordinates.shape == (150, 2)
    assert _drawn(display.plot()).ax_.get_ylabel() == f"{embedding} 2"


def test_kernel_pca_of_a_kernel_is_kernel_pca(iris):
    X, _ = iris
    display = FeatureSpaceDisplay.from_kernel(Linear(), X)
    Z = KernelPCA(2, kernel="linear").fit_transform(X)
    scale = np.sqrt((X**2).sum(axis=1).mean())  # the one scale of all embeddings
    assert_allclose(display.coordinates * scale, Z, atol=1e-8)


def test_one_axis_is_drawn_in_strips(iris):
    X, y = iris
    two = y < 2
    model = KernelDiscriminant(kernel=RBF(0.5)).fit(X[two], y[two])
    display = _drawn(FeatureSpaceDisplay.from_estimator(model, X[two], y[two]).plot())
    heights = [c.get_offsets()[:, 1] for c in display.points_]
    assert heights[0].max() < heights[1].min()


def test_given_axes_are_used_and_nothing_else_opened(iris):
    X, y = iris
    figure, ax = plt.subplots()
    display = FeatureSpaceDisplay.from_kernel(RBF(), X, y).plot(ax)
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert plt.get_fignums() == [figure.number]


def test_thumbnails_spread_over_the_picture(iris):
    X, y = iris
    display = FeatureSpaceDisplay(X[:, :2], y).plot(images=np.ones((150, 4, 4)), n_images=10)
    _drawn(display)
    places = np.array([box.xy for box in display.images_])
    assert len(places) == 10
    gaps = np.linalg.norm(places[:, None] - places[None], axis=2) + 9 * np.eye(10)
    assert gaps.min() > 0.3
    with pytest.raises(ValueError, match="images holds 3 entries for 150 points"):
        FeatureSpaceDisplay(X[:, :2], y).plot(images=np.ones((3, 4, 4)))


def test_numbers_get_a_scale_and_few_whole_ones_a_legend(rng):
    Z = rng.normal(size=(100, 2))
    numbers = _drawn(FeatureSpaceDisplay(Z, rng.normal(size=100)).plot())
    assert len(numbers.figure_.axes) == 2  # the colour bar
    assert numbers.ax_.get_legend() is None
    few = _drawn(FeatureSpaceDisplay(Z, np.arange(100) % 3).plot())
    assert len(few.ax_.get_legend().get_texts()) == 3
    ten = _drawn(FeatureSpaceDisplay(Z[:10], rng.normal(size=10)).plot())
    assert ten.ax_.get_legend() is None  # ten rows, and no classes


def test_no_two_classes_look_alike():
    seen = looks(40)
    assert len(set(seen)) == 40
    assert len({colour for colour, _ in seen[: len(COLOURS)]}) == len(COLOURS)


def _luminance_and_yellow(colour):
    """What is left of a colour without red-green vision: lightness and blue-yellow (Lab-like)."""
    rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]) ** 2.2
    # Deuteranopia (Vienot, Brettel and Mollon, 1999): red and green become one.
    red_green = 0.29275 * rgb[0] + 0.70725 * rgb[1]
    blue = -0.02234 * rgb[0] + 0.02234 * rgb[1] + rgb[2]
    return np.cbrt([red_green, blue])


def test_colours_differ_without_red_green_vision():
    seen = np.array([_luminance_and_yellow(c) for c in COLOURS])
    distances = np.linalg.norm(seen[:, None] - seen[None], axis=2) + np.eye(len(seen))
    assert distances.min() > 0.05


def test_a_legend_of_many_long_names_stays_on_the_picture(iris):
    names = np.array([f"class number {i} with a long name" for i in np.arange(len(iris[0])) % 30])
    display = FeatureSpaceDisplay.from_kernel(RBF(0.5), iris[0], names).plot()
    display.figure_.canvas.draw()
    box = display.ax_.get_legend().get_window_extent()
    assert box.x1 <= display.figure_.bbox.x1
    assert 0 <= box.y0 < box.y1 <= display.figure_.bbox.y1
    assert display.ax_.get_window_extent().width > 0.4 * display.figure_.bbox.width


def test_text_is_taken_literally(iris):
    X, _ = iris
    y = np.where(np.arange(150) % 2, "a$b_{", "$$\\frac")
    _drawn(FeatureSpaceDisplay(X[:, :2], y, title="$broken {", names=("$x", "y")).plot())
    assert literally("RBF(gamma=0.123456789)") == "RBF(gamma=0.1235)"


def test_discriminant_axes_need_classes(iris):
    with pytest.raises(ValueError, match="need the classes"):
        FeatureSpaceDisplay.from_kernel(RBF(), iris[0], embedding="discriminant")
    with pytest.raises(ValueError, match="embeddings must be"):
        FeatureSpaceDisplay.from_kernel(RBF(), iris[0], embedding="umap")


# --- spectrum -------------------------------------------------------------------------------------


def test_spectrum_is_that_of_pca(iris):
    X, _ = iris
    shares = SpectrumDisplay.from_kernel(Linear(), X).shares
    variances = np.linalg.eigvalsh(np.cov(X.T))[::-1]
    assert_allclose(shares, variances / variances.sum(), rtol=1e-10)


def test_spectrum_of_a_few_components_knows_the_whole(iris):
    X, _ = iris
    pca = KernelPCA(3, kernel=RBF(0.5)).fit(X)
    display = _drawn(SpectrumDisplay.from_estimator(pca).plot())
    assert_allclose(display.shares, pca.explained_variance_ratio_)
    assert display.components_for(0.999) is None
    with pytest.raises(ValueError, match="no eigenvalues_"):
        SpectrumDisplay.from_estimator(KernelMap().fit(X))


def test_spectrum_marks_a_share(iris):
    display = _drawn(SpectrumDisplay([6.0, 3.0, 1.0]).plot(mark=0.9))
    assert display.components_for(0.9) == 2
    assert "90 % in 2" in [text.get_text() for text in display.ax_.texts]
    _drawn(SpectrumDisplay.from_kernel(RBF(), iris[0]).plot())


# --- Gram matrix ----------------------------------------------------------------------------------


def test_gram_matrix_is_ordered_by_class(rng):
    X, y = rng.normal(size=(30, 2)), rng.permutation(np.repeat(["b", "a", "c"], 10))
    display = _drawn(GramDisplay.from_kernel(RBF(1.0), X, y).plot())
    order = np.argsort(y, kind="stable")
    assert_allclose(display.image_.get_array(), RBF(1.0)(X[order]))
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == ["a", "b", "c"]


def test_gram_matrix_is_sampled_and_says_so(rng):
    X = rng.normal(size=(60, 2))
    display = GramDisplay.from_kernel(RBF(1.0), X, max_rows=20)
    assert display.matrix.shape == (20, 20)
    assert display.title == "RBF() (20 of 60 rows)".replace("RBF()", "RBF(gamma=1.0)")


def test_gram_matrix_of_an_estimator_and_normalised(iris):
    X, y = iris
    model = KernelPCA(2, kernel=Linear()).fit(X)
    display = _drawn(GramDisplay.from_estimator(model, X, y).plot(normalize=True))
    assert_allclose(np.diagonal(display.image_.get_array()), 1.0)
    _drawn(GramDisplay.from_kernel(Linear(), X - X.mean(axis=0), X[:, 0]).plot())


# --- residual -------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [False, True])
def test_residual_is_that_of_the_map(frame, rng):
    X = rng.normal(size=(40, 2))
    X = pd.DataFrame(X, columns=["east", "north"]) if frame else X
    kernel_map = KernelMap(RBF(2.0), max_rank=10).fit(X)
    display = ResidualDisplay.from_estimator(kernel_map, X, resolution=15)
    point = np.array([[display.xs[3], display.ys[11]]])
    point = pd.DataFrame(point, columns=X.columns) if frame else point
    assert_allclose(display.residual[11, 3], kernel_map.residual(point)[0], atol=1e-10)
    _drawn(display.plot())
    assert display.ax_.get_legend().get_texts()[0].get_text() == "10 landmarks"
    if frame:
        assert display.ax_.get_xlabel() == "east"


def test_residual_needs_a_plane(iris):
    X, _ = iris
    with pytest.raises(ValueError, match="two columns"):
        ResidualDisplay.from_estimator(KernelMap().fit(X), X)


# --- comparison -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_kernels", [1, 3])
def test_long_names_of_classes_stay_on_the_picture(n_kernels, iris):
    X, _ = iris
    y = np.array([f"the {k}th of many classes" for k in range(8)])[np.arange(len(X)) % 8]
    kernels = [Linear(), RBF(), RBF(2.0)][:n_kernels]
    comparison = compare_kernels(X, y, kernels, embeddings=["kernel PCA"], repeats=1, cv=2)
    figure = _drawn(comparison.plot()).figure_
    figure.canvas.draw()
    for drawn in (figure.legends[0], figure._suptitle):
        box = drawn.get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.x1


@pytest.mark.parametrize("target", ["classes", "numbers", None])
def test_comparison_has_one_column_a_kernel(target, iris):
    X, y = iris
    y = {"classes": y, "numbers": X[:, 0] + 0.01 * X[:, 1], None: None}[target]
    pictures = ["kernel PCA", "discriminant"]
    comparison = compare_kernels(X, y, [Linear(), RBF()], embeddings=pictures, repeats=1, cv=2)
    display = _drawn(comparison.plot())
    n_embeddings = len(comparison.spaces[0].embeddings)
    assert n_embeddings == (2 if target == "classes" else 1)
    assert display.axes_.shape == (n_embeddings + 1, 2)
    one = _drawn(comparison.plot("kernel PCA", spectra=False))
    assert one.axes_.shape == (1, 2)
    with pytest.raises(ValueError, match="no embedding 'umap'"):
        comparison.plot("umap")
