"""Results as one HTML page each, that needs nothing but a browser."""

from annealz.views.report.write import check_report as check_report
from annealz.views.report.write import render_report as render_report
from annealz.views.report.write import write_report as write_report
