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


_LONGEST = (
    "test_tutorials",
    "test_pages_models",
    "test_pages_start",
    "test_examples",
    "test_distributed",
    "test_terminal",
    "test_fused_many",
    "test_report",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take longest come first, so that two workers end together."""
    rank = {name: n for n, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))


def pytest_report_header() -> str:
    return f"annealz seed: {default_seed()} (ANNEALZ_TEST_SEED)"


@pytest.fixture
def seed() -> int:
    """The seed of a statistical test."""
    return default_seed()
