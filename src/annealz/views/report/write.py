"""A result to its page, and the page to its file."""

from pathlib import Path

from annealz.io.files import write_atomic
from annealz.methods.annealing.estimate import Estimate
from annealz.methods.exchange.estimate import ExchangeEstimate
from annealz.methods.nested.estimate import NestedEstimate
from annealz.results.compare import Comparison
from annealz.views.report.comparison import comparison_page
from annealz.views.report.estimate import estimate_page
from annealz.views.report.exchange import exchange_page
from annealz.views.report.nested import nested_page

__all__ = ["check_report", "render_report", "write_report"]

_ENDINGS = (".html", ".htm")


Result = Estimate | ExchangeEstimate | NestedEstimate | Comparison


def render_report(result: Result) -> str:
    """The page of a result: equal results give equal pages."""
    if isinstance(result, ExchangeEstimate):
        return exchange_page(result)
    if isinstance(result, NestedEstimate):
        return nested_page(result)
    return estimate_page(result) if isinstance(result, Estimate) else comparison_page(result)


def write_report(result: Result, path: str | Path) -> None:
    """Write the page of a result, atomically."""
    path = check_report(path)
    page = render_report(result)
    try:
        write_atomic(path, page)
    except OSError as error:
        raise ValueError(f"cannot write the report {path}: {error.strerror or error}.") from error


def check_report(path: str | Path) -> Path:
    """Refuse a place where no page can be written."""
    path = Path(path)
    if path.suffix.lower() not in _ENDINGS:
        raise ValueError(f"the report {path} must end in .html.")
    if path.is_dir():
        raise ValueError(f"the report {path} is a folder: give a file.")
    if not path.parent.is_dir():
        raise ValueError(f"the report {path} is to go to a folder that does not exist.")
    return path
