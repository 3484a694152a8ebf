"""The count of cases and outcomes, printed at the end of the run."""

import matplotlib
import pytest

from fuzz.outcomes import Tally

matplotlib.use("Agg")


@pytest.fixture
def tally(record_property):
    tally = Tally()
    record_property("fuzz", tally.outcomes)  # filled in by the time the test is reported
    return tally


@pytest.fixture(autouse=True, scope="module")
def quick(few_trees):
    """Hostile data meet a comparison's own code; how many trees it grows does not matter."""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Files with odd names are written where they are thrown away, figures closed."""
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    yield
    plt.close("all")
