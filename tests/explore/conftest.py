"""What all tests of comparisons and pictures share."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def quick(few_trees):
    """Ordinary models are compared as they are; a hundred rounds of boosting prove no more."""
