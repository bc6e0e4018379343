#!/usr/bin/env bash
# The runs of studies/evidence that are missing, on a machine with 16 cores: at most 9 minutes.
# Run in the repository's root; .carry-evidence holds the packages. $OUT gets hard.jsonl, peers.jsonl,
# annealz.jsonl and queue.log.
set -u
root=$PWD
export PYTHONPATH=$root/src:$root/studies/evidence:$root/.carry-evidence
python3 -c "import matplotlib" 2>/dev/null || export PYTHONPATH=$PYTHONPATH:$root/.carry-evidence/stubs
export PYTHONDONTWRITEBYTECODE=1 JAX_PLATFORMS=cpu
out=${OUT:-/tmp/evidence-out}
for p in annealz blackjax dynesty ultranest nautilus pocomc numpyro sklearn; do
  python3 -c "import $p" 2>&1 | tail -1 | sed "s/^/import $p: /"
done
exec python3 studies/evidence/evidence_queue.py --out "$out" --workers "${WORKERS:-16}" --seconds "${SECONDS_IN_ALL:-510}" "$@"
