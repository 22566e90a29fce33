//! A download over links that are narrower in the middle, with everything dropped that could tell of it (all ICMP but pings and
//! neighbours) and, where HIP's own packets need none, every fragment. The oracles are curl and the kernel's counters. Where
//! namespaces are not allowed the test says so and does nothing.

use crate::common;

/// What `common::in_namespaces` runs: a client here, two routers, a server there; the link between the routers carries 20 Mbit/s.
const SCRIPT: &str = r#"
host r1; host r2
ip link add e1 type veth peer name w1 netns $r1_pid
$r1 ip link add m1 type veth peer name m2 netns $r2_pid
$there ip link add f1 type veth peer name w2 netns $r2_pid
join() { # namespace's command, interface, IPv4 address, IPv6 address
    # Neighbours are found at once, not after the second or two in which the kernel asks whether an address is another's.
    $1 sysctl -qw net.ipv6.conf.$2.accept_dad=0
    $1 ip addr add $3 dev $2; $1 ip addr add $4 dev $2 nodad; $1 ip link set $2 up
}
join "" e1 10.1.0.1/24 fd01::1/64; join "$r1" w1 10.1.0.2/24 fd01::2/64
join "$r1" m1 10.2.0.1/24 fd02::1/64; join "$r2" m2 10.2.0.2/24 fd02::2/64
join "$r2" w2 10.3.0.2/24 fd03::2/64; join "$there" f1 10.3.0.1/24 fd03::1/64
for r in "$r1" "$r2"; do
    $r sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
    $r nft 'add table inet mute; add chain inet mute out { type filter hook output priority 0; }
        add rule inet mute out ip protocol icmp drop
        add rule inet mute out icmpv6 type { 1, 2, 3, 4 } drop'
done
ip route add default via 10.1.0.2; ip route add default via fd01::2
$there ip route add default via 10.3.0.2; $there ip route add default via fd03::2
$r1 ip route add 10.3.0.0/24 via 10.2.0.2; $r1 ip route add fd03::/64 via fd02::2
$r2 ip route add 10.1.0.0/24 via 10.2.0.1; $r2 ip route add fd01::/64 via fd02::1
A=$($sinnet keygen --out a.pem); B=$($sinnet keygen --out b.pem)
head -c 30000000 /dev/urandom >file
$there python3 -m http.server --bind :: 8000 >/dev/null 2>&1 &
cut='add table inet cut; add chain inet cut in { type filter hook prerouting priority -450; }
    add rule inet cut in ip frag-off & 0x3fff != 0 counter drop; add rule inet cut in exthdr frag exists counter drop'
mtu_of() { $sinnet status --control $1.sock --json | sed -n 's/^ *"mtu": *\([0-9]*\),*/\1/p' | head -n 1; }
counted() { $sinnet status --control $1.sock --json | sed -n "s/^ *\"$2\": *\([0-9]*\),*/\1/p" | head -n 1; }
size() { stat -c %s got 2>/dev/null || echo 0; }
narrow() { # MTU: as routers have it, which drop what is larger
    $r1 ip link set m1 mtu $1; $r2 ip link set m2 mtu $1
    # The queue has room for a fifth of a second, in packets of either size.
    for link in "$r1 tc qdisc replace dev m1" "$r2 tc qdisc replace dev m2"; do
        $link root tbf rate 20mbit burst 10k limit 200k
    done
}
download() { # MTU, its least that is found, address of the server, of the client
    narrow $1
    printf 'identity = "a.pem"\n[[peer]]\nname = "b.hip"\nhit = "%s"\nlocators = ["%s"]\n' $B $3 >a.toml
    printf 'identity = "b.pem"\n[[peer]]\nname = "a.hip"\nhit = "%s"\nlocators = ["%s"]\n' $A $4 >b.toml
    up_on_both
    rm -f got
    curl -sS --retry 5 --retry-connrefused --max-time 60 -o got "http://[$B]:8000/file" & fetch=$!
    sleep 2
    local before=$(size); sleep 2; local rate=$(( ($(size) - before) * 8 / 2000 ))
    echo "MTU $1 to $3: found $(mtu_of b), $rate kbit/s from 2 s on, $before bytes before," \
        "$(counted b segments_cut) segments cut, $(counted b too_big) told, $(counted b oversized) too large"

    [ $(mtu_of b) -le $1 ]; [ $(mtu_of b) -ge $2 ]; [ $(mtu_of a) -le $1 ]; [ $(mtu_of a) -ge $2 ]
    [ $rate -gt 15000 ]; [ $(counted b black_holes) = 0 ]
    "${5:-true}"
    wait $fetch; cmp file got
    $sinnet down --control a.sock; wait $a; $sinnet down --control b.sock; wait $b
}
cat >forge.py <<'P'
import socket, struct
# 'Fragmentation needed' from a router on the way, for 552 bytes, about the datagrams of each host to the other.
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
def sum16(b):
    t = sum(struct.unpack('!%dH' % (len(b) // 2), b))
    while t >> 16: t = (t & 0xffff) + (t >> 16)
    return ~t & 0xffff
for to, other in (('10.1.0.1', '10.3.0.1'), ('10.3.0.1', '10.1.0.1')):
    a, b = socket.inet_aton(to), socket.inet_aton(other)
    ip = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 1400, 7, 0x4000, 60, 17, 0, a, b)
    quoted = ip + struct.pack('!HHHH', 10500, 10500, 1380, 0)
    head = struct.pack('!BBHHH', 3, 4, 0, 0, 552)
    head = struct.pack('!BBHHH', 3, 4, sum16(head + quoted), 0, 552)
    for _ in range(20): s.sendto(head + quoted, (to, 0))
P
forged() { # Nothing is believed, and the download goes on as it was.
    $r2 nft flush chain inet mute out
    $r2 python3 forge.py
    sleep 0.5
    local before=$(size); sleep 2; local rate=$(( ($(size) - before) * 8 / 2000 ))
    echo "after forged ICMP: $rate kbit/s, MTU $(mtu_of b)"
    [ $rate -gt 15000 ]; [ $(mtu_of b) -gt 1380 ]
    $r2 nft add rule inet mute out ip protocol icmp drop
}
black_hole() { # A narrower way in the middle of it: found, and the file arrives.
    narrow 1100; sleep 3
    local before=$(size); sleep 2; local rate=$(( ($(size) - before) * 8 / 2000 ))
    echo "after a black hole: $rate kbit/s, MTU $(mtu_of b), $(counted b black_holes) found"
    [ $rate -gt 14000 ]; [ $(mtu_of b) -le 1100 ]; [ $(counted b black_holes) = 1 ]
}
nft "$cut"; $there nft "$cut"
download 1400 1388 fd03::1 fd01::1
download 1280 1268 fd03::1 fd01::1
download 1400 1388 10.3.0.1 10.1.0.1 forged
download 1280 1268 10.3.0.1 10.1.0.1
# Below 1280 bytes the kernel takes the routers' IPv6 addresses away.
download 1500 1500 10.3.0.1 10.1.0.1 black_hole
download 1000 984 10.3.0.1 10.1.0.1
echo "fragments dropped here and there:"; nft list chain inet cut in | grep counter; $there nft list chain inet cut in | grep counter
echo "all went well"
"#;

#[test]
fn downloads_over_narrow_links() {
    common::in_namespaces(SCRIPT, 150, &[]);
}
