"""Figures: functions of a result and of axes, which they make where none are given.

Figures are made without pyplot, so that they need no display and nothing global changes; a
notebook shows them, `figure.savefig(file)` writes them, and of axes `ax.figure.savefig(file)`.
"""

from annealz.views.plots.results import plot_comparison as plot_comparison
from annealz.views.plots.results import plot_contender_ess as plot_contender_ess
from annealz.views.plots.results import plot_contender_log_z as plot_contender_log_z
from annealz.views.plots.results import plot_contender_schedules as plot_contender_schedules
from annealz.views.plots.results import plot_convergence as plot_convergence
from annealz.views.plots.results import plot_ess as plot_ess
from annealz.views.plots.results import plot_estimate as plot_estimate
from annealz.views.plots.results import plot_evidence as plot_evidence
from annealz.views.plots.results import plot_exchange as plot_exchange
from annealz.views.plots.results import plot_ladder as plot_ladder
from annealz.views.plots.results import plot_nested as plot_nested
from annealz.views.plots.results import plot_rounds as plot_rounds
from annealz.views.plots.results import plot_runs as plot_runs
from annealz.views.plots.results import plot_weights as plot_weights
from annealz.views.plots.results import plot_work as plot_work
from annealz.views.plots.schedule import plot_dwell as plot_dwell
from annealz.views.plots.schedule import plot_mean as plot_mean
from annealz.views.plots.schedule import plot_pilot_ess as plot_pilot_ess
from annealz.views.plots.schedule import plot_schedule as plot_schedule
from annealz.views.plots.schedule import plot_tau as plot_tau
from annealz.views.plots.schedule import plot_terrain as plot_terrain
from annealz.views.plots.schedule import plot_variance as plot_variance
