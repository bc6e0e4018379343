"""One run of the engine in a fresh process: seconds and peak resident memory, as a line of JSON.

    python benchmarks/case.py NUM_HIDDEN NUM_CHAINS NUM_STEPS

A process a case, so that peaks do not mix. The peak is VmHWM of /proc/self/status where there is
one: Linux hands `ru_maxrss` down from the process that started this one, so that it shows the
starter's size if that is larger. `first_seconds` is a short run that compiles; `seconds` is the run
of NUM_STEPS after it; `start_mib` is the peak before either, with all modules imported.
"""

import json
import re
import resource
import sys
from pathlib import Path

import jax

from engine import engine_on
from problem import random_rbm

_SHORT = 20


def peak_mib() -> float:
    """Largest resident set of this process so far, MiB."""
    status = Path("/proc/self/status")
    if status.exists() and (found := re.search(r"VmHWM:\s+(\d+) kB", status.read_text())):
        return int(found[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS, KiB elsewhere
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024


def main() -> None:
    jax.config.update("jax_platforms", "cpu")
    num_hidden, num_chains, num_steps = (int(word) for word in sys.argv[1:])
    engine = engine_on(random_rbm(num_hidden), num_chains)
    start = peak_mib()
    first = engine(_SHORT).seconds
    seconds = engine(num_steps).seconds
    case = {"num_hidden": num_hidden, "num_chains": num_chains, "num_steps": num_steps}
    times = {"seconds": seconds, "first_seconds": first}
    print(json.dumps(case | times | {"peak_mib": peak_mib(), "start_mib": start}))


if __name__ == "__main__":
    main()
