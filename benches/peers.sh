#!/bin/sh
# The speed of the simulator beside ns-2 (Debian package ns2), on the same scenario in the same call: bottleneck packets
# per second of processor time, one thread each.
#
#   benches/peers.sh [flows ...]        10, 1000 and 10000 without arguments
#
# SECONDS_OF_TIME is the virtual time: 60, and with more than 1000 flows as much less as there are more flows.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- 10 1000 10000
command -v ns >/dev/null || { echo "ns-2 is not installed: apt install ns2" >&2; exit 1; }
command -v python3 >/dev/null || { echo "python3 is needed" >&2; exit 1; }

cargo build --quiet --release --package sinnet-simulator --bench dumbbell
ours=$(cargo bench --quiet --package sinnet-simulator --bench dumbbell --no-run --message-format json |
    python3 -c 'import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("target", {}).get("name") == "dumbbell" and message.get("executable"):
        print(message["executable"])')

printf '%8s %8s %16s %8s %16s %8s %8s\n' flows topology "Sinnet packets/s" "peak MB" "ns-2 packets/s" "peak MB" ratio
for topology in shared access; do
    for flows in "$@"; do
        seconds=${SECONDS_OF_TIME:-$((flows > 1000 ? 60000 / flows : 60))}
        "$ours" "$flows" "$topology" "seconds=$seconds" >"${TMPDIR:-/tmp}/peers.$$"
        python3 - "$flows" "$topology" "$seconds" "${TMPDIR:-/tmp}/peers.$$" <<'PYTHON'
import json, resource, subprocess, sys

flows, topology, seconds, path = sys.argv[1:]
with open(path) as lines:
    ours = json.loads(lines.readline())
run = subprocess.run(
    ["ns", "benches/ns2_dumbbell.tcl", flows, seconds, topology], capture_output=True, text=True, check=True)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
theirs = json.loads(run.stdout)["bottleneck_packets"] / (usage.ru_utime + usage.ru_stime)
rate = ours["packets_per_cpu_s"]
print(f"{flows:>8} {topology:>8} {rate:16,.0f} {ours['peak_mb']:8.0f} "
      f"{theirs:16,.0f} {usage.ru_maxrss / 1024:8.0f} {rate / theirs:8.1f}")
PYTHON
        rm -f "${TMPDIR:-/tmp}/peers.$$"
    done
done
