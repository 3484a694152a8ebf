"""The kernel atlas: every kernel class has its texts, and what is computed about it makes sense."""

import importlib.util
import inspect
import sys
from pathlib import Path

import numpy as np
import pytest

import mercer

KERNELS = [
    name
    for name, value in vars(mercer).items()
    if inspect.isclass(value) and issubclass(value, mercer.Kernel) and value is not mercer.Kernel
]
every_kernel = pytest.mark.parametrize("name", KERNELS)


@pytest.fixture(scope="module")
def atlas():
    pytest.importorskip("docutils", reason="docutils is not installed: mercer[docs]")
    path = Path(__file__).parent.parent / "docs/atlas.py"
    spec = importlib.util.spec_from_file_location("atlas", path)
    module = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    spec.loader.exec_module(module)
    sys.path[:] = before
    return module


@every_kernel
def test_the_docstring_says_what_no_computation_can(name):
    notes = inspect.getdoc(getattr(mercer, name)).partition("Notes\n-----\n")[2]
    for needed in (".. math::", "*Valid*: ", "*Fails*: ", "*Elsewhere*: "):
        assert needed in notes


@every_kernel
def test_pictures_and_facts(name, atlas):
    if name == "GlobalAlignment":
        pytest.importorskip("tslearn")
    kernel = atlas.instance(name)
    assert isinstance(kernel, getattr(mercer, name))
    found = dict(atlas.facts(kernel))
    assert found["valid"].startswith(("yes", "no", "tested"))
    K, _ = atlas.matrix(kernel)
    np.testing.assert_allclose(K, K.T, rtol=1e-12)
    lines, spectrum = atlas.draws(kernel), atlas.density(kernel)
    if kernel.is_psd and atlas.on_vectors(kernel):
        assert np.isfinite(lines).all()
    else:
        assert lines is None
    if spectrum is not None:  # Bochner: the spectral density of a kernel is not negative
        assert spectrum.min() > -1e-3 * spectrum.max()


def test_the_spectral_density_of_rbf_is_gaussian(atlas):
    gamma = 0.7
    expected = np.sqrt(np.pi / gamma) * np.exp(-(atlas.FREQUENCIES**2) / (4 * gamma))
    np.testing.assert_allclose(atlas.density(mercer.RBF(gamma)), expected, atol=1e-6)


def test_finite_maps_are_counted(atlas):
    found = dict(atlas.facts(mercer.Polynomial(2)))
    assert found["finite map of its own"] == "6 for 2 columns, 15 for 4 columns, 66 for 10 columns"
