"""What pgmpy gives: log Z by its partition function, each network in a process of its own with limits.

    python studies/uai/uai_pgmpy.py --uai FOLDER [--seconds 60] [--gigabytes 4]

It needs pgmpy, and not annealz.
"""

import argparse
import json
import math
import multiprocessing
import resource
import time
from pathlib import Path

HERE = Path(__file__).parent


def log_z(path: str, gigabytes: float, queue) -> None:
    """By `get_partition_function`; its elimination gives normalised answers only, without Z."""
    from pgmpy.readwrite import UAIReader  # pyright: ignore[reportMissingImports]

    size = int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    try:
        queue.put(math.log(UAIReader(path).get_model().get_partition_function()))
    except Exception as error:  # whatever it raises is the result
        text = str(error).splitlines()[0] if str(error) else ""
        queue.put(f"{type(error).__name__}: {text}"[:80].rstrip(": "))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uai", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--gigabytes", type=float, default=4.0)
    given = parser.parse_args()
    rows = []
    for path in sorted(given.uai.glob("*.uai")):
        queue = multiprocessing.Queue()
        process = multiprocessing.Process(target=log_z, args=(str(path), given.gigabytes, queue))
        began = time.monotonic()
        process.start()
        process.join(given.seconds)
        seconds = round(time.monotonic() - began, 1)
        value, why = None, f"more than {given.seconds:g} s"
        if process.is_alive():
            process.kill()
        elif not queue.empty():
            answer = queue.get()
            value, why = (answer, None) if isinstance(answer, float) else (None, answer)
        else:
            why = f"more than {given.gigabytes:g} GB"
        reference = float(path.with_name(f"{path.name}.PR").read_text().split()[-1]) * math.log(10)
        rows.append(
            {
                "network": path.stem,
                "method": "pgmpy",
                "limit": None,
                "reference": reference,
                "log_z": value,
                "why": why,
                "seconds": seconds,
            }
        )
        print(json.dumps(rows[-1]), flush=True)
    text = ",\n".join(json.dumps(row) for row in rows)
    (HERE / "pgmpy.json").write_text(f"[\n{text}\n]\n", "utf-8")


if __name__ == "__main__":
    main()
