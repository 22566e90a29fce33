#!/bin/sh
# The speed of the simulator beside ns-2 (Debian package ns2) and htsim (github.com/Broadcom/csg-htsim), on the same
# scenario in the same call: bottleneck packets per second of processor time, one thread each.
#
#   benches/peers.sh [flows ...]        10, 1000 and 10000 without arguments
#
# SECONDS_OF_TIME is the virtual time: 60, and with more than 1000 flows as much less as there are more flows.
# HTSIM is the directory of a built htsim (`make libhtsim.a` in its sim); without it htsim is left out.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- 10 1000 10000
command -v ns >/dev/null || { echo "ns-2 is not installed: apt install ns2" >&2; exit 1; }
command -v python3 >/dev/null || { echo "python3 is needed" >&2; exit 1; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if [ -n "${HTSIM:-}" ]; then
    [ -e "$HTSIM/libhtsim.a" ] || HTSIM=$HTSIM/sim
    [ -e "$HTSIM/libhtsim.a" ] || { echo "HTSIM has no libhtsim.a: run 'make libhtsim.a' in the sim of csg-htsim" >&2; exit 1; }
    ${CXX:-g++} -std=c++11 -O3 -I"$HTSIM" -o "$scratch/htsim" benches/htsim_dumbbell.cpp "$HTSIM/libhtsim.a"
fi

cargo build --quiet --release --package sinnet-simulator --bench dumbbell
ours=$(cargo bench --quiet --package sinnet-simulator --bench dumbbell --no-run --message-format json |
    python3 -c 'import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("target", {}).get("name") == "dumbbell" and message.get("executable"):
        print(message["executable"])')

printf '%8s %8s %16s %8s %16s %8s %8s' flows topology "Sinnet packets/s" "peak MB" "ns-2 packets/s" "peak MB" ratio
[ -z "${HTSIM:-}" ] || printf ' %16s %8s %8s' "htsim packets/s" "peak MB" ratio
echo
for topology in shared access; do
    for flows in "$@"; do
        seconds=${SECONDS_OF_TIME:-$((flows > 1000 ? 60000 / flows : 60))}
        "$ours" "$flows" "$topology" "seconds=$seconds" >"$scratch/ours"
        python3 - "$flows" "$topology" "$seconds" "$scratch" <<'PYTHON'
import json, os, subprocess, sys

flows, topology, seconds, scratch = sys.argv[1:]
with open(f"{scratch}/ours") as lines:
    ours = json.loads(lines.readline())
rate = ours["packets_per_cpu_s"]
line = f"{flows:>8} {topology:>8} {rate:16,.0f} {ours['peak_mb']:8.0f}"
peers = [["ns", "benches/ns2_dumbbell.tcl"]]
if os.path.exists(f"{scratch}/htsim"):
    peers.append([f"{scratch}/htsim"])
for peer in peers:
    with subprocess.Popen([*peer, flows, seconds, topology], stdout=subprocess.PIPE, text=True) as run:
        told = run.stdout.read()
        _, status, usage = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
    if run.returncode != 0:
        sys.exit(f"{peer[0]} ended with {run.returncode}")
    theirs = json.loads(told)["bottleneck_packets"] / (usage.ru_utime + usage.ru_stime)
    line += f" {theirs:16,.0f} {usage.ru_maxrss / 1024:8.0f} {rate / theirs:8.1f}"
print(line, flush=True)
PYTHON
    done
done
