#!/usr/bin/env bash
# Every test of dieharder on the engine's random words, in every order; one process a test. What is
# weak is tested on, with more samples, until it passes or fails (-Y 1).
#   bash benchmarks/battery.sh OUT_FOLDER [PROCESSES] [ORDER …]
set -u
here=$(dirname "$0")
out=$1
processes=${2:-2}
shift 2 || shift $#
orders=${*:-engine steps chains low}
python=${PYTHON:-python3}
mkdir -p "$out"

tasks() {  # order, dieharder's test number, its n-tuple, where in the stream to start
  local start=0
  for order in $orders; do
    for lag in $(seq 32 -1 0); do echo "$order 203 $lag"; done
    # 5, 6, 7 and 14 are left out: dieharder marks them suspect or "do not use", and 14 fails AES too
    for test in 0 1 2 3 4 8 9 10 11 12 13 15 16 17 100 101 102 204 205 206 209; do
      echo "$order $test 0"
    done
    for n in $(seq 1 12); do echo "$order 200 $n"; done
    for n in 2 3 4 5; do echo "$order 201 $n"; echo "$order 202 $n"; done
    echo "$order 207 32"
    for n in 0 1; do echo "$order 208 $n"; done
  done | while read -r line; do echo "$line $start"; start=$((start + 4000)); done
}

one() {
  JAX_PLATFORMS=cpu XLA_FLAGS=--xla_cpu_multi_thread_eigen=false "$python" "$here/random_words.py" "$1" "$4" 2>/dev/null |
    dieharder -g 200 -d "$2" -n "$3" -Y 1 2>/dev/null | grep -E 'PASSED|WEAK|FAILED' | sed "s/^/$1 /"
}
export -f one
export here python
tasks | xargs -P "$processes" -L 1 bash -c 'one "$@"' _ >> "$out/dieharder.txt"
for order in $orders; do
  for verdict in PASSED WEAK FAILED; do
    echo "$order $verdict $(grep "^$order " "$out/dieharder.txt" | grep -c "$verdict")"
  done
done
