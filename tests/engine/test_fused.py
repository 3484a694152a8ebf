"""Fused products in Triton's interpreter, which needs no GPU; on one, benchmarks/fused_check.py."""

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
X, Z = rng.normal(size=(40, 3)) + 1.0, rng.normal(size=(35, 3)) + 1.0
for kernel in kernels:
    V, W = rng.normal(size=(40, 3)), rng.normal(size=(35, 1))
    for rows, columns, right in ((X, None, V), (X, Z, W)):
        K = kernel(rows) if columns is None else kernel(rows, columns)
        other = None if columns is None else torch.tensor(columns)
        for exact, bound in ((False, 2e-6), (True, 1e-14)):
            product = FusedProduct(kernel.fused_form(), torch.tensor(rows), other, exact=exact)
            error = np.abs(product(torch.tensor(right)).numpy() - K @ right)
            assert error.max() <= bound * (np.abs(K) @ np.abs(right)).max(), (kernel, exact)
wide = rng.normal(size=(36, 100))
K = RBF(0.01)(wide)
product = FusedProduct(RBF(0.01).fused_form(), torch.tensor(wide))
assert np.abs(product(torch.eye(36)).numpy() - K).max() < 1e-6  # 36 right-hand sides, in parts
print("right")
"""


def test_every_function_in_both_precisions():
    pytest.importorskip("torch", reason="fused products are torch's")
    pytest.importorskip("triton", reason="Triton comes with torch for CUDA")
    source = str(Path(__file__).parents[2] / "src")
    env = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "default::UserWarning:triton", "-c", CHECK],
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "right", done.stderr[-2000:]
