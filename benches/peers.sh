#!/bin/sh
# The speed of the simulator beside ns-2 (Debian package ns2), on the same scenario in the same call: bottleneck packets
# per second of processor time, one thread each.
#
#   benches/peers.sh [flows ...]        10, 100 and 1000 without arguments
#
# SECONDS_OF_TIME (60) is the virtual time.
set -eu
cd "$(dirname "$0")/.."
seconds=${SECONDS_OF_TIME:-60}
[ $# -gt 0 ] || set -- 10 100 1000
command -v ns >/dev/null || { echo "ns-2 is not installed: apt install ns2" >&2; exit 1; }
command -v python3 >/dev/null || { echo "python3 is needed" >&2; exit 1; }

cargo build --quiet --release --package simulator --bench dumbbell
ours=$(cargo bench --quiet --package simulator --bench dumbbell --no-run --message-format json |
    python3 -c 'import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("target", {}).get("name") == "dumbbell" and message.get("executable"):
        print(message["executable"])')

printf '%8s %8s %16s %16s %8s\n' flows topology "Sinnet packets/s" "ns-2 packets/s" ratio
for topology in shared access; do
    for flows in "$@"; do
        "$ours" "$flows" "$topology" "seconds=$seconds" >"${TMPDIR:-/tmp}/peers.$$"
        python3 - "$flows" "$topology" "$seconds" "${TMPDIR:-/tmp}/peers.$$" <<'PYTHON'
import json, resource, subprocess, sys

flows, topology, seconds, path = sys.argv[1:]
with open(path) as lines:
    ours = json.loads(lines.readline())["packets_per_cpu_s"]
run = subprocess.run(
    ["ns", "benches/ns2_dumbbell.tcl", flows, seconds, topology], capture_output=True, text=True, check=True)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
theirs = json.loads(run.stdout)["bottleneck_packets"] / (usage.ru_utime + usage.ru_stime)
print(f"{flows:>8} {topology:>8} {ours:16,.0f} {theirs:16,.0f} {ours / theirs:8.1f}")
PYTHON
        rm -f "${TMPDIR:-/tmp}/peers.$$"
    done
done
