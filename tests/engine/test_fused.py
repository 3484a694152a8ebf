"""Fused products in Triton's interpreter, which needs no GPU; on one, benchmarks.fused_check."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECK = """
import numpy as np, torch
from mercer import RBF, Linear, Matern, Polynomial, RationalQuadratic
from mercer.engine.fused import FusedProduct

rng = np.random.default_rng(0)
kernels = [
    RBF(0.3), Matern(0.5, 2.0), Matern(1.5, 2.0), Matern(2.5, [1.0, 2.0, 3.0]),
    RationalQuadratic(0.7, 2.0), Polynomial(3, 0.2, 0.5), Linear(),
    2.0 * RBF(0.1) * Matern(1.5) + Polynomial(2) + 1.0, RBF(0.1) * Linear() * Matern(0.5),
]
small = {"rows": 16, "columns": 16}  # several tiles on and beside the diagonal
X, Z = rng.normal(size=(40, 3)) + 1.0, rng.normal(size=(35, 3)) + 1.0
for kernel in kernels:
    V, W = rng.normal(size=(40, 3)), rng.normal(size=(35, 1))
    for rows, columns, right in ((X, None, V), (X, None, V[:, :1]), (X, Z, W)):
        K = kernel(rows) if columns is None else kernel(rows, columns)
        other = None if columns is None else torch.tensor(columns)
        for exact, bound in ((False, 2e-6), (True, 1e-14)):
            form, options = kernel.fused_form(), {"settings": small, "squares": 2}
            product = FusedProduct(form, torch.tensor(rows), other, exact=exact, **options)
            error = np.abs(product(torch.tensor(right)).numpy() - K @ right)
            assert error.max() <= bound * (np.abs(K) @ np.abs(right)).max(), (kernel, exact)
wide = rng.normal(size=(36, 100))
K = RBF(0.01)(wide)
product = FusedProduct(RBF(0.01).fused_form(), torch.tensor(wide))
assert np.abs(product(torch.eye(36)).numpy() - K).max() < 1e-6  # 36 right-hand sides, in parts
print("right")
"""

# Tensors on the CPU that are taken for those of a GPU, and K too large to be stored.
ESTIMATORS = """
import numpy as np, torch
from mercer import RBF, KernelDiscriminant, KernelMap, KernelPCA, KernelRidge
from mercer.engine import Resources, fused, products
from mercer.space import spectra

made = []
class Counted(fused.FusedProduct):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        made.append(self.exact)
fused.FusedProduct = Counted
rng = np.random.default_rng(0)
X, kernel = rng.normal(size=(48, 3)), RBF(0.3)
y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=48)
labels = np.searchsorted([-0.5, 0.5], X[:, 0] * X[:, 1])
want = KernelPCA(3, kernel, solver="dense").fit(X)
ridge = KernelRidge(0.1, kernel, form="dual").fit(X, y).predict(X)
options = KernelMap(kernel, max_rank=12, random_state=0)
given = KernelDiscriminant(kernel=options, shrinkage=0.1, form="iterative", tol=1e-6)
decision = given.fit(X, labels).decision_function(X)

products.is_cpu = spectra.is_cpu = lambda X: False
products._is_cuda = lambda X: True
spectra._LEAST_BASIS, spectra.current = 1, lambda: Resources(48 * 48 * 4 - 1)
for dtype, bound in ((torch.float64, 1e-11), (torch.float32, 2e-6)):
    got = KernelPCA(3, kernel, solver="krylov").fit(torch.tensor(X, dtype=dtype))
    assert made == [dtype == torch.float64], made
    error = np.abs(got.eigenvalues_.numpy() - want.eigenvalues_)
    assert error.max() <= bound * want.eigenvalues_[0], error
    made.clear()
there = torch.tensor(X)
model = KernelRidge(0.1, options, form="iterative", tol=1e-5).fit(there, torch.tensor(y))
assert set(made) == {True, False}  # quick steps, exact residuals
error = np.abs(model.predict(there).numpy() - ridge)
assert np.all(error <= model.error_bound(there).numpy()) and error.max() < 1e-4
made.clear()
got = given.fit(there, torch.tensor(labels)).decision_function(there).numpy()
assert set(made) == {True, False}
assert np.abs(got - decision).max() < 1e-3 * np.abs(decision).max()
print("right")
"""


@pytest.mark.parametrize("script", [CHECK, ESTIMATORS], ids=["products", "estimators"])
def test_in_the_interpreter(script):
    pytest.importorskip("torch", reason="fused products are torch's")
    pytest.importorskip("triton", reason="Triton comes with torch for CUDA")
    source = str(Path(__file__).parents[2] / "src")
    path = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])
    env = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "default::UserWarning:triton", "-c", script],
        env=env,
        capture_output=True,
        text=True,
    )
    if "only 0-dimensional arrays can be converted" in done.stderr:
        pytest.skip("Triton's interpreter does not run with this NumPy")
    assert done.stdout.strip() == "right", done.stderr[-2000:]
