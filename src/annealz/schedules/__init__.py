"""Annealing schedules, `io/schedules.py` lists them by name."""

from annealz.schedules.choose import choose_schedule as choose_schedule
from annealz.schedules.decelerate import decelerate as decelerate
from annealz.schedules.gms13 import gms13 as gms13
from annealz.schedules.linear import linear as linear
from annealz.schedules.linear import sm08 as sm08
from annealz.schedules.mixing import mixing as mixing
from annealz.schedules.schedule import Schedule as Schedule
from annealz.schedules.varopt import varopt as varopt
