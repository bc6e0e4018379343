"""Pin results again and print what changed: `python tests/golden/pin.py [ARGUMENTS OF PYTEST]`.

Without arguments everything; `tests/golden/test_runs.py -k exchange` pins a part.
"""

import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent

if __name__ == "__main__":
    given = sys.argv[1:] if any("test_" in a for a in sys.argv) else [str(FOLDER), *sys.argv[1:]]
    environment = os.environ | {"ANNEALZ_PIN": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-rN", "--capture=no", *given]
    sys.exit(subprocess.run(command, env=environment, cwd=FOLDER.parents[1]).returncode)
