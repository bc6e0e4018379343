"""Figures: functions of a result and of axes, which they make where none are given.

Figures are made without pyplot, so that they need no display and nothing global changes; a
notebook shows them, `figure.savefig(file)` writes them, and of axes `ax.figure.savefig(file)`.
"""
