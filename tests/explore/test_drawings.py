"""Drawings of objects on the page: what is drawn where, for graphs, paths and sets."""

import base64
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from mercer import (
    RBF,
    GlobalAlignment,
    Linear,
    OnColumns,
    SetOf,
    Signature,
    Spectrum,
    WeisfeilerLehman,
    compare_kernels,
)
from mercer.explore.report import drawings, thumbnails


def svg(image):
    kind, _, content = image.partition(",")
    assert kind == "data:image/svg+xml;base64"
    return base64.b64decode(content).decode()


def strokes(image):
    """colour -> list of points, of all paths of a drawing."""
    found = re.findall(r'<path d="([^"]*)" stroke="([^"]*)"', svg(image))
    return {c: [tuple(map(int, p.split())) for p in re.findall(r"\d+ \d+", d)] for d, c in found}


RING = [(i, (i + 1) % 6) for i in range(6)], "CCCCCC"
CHAIN = [(i, i + 1) for i in range(4)], "CCCCO"


def test_a_ring_is_round_and_a_chain_is_straight():
    (ring, chain), texts = drawings.of_objects(WeisfeilerLehman(2), [RING, CHAIN])
    assert texts == ["6 nodes, 6 edges", "5 nodes, 4 edges"]
    carbon = strokes(ring)[drawings.COLOURS[0]]
    assert len(carbon) == 6
    middle = np.mean(carbon, axis=0)
    radii = np.linalg.norm(np.array(carbon) - middle, axis=1)
    assert_allclose(radii, radii.mean(), rtol=0.06)  # coordinates are whole numbers
    dots = strokes(chain)
    assert len(dots[drawings.COLOURS[0]]) == 4  # the most frequent label has the first colour
    assert len(dots[drawings.COLOURS[1]]) == 1
    nodes = np.array(dots[drawings.COLOURS[0]] + dots[drawings.COLOURS[1]], dtype=float)
    spread = np.linalg.svd(nodes - nodes.mean(axis=0), compute_uv=False)
    assert spread[1] < 0.1 * spread[0]


def test_neighbours_are_nearer_than_others(rng):
    n = 14
    tree = np.array([(i, rng.integers(i)) for i in range(1, n)])
    Z = drawings._layout(n, tree[:, 0], tree[:, 1])
    D = np.linalg.norm(Z[:, None] - Z[None], axis=2)
    joined = np.zeros((n, n), dtype=bool)
    joined[tree[:, 0], tree[:, 1]] = joined[tree[:, 1], tree[:, 0]] = True
    others = ~joined & ~np.eye(n, dtype=bool)
    assert D[joined].mean() < 0.6 * D[others].mean()


@pytest.mark.parametrize("graph", [([], ""), ([], "C"), ([], "CC"), ([(0, 0)], "C")])
def test_graphs_with_hardly_anything(graph):
    (image,), _ = drawings.of_objects(WeisfeilerLehman(1), [graph])
    assert "nan" not in svg(image)


def test_large_graphs_are_not_drawn():
    n = drawings.MOST_NODES + 1
    big = [(i, i + 1) for i in range(n - 1)], ["C"] * n
    (image,), (text,) = drawings.of_objects(WeisfeilerLehman(1), [big])
    assert not strokes(image)
    assert text == f"{n} nodes, {n - 1} edges"


def test_paths_are_lines_over_time():
    up = np.column_stack([np.arange(5.0), -np.arange(5.0)])
    (image,), (text,) = drawings.of_objects(Signature(2), [up])
    assert drawings.of_objects(GlobalAlignment(), [up]) == ([image], [text])
    lines = strokes(image)
    rising, falling = lines[drawings.COLOURS[0]], lines[drawings.COLOURS[1]]
    assert rising[0][1] > rising[-1][1]  # the axis of an image points down
    assert falling[0][1] < falling[-1][1]
    assert text == "5 points, 2 channels"


def test_sets_are_points_on_common_axes():
    small, large = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[0.0, 0.0], [10.0, 10.0]])
    images, texts = drawings.of_objects(SetOf(RBF()), [small, large, np.zeros((0, 2))])
    width = [np.ptp(strokes(image)[drawings.COLOURS[0]], axis=0)[0] for image in images[:2]]
    assert width[1] > 8 * width[0]
    assert texts == ["2 members", "2 members", "0 members"]
    assert not strokes(images[2])


def test_what_is_not_drawn():
    assert drawings.of_objects(Spectrum(2), ["ab"]) is None
    assert drawings.of_objects(SetOf(Spectrum(2)), [["ab"]]) is None
    assert drawings.of_objects(Linear(), np.eye(2)) is None


def test_the_page_draws_a_column_of_a_frame_unless_samples_are_given(rng):
    frame = pd.DataFrame({"weight": rng.normal(size=12)})
    frame.insert(0, "molecule", [RING, CHAIN] * 6)
    kernel = OnColumns(WeisfeilerLehman(1), "molecule") + OnColumns(Linear(), ["weight"])
    options = {"cv": 2, "repeats": 1, "embeddings": []}
    comparison = compare_kernels(frame, [0, 1] * 6, [kernel], **options)
    assert comparison.shows_points
    images, texts = thumbnails.described(comparison.data, kernel)
    assert len(strokes(images[0])[drawings.COLOURS[0]]) == 6
    assert "weight: " in texts[0]
    named = compare_kernels(frame, [0, 1] * 6, [kernel], samples=["a molecule"] * 12, **options)
    assert not named.shows_points
    assert thumbnails.described(named.data) == (None, ["a molecule"] * 12)
