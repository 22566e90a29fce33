//! A stranger on the Ethernet of two daemons claims to be the peer, without any HIP or ESP: by HIT, by LSI, through a host that
//! forwards, and as a program of the same host. The oracle is a program that prints what it receives: the first thing must be
//! what the true peer said through the tunnel afterwards.

use crate::common;

/// What `common::in_namespaces` runs. The stranger's host is the bridge between the two.
const SCRIPT: &str = r#"
unshare --net sleep 100 & stranger=$!
for _ in $(seq 50); do
    [ "$(readlink /proc/$stranger/ns/net)" != "$(readlink /proc/$$/ns/net)" ] && break; sleep 0.1
done
X="nsenter --net=/proc/$stranger/ns/net"
$X ip link set lo up; $X ip link add br0 type bridge
ip link add eth0 type veth peer name pa; ip link set pa netns $stranger
$there ip link add eth0 type veth peer name pb; $there ip link set pb netns $stranger
for port in pa pb; do $X ip link set $port master br0; $X ip link set $port up; done
$X ip link set br0 up; $X ip addr add 10.7.0.66/24 dev br0
ip link set eth0 up; $there ip link set eth0 up
ip addr add 10.7.0.1/24 dev eth0; $there ip addr add 10.7.0.2/24 dev eth0
A=$($sinnet keygen --out a.pem); B=$($sinnet keygen --out b.pem)
configure() { # host, peer's name, peer's HIT, peer's number
    printf 'identity = "%s.pem"\nname = "%s.hip"\n[[path]]\nname = "eth"\naddress = "10.7.0.%s"\n' $1 $1 $5
    printf '[[peer]]\nname = "%s.hip"\nhit = "%s"\nlocators = ["10.7.0.%s"]\n' $2 $3 $4
}
configure a b $B 2 1 >a.toml; configure b a $A 1 2 >b.toml
up_on_both
ping -c 2 -i 0.2 -W 5 $B
lsis() { $sinnet status --control $1.sock | sed -n 's/.*LSI \([0-9.]*\).*/\1/p'; }
set -- $(lsis a); own=$1 peer=$2 # A's names for itself and for B
cat >udp.py <<'P'
import socket, sys
what, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, socket.SOCK_DGRAM)
if what == 'hear':
    s.bind((address, port)); s.settimeout(15); print('bound', flush=True)
    data, sender = s.recvfrom(100); print(data.decode(), 'from', sender[0], flush=True)
else:
    if len(sys.argv) > 5: # a program without privileges may bind what is not its host's (IPV6_FREEBIND)
        s.setsockopt(socket.IPPROTO_IPV6, 78, 1); s.bind((sys.argv[5], 0))
    try: s.sendto(sys.argv[4].encode(), (address, port))
    except OSError as e: print('not sent:', e)
P
port=5000
hear() { # where it runs, on which address; what is said there first goes into $heard
    port=$((port + 1)); rm -f heard
    $1 python3 udp.py hear $2 $port >heard & hearer=$!
    for _ in $(seq 100); do grep -qs bound heard && return; sleep 0.1; done; exit 1
}
true_word() { # what was heard must be this
    wait $hearer; cat heard; grep -qx "truth from $1" heard
}
mac=$(ip -o link show eth0 | sed 's/.*ether \([^ ]*\).*/\1/')
$X ip addr add $B/128 dev br0 nodad; $X ip route add $A/128 dev br0; $X ip neigh add $A lladdr $mac dev br0
$X ip addr add $peer/32 dev br0; $X ip route add $own/32 dev br0 src $peer; $X ip neigh add $own lladdr $mac dev br0
for filter in 0 1 2; do
    for conf in all eth0; do echo $filter >/proc/sys/net/ipv4/conf/$conf/rp_filter; done
    hear "" $A; $X python3 udp.py say $A $port lie; sleep 0.3
    $there python3 udp.py say $A $port truth; true_word $B
    hear "" $own; $X python3 udp.py say $own $port lie; sleep 0.3
    # To the LSI that B has for A.
    set -- $($there $sinnet status --control b.sock | sed -n 's/.*LSI \([0-9.]*\).*/\1/p')
    $there python3 udp.py say $2 $port truth; true_word $peer
done
# A forwards, and the stranger sends A's own identity through it to B.
echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
$X ip addr del $B/128 dev br0; $X ip addr add $A/128 dev br0 nodad
$X ip route del $A/128 dev br0 2>/dev/null || true
$X ip route add $B/128 dev br0 src $A; $X ip neigh add $B lladdr $mac dev br0
hear "$there" $B; $X python3 udp.py say $B $port lie; sleep 0.3
python3 udp.py say $B $port truth; true_word $A
# A program of A that has no privileges claims to be B to another program of A.
hear "" $A; setpriv --bounding-set -all --inh-caps -all python3 udp.py say $A $port lie $B; sleep 0.3
$there python3 udp.py say $A $port truth; true_word $B
# Nobody flushes the filter away while we run, where the kernel knows owners (6.9); elsewhere the daemon ends rather.
if command -v nft >/dev/null; then
    # The lies were there: by HIT, by LSI, through us, and of a program.
    dropped() { nft list chain inet sinnet-sinnet0 arriving | sed -n "$1{s/.*packets \\([0-9]*\\).*/\\1/p}"; }
    for rule in /nh,64,32.*0x20010020.counter/ "/ip saddr @lsis counter/" "/ip6 saddr !=/"; do
        [ "$(dropped "$rule")" -gt 0 ]
    done
    nft flush ruleset; sleep 0.3
    nft list tables | grep -q 'inet sinnet-sinnet0' || ! kill -0 $a
    kill -0 $a || { grep -q 'removed our packet filter' a.log; echo "all went well"; exit 0; }
fi
kill -TERM $a; wait $a
kill -TERM $b; wait $b
kill $stranger
echo "all went well"
"#;

#[test]
fn a_stranger_on_the_ethernet_is_not_taken_for_the_peer() {
    common::in_namespaces(SCRIPT, 90, &[]);
}
