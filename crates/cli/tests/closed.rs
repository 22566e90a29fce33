//! Nothing goes to identities in clear: not when the daemon is killed, not when its device is down or its addresses are gone, not
//! after its end, not beside a second one. And nothing else goes astray: LSIs take no address of the Internet. The oracle is
//! whoever listens on the cable, and a download that is whole.

use crate::common;

/// What `common::in_namespaces` runs. The other host is the default router.
const SCRIPT: &str = r#"
ip link add e1 type veth peer name f1; ip link set f1 netns $far
ip addr add 10.1.0.1/24 dev e1; $there ip addr add 10.1.0.2/24 dev f1
ip addr add 2001:db8::1/64 dev e1 nodad; $there ip addr add 2001:db8::2/64 dev f1 nodad
ip link set e1 up; $there ip link set f1 up
ip route add default via 10.1.0.2; ip route add default via 2001:db8::2
A=$($sinnet keygen --out a.pem); B=$($sinnet keygen --out b.pem); C=$($sinnet keygen --out c.pem)
configure() { # host, peer's name, peer's HIT, peer's number, LSIs of both
    printf 'identity = "%s.pem"\nname = "%s.hip"\nlsi = "%s"\n[[path]]\nname = "eth"\ninterface = "%s"\n' $1 $1 $5 $7
    printf '[[peer]]\nname = "%s.hip"\nhit = "%s"\nlsi = "%s"\nlocators = ["10.1.0.%s"]\n' $2 $3 $6 $4
}
L=198.18.7.2
configure a b $B 2 198.18.7.1 $L e1 >a.toml; configure b a $A 1 $L 198.18.7.1 f1 >b.toml
cat >sniff.py <<'P'
import socket, ipaddress
hits, lsis = ipaddress.ip_network('2001:20::/28'), ipaddress.ip_network('198.18.0.0/15')
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)); s.bind(('f1', 0))
print('listening', flush=True)
while True:
    p = s.recv(2000); kind, p, ends = p[12:14], p[14:], []
    if kind == b'\x86\xdd': ends = [a for a in (p[8:24], p[24:40]) if ipaddress.ip_address(a) in hits]
    if kind == b'\x08\x00': ends = [a for a in (p[12:16], p[16:20]) if ipaddress.ip_address(a) in lsis]
    if kind == b'\x08\x06': ends = [a for a in (p[14:18], p[24:28]) if ipaddress.ip_address(a) in lsis]
    if ends: print('in clear', p[:40].hex(), flush=True)
    elif p[9:10] == b'\x11' and p[22:24] == (10500).to_bytes(2, 'big'): print('sealed', flush=True)
P
$there python3 sniff.py >sniffed & sniffer=$!
wait_for 'grep -qs listening sniffed'
speak() { ping -c 1 -W 1 $B && exit 1; ping -c 1 -W 1 $L && exit 1; ping -c 1 -W 1 -I e1 $B && exit 1; ping -c 1 -W 1 -I e1 $L && exit 1; true; }
closed() { refused grep 'in clear' sniffed; }
up_on_both
ping -c 2 -i 0.2 -W 5 $B; ping -c 2 -i 0.2 -W 5 $L
# 1. The Internet is where it was.
for address in 1.1.1.1 1.0.0.1 198.18.7.3 198.51.100.1; do ip route get $address | grep -q 'dev e1'; done
# 2. A second daemon is refused, and takes nothing away.
configure c b $B 2 198.18.7.9 198.18.7.8 e1 >c.toml; printf '[tun]\nname = "second0"\n' >>c.toml
refused timeout 10 $sinnet up -c c.toml --control c.sock 2>c.log
grep -q 'another Sinnet' c.log
refused $sinnet clean 2>c.log; grep -q 'runs on sinnet0' c.log
for address in $B $L; do ip -o route get $address | grep -q "dev sinnet0.* initcwnd 2048"; done
# 3. The device goes down, and up.
ip link set sinnet0 down
speak
wait_for 'grep -q "sinnet0 is down" a.log'
ip link set sinnet0 up
wait_for 'grep -q "sinnet0 is up" a.log'
ping -c 2 -i 0.2 -W 5 $B; ping -c 2 -i 0.2 -W 5 $L
kill -0 $a; closed
# 4. The daemon is killed in the middle of a download, and started again.
head -c 20000000 /dev/urandom >file
# A reader of 3 MB/s: seven seconds, and what its buffer takes in ahead of it is far less than the file.
cat >read.py <<'P'
import sys, time, urllib.request
with urllib.request.urlopen(sys.argv[1], timeout=60) as source, open('got', 'wb') as out:
    while piece := source.read(90000):
        out.write(piece); time.sleep(0.03)
P
$there bash -c 'exec python3 -m http.server --bind :: 8000' >/dev/null 2>&1 &
wait_for 'curl -sS --max-time 5 -o /dev/null "http://[$B]:8000/a.toml" 2>/dev/null'
timeout 60 python3 read.py "http://[$B]:8000/file" & download=$!
sleep 1.5
kill -KILL $a; wait $a || true
speak; closed
kill -0 $download
# Without the unreachable routes the packet filter alone holds.
ip -6 route del unreachable 2001:20::/28 metric 4000000; ip route del unreachable $L metric 4000000
speak; closed
mv a.log first.log
$sinnet up -c a.toml --control a.sock 2>a.log & a=$!
wait_for 'grep -q " ready " a.log'
ping -c 3 -i 0.5 -W 10 $B
wait $download; cmp file got; closed
# 5. Somebody takes an address away: the daemon says so and ends.
ip addr flush dev sinnet0
wait_for '! kill -0 $a 2>/dev/null'
grep -q 'is gone, and there are no privileges' a.log
speak; closed
# 6. The device is deleted.
$sinnet up -c a.toml --control a.sock 2>a.log & a=$!
wait_for 'grep -q " ready " a.log'
ip link del sinnet0
wait_for '! kill -0 $a 2>/dev/null'
speak; closed
# 7. An ordinary end; and then everything is taken back.
$sinnet up -c a.toml --control a.sock 2>a.log & a=$!
wait_for 'grep -q " ready " a.log'
ping -c 3 -i 0.5 -W 10 $B
$sinnet down --control a.sock; wait $a
speak; closed
$sinnet clean | grep -q '1 packet filters and 3 routes'
refused grep unreachable <<<"$(ip -6 route; ip route)"
grep -q sealed sniffed
# 8. An LSI that somebody else has is refused.
ip route add 198.18.0.0/16 via 10.1.0.2
refused timeout 10 $sinnet up -c a.toml --control a.sock 2>a.log
grep -q 'already in use on this host, over e1' a.log
kill $sniffer; kill -TERM $b; wait $b
echo "all went well"
"#;

#[test]
fn nothing_goes_to_identities_in_clear() {
    common::in_namespaces(SCRIPT, 120, &[]);
}
