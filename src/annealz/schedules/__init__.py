"""Annealing schedules, `io/schedules.py` lists them by name."""

from annealz.schedules.choose import choose_schedule as choose_schedule
from annealz.schedules.rules import gms13 as gms13
from annealz.schedules.rules import linear as linear
from annealz.schedules.rules import mixing as mixing
from annealz.schedules.rules import sm08 as sm08
from annealz.schedules.rules import varopt as varopt
from annealz.schedules.schedule import Schedule as Schedule
from annealz.schedules.steps import decelerate as decelerate
