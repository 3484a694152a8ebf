"""Saved models, changed at random or by an attacker: refused, or a model that harms nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.cases import ROUNDS, SEED

COUNT = 300 * ROUNDS

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


@pytest.mark.parametrize("how", ["random", "directed"])
def test_changed_files_harm_nothing(how, tmp_path):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "fuzz.mutated"]
        + [str(SEED * 10**6), str(COUNT), str(tmp_path), how],
        cwd=Path(__file__).parents[1],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    outcomes = json.loads(run.stdout)
    print(f"{COUNT} files changed ({how}): {outcomes}")
    assert sum(outcomes.values()) == COUNT
    assert min(outcomes["refused"], outcomes["loaded"]) > 0.1 * COUNT  # both sides are tried
