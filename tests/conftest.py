"""What all tests share: the seed, deterministic hypothesis, no windows."""

import os

os.environ.setdefault("MPLBACKEND", "Agg")

import hypothesis
import pytest

from annealz.testing import default_seed

# An overridden seed asks for new examples as well.
hypothesis.settings.register_profile(
    "annealz", deadline=None, derandomize="ANNEALZ_TEST_SEED" not in os.environ
)
hypothesis.settings.load_profile("annealz")


def pytest_report_header() -> str:
    return f"annealz seed: {default_seed()} (ANNEALZ_TEST_SEED)"


@pytest.fixture
def seed() -> int:
    """The seed of a statistical test."""
    return default_seed()
