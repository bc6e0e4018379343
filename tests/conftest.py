"""What all tests share: compiled programs, the seed, deterministic hypothesis, no windows."""

import atexit
import ctypes
import functools
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")
# Programs are compiled once for both workers and for the processes that tests start.
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".cache" / "tests-jax")
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
# A worker and its processes keep to one core: threads of two workers on two cores only wait for each other.
os.environ.setdefault("NPROC", "2")  # threads of XLA, which some programs need two of
# Nor is a program cut into parts that are compiled at the same time; bits depend on the cuts.
if "parallel_codegen_split_count" not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = (
        os.environ.get("XLA_FLAGS", "") + " --xla_cpu_parallel_codegen_split_count=1"
    ).strip()
if "PYTEST_XDIST_WORKER" in os.environ and hasattr(os, "sched_setaffinity"):
    _cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {_cores[int(os.environ["PYTEST_XDIST_WORKER"][2:]) % len(_cores)]})

import psutil
import pytest

pytest.register_assert_rewrite("support")

# Nearly all that lives was imported or compiled and stays: collecting took a twentieth of the time.
gc.set_threshold(50_000, 20, 100)

_LARGE = 1.4e9  # bytes of a worker
_GROWTH = 0.4e9
_limit = _LARGE
_LONGEST = (
    "test_runs",
    "test_tutorials",
    "test_pages_models",
    "test_pages_start",
    "test_examples",
    "test_terminal",
    "test_report",
    "test_cluster",
    "test_from_prior",
    "test_discrete_density",
    "test_density_search",
    "test_layered_rbm",
    "test_log_z",
    "test_survey_mixing",
    "test_resampling",
    "test_likelihood",
    "test_paths",
    "test_base_search",
    "test_reverse",
    "test_estimate",
    "test_nested",
    "test_exchange",
    "test_factor_graph",
    "test_log_density",
    "test_mixing",
    "test_mixture",
    "test_discrete_kernels",
    "test_conservative",
    "test_problem",
    "test_contrastive",
    "test_varopt",
    "test_families",
    "test_entropy",
    "test_anneal",
    "test_first_hour",
    "test_clusters",
    "test_plugins",
    "test_survey",
    "test_fused",
    "test_rectified_units",
    "test_plan",
    "test_exchange_log_z",
    "test_anneal_traces",
)

# What is shown, and takes long to draw: no number depends on it.
_VIEWS = {"test_notebook", "test_plots", "test_report", "test_terminal"}
_MORE = {
    line
    for line in (Path(__file__).parent / "more.txt").read_text().splitlines()
    if line and not line.startswith("#")
}


def pytest_configure(config: pytest.Config) -> None:
    """The process that only hands tests to workers imports nothing heavy: they wait for it."""
    if config.getoption("numprocesses", None):
        return
    import hypothesis

    # An overridden seed asks for new examples as well.
    hypothesis.settings.register_profile(
        "annealz", deadline=None, derandomize="ANNEALZ_TEST_SEED" not in os.environ
    )
    hypothesis.settings.load_profile("annealz")


def pytest_collection_finish() -> None:
    _share_context()
    gc.freeze()


def _share_context() -> None:
    """One context of MLIR for all programs: JAX makes one for each, in 4 ms and 1 MB of memory."""
    mlir = sys.modules.get(
        "jax._src.interpreters.mlir"
    )  # not public: where it moves, nothing is shared
    make = getattr(mlir, "make_ir_context", None)
    if mlir is not None and make is not None:
        mlir.make_ir_context = functools.cache(make)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take longest come first, so that two workers end together."""
    for item in items:
        if item.nodeid.removeprefix("tests/") in _MORE:
            item.add_marker(pytest.mark.more)
        if item.path.stem in _VIEWS:
            item.add_marker(pytest.mark.views)
    rank = {name: n for n, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))


def pytest_sessionfinish() -> None:
    """A worker ends at once: to take apart a gigabyte of programs takes seconds."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        atexit.register(os._exit, 0)


def pytest_report_header() -> str:
    from annealz.testing import default_seed

    return f"annealz seed: {default_seed()} (ANNEALZ_TEST_SEED)"


@pytest.fixture
def compiled() -> Iterator[list[str]]:
    """Names of what is compiled."""
    from jax import monitoring

    names = []

    def note(event: str, _: float, **words) -> None:
        if event.endswith("backend_compile_duration"):
            names.append(words.get("fun_name"))

    monitoring.register_event_duration_secs_listener(note)
    yield names
    monitoring.unregister_event_duration_listener(note)


@pytest.fixture(autouse=True, scope="module")
def _programs() -> None:
    """Programs are dropped where a worker has grown large, else it grows to gigabytes.

    Little of the memory goes back to the system: without the second condition a worker that was large
    once would compile everything again for each file.
    """
    global _limit
    if psutil.Process().memory_info().rss > _limit:
        import jax

        jax.clear_caches()
        gc.collect()
        if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
            libc.malloc_trim(0)
        _limit = max(_LARGE, psutil.Process().memory_info().rss + _GROWTH)


@pytest.fixture
def optimised() -> Iterator[None]:
    """For a test that computes for seconds: it pays to optimise its programs."""
    import jax

    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture
def seed() -> int:
    """The seed of a statistical test."""
    from annealz.testing import default_seed

    return default_seed()
