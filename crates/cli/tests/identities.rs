//! One host of three identities, an anonymous one among them, and three others with real daemons in network namespaces: each sees
//! the HIT that is meant for it, in both families, and after a restart the anonymous one is another. The oracles are the kernel's
//! ping, curl, and tshark on the wire. Where namespaces are not allowed the test says so and does nothing.

use crate::common;

/// What `common::in_namespaces` runs.
const SCRIPT: &str = r#"
other() { unshare --net sleep 100 & pid=$!
    for _ in $(seq 50); do [ "$(readlink /proc/$pid/ns/net)" != "$(readlink /proc/$$/ns/net)" ] && break; sleep 0.1; done; }
other; farc=$pid; other; fard=$pid
inside() { local pid=$1; shift; nsenter --net=/proc/$pid/ns/net "$@"; }
inc="nsenter --net=/proc/$farc/ns/net"; ind="nsenter --net=/proc/$fard/ns/net"
ip link add br0 type bridge; ip link set br0 up; ip addr add 10.1.0.1/24 dev br0
number=2
for pid in $far $farc $fard; do
    ip link add v$number type veth peer name e0 netns $pid; ip link set v$number master br0 up
    inside $pid ip link set lo up; inside $pid ip addr add 10.1.0.$number/24 dev e0; inside $pid ip link set e0 up
    number=$((number + 1))
done
A=$($sinnet keygen --out a.pem); W=$($sinnet keygen --out work.pem)
B=$($sinnet keygen --out b.pem); C=$($sinnet keygen --out c.pem); D=$($sinnet keygen --out d.pem)
peer() { printf '[[peer]]\nname = "%s"\nhit = "%s"\nlocators = ["%s"]\n%s\n' "$1" "$2" "$3" "$4"; }
other_one() { printf '[[other_identity]]\nname = "%s"\n%s\n' "$1" "$2"; }
{ printf 'identity = "a.pem"\nname = "a.hip"\n'; printf '[interfaces]\nignore = ["v*"]\n'
  other_one work.hip 'identity = "work.pem"'; other_one ghost.hip 'anonymous = true'
  peer b.hip $B 10.1.0.2 ''; peer c.hip $C 10.1.0.3 'as = "work.hip"'; peer d.hip $D 10.1.0.4 'as = "ghost.hip"'
} >a.toml
{ printf 'identity = "b.pem"\n'; peer a.hip $A 10.1.0.1 ''; } >b.toml
{ printf 'identity = "c.pem"\n'; peer a.hip $W 10.1.0.1 ''; } >c.toml
printf 'identity = "d.pem"\n[accept]\nanybody = true\n' >d.toml
not() { if "$@"; then echo "went well: $*"; exit 1; fi; }
tshark -q -i br0 -w wire.pcap 2>/dev/null & shark=$!
wait_for '[ -s wire.pcap ]'
$inc $sinnet up -c c.toml --control c.sock 2>c.log & c=$!
$ind $sinnet up -c d.toml --control d.sock 2>d.log & d=$!
up_on_both
wait_for 'grep -q " ready " c.log && grep -q " ready " d.log'
head -c 3000000 /dev/urandom >file
for pid in $far $farc $fard; do nsenter --net=/proc/$pid/ns/net python3 -m http.server 8000 --bind :: 2>>http.$pid & done
# What each has seen of us.
seen() { inside $1 $sinnet status --json --control $2.sock | python3 -c "
import json, sys
print(' '.join(p['hit'] for p in json.load(sys.stdin)['peers'] if p['state'] == 'ESTABLISHED'))"; }
own() { $sinnet status --json --control a.sock | python3 -c "
import json, sys
print(' '.join(i['hit'] for i in json.load(sys.stdin)['identities'] if i['anonymous'] is $1))"; }
# Programs choose no source: the routes do.
reach() {
    [ "$(own False)" = "$A $W" ]
    ghost=$(own True)
    for what in "$far b $B $A" "$farc c $C $W" "$fard d $D $ghost"; do
        set -- $what
        wait_for "ping -c 1 -W 1 $3 >/dev/null"
        ping -c 3 -i 0.2 -W 5 $3 >/dev/null
        curl -sS --max-time 20 -o got http://[$3]:8000/file; cmp got file
        [ "$(seen $1 $2)" = $4 ]
        # What the other end sees, of the kernel's own words.
        tail -1 http.$1 | grep -q "^$4 "
        lsi=$($sinnet status --json --control a.sock | python3 -c "
import json, sys
print(*(p['lsi'] for p in json.load(sys.stdin)['peers'] if p['hit'] == '$3'))")
        ping -c 2 -i 0.2 -W 5 $lsi >/dev/null
        curl -sS --max-time 20 -o got http://$lsi:8000/file; cmp got file
    done
    # The way back begins elsewhere.
    inside $far ping -c 1 -W 5 $A >/dev/null
    inside $farc ping -c 1 -W 5 $W >/dev/null
    inside $fard ping -c 1 -W 5 $ghost >/dev/null
}
reach; first=$ghost
$sinnet status --control a.sock | grep "^$first .* ghost.hip  anonymous"
$sinnet status --control a.sock | grep -A1 '^c.hip' | grep 'knows us as work.hip'
grep -q "$first" a.log
# Names: of ours, and of theirs.
own_lsi=$(sed -n 's/.* ready .*lsi=\([0-9.]*\).*/\1/p' a.log | head -1)
if command -v dig >/dev/null; then [ "$(dig +short @$own_lsi work.hip AAAA)" = $W ]; fi
# C asks for the anonymous one: nothing comes back.
inside $farc $sinnet down --control c.sock; wait $c
cp c.toml c2.toml; peer ghost.hip $first 10.1.0.1 '' >>c2.toml
$inc $sinnet up -c c2.toml --control c.sock 2>c.log & c=$!
wait_for 'grep -q " ready " c.log'
not inside $farc ping -c 1 -W 4 $first >/dev/null
inside $farc ping -c 1 -W 5 $W >/dev/null
# Killed, and started again: all come back, and the anonymous one is another.
kill -9 $a; wait $a || true
$sinnet up -c a.toml --control a.sock 2>a2.log & a=$!
wait_for 'grep -q " ready " a2.log'
reach_after() { wait_for 'ping -c 1 -W 1 $B >/dev/null && ping -c 1 -W 1 $C >/dev/null && ping -c 1 -W 1 $D >/dev/null'; }
reach_after
second=$(own True)
[ "$first" != "$second" ]
[ "$(seen $far b)" = $A ]; seen $farc c | grep -q $W; seen $fard d | grep -q $second
# Bad configurations have their sentences.
sed 's/work\.pem/a.pem/' a.toml >twice.toml
not $sinnet check twice.toml 2>told; grep -q '"work.hip" is the first identity once more' told
not $sinnet relay -c a.toml --control r.sock 2>told; grep -q 'a relay is one identity' told
$sinnet check a.toml | grep 'ghost.hip: anonymous'
$sinnet hosts -c a.toml | grep -q "^$W.*work.hip"
# The kernel does not put back the routes that say a source: without privileges there is only the end, and a sentence.
ip link set sinnet0 down; ip link set sinnet0 up
wait $a || true
grep -q "the route to $C over sinnet0 is gone, and there are no privileges left" a2.log
kill $shark; wait $shark 2>/dev/null || true
# On the wire: type, A bit, HITs. 1 and 3 are I1 and I2.
tshark -r wire.pcap -Y 'hip' -T fields -E separator=/s -e ip.src -e ip.dst -e hip.packet_type -e hip.controls.a -e hip.hit_sndr -e hip.hit_rcvr >hip.txt
python3 - "$A" "$W" "$first" "$second" "$B" "$C" "$D" <<'END'
import ipaddress, sys
a, work, first, second, b, c, d = (ipaddress.ip_address(one).packed.hex() for one in sys.argv[1:])
def plain(hit): return hit.replace(':', '').lower()
rows = [line.split() for line in open('hip.txt')]
rows = [(src, dst, int(kind), anonymous in ('1', 'True'), plain(sender), plain(receiver)) for src, dst, kind, anonymous, sender, receiver in rows]
ours = {'10.1.0.2': {a}, '10.1.0.3': {work}, '10.1.0.4': {first, second}}
for src, dst, kind, anonymous, sender, receiver in rows:
    if src == '10.1.0.1':
        assert sender in ours[dst], (dst, sender)
        assert anonymous == (dst == '10.1.0.4'), (dst, kind, anonymous)
    else:
        assert not anonymous
    assert not (src == '10.1.0.1' and dst == '10.1.0.3' and sender in (first, second))
for ghost in (first, second):
    assert {kind for src, _, kind, anonymous, sender, _ in rows if sender == ghost and anonymous} >= {1, 3}
asked = sum(kind == 1 and receiver == first for src, _, kind, _, _, receiver in rows if src == '10.1.0.3')
assert asked > 1, asked
print(len(rows), 'HIP packets,', asked, 'I1s to the anonymous HIT')
END
echo "all went well"
"#;

#[test]
fn each_peer_sees_its_identity_on_the_wire_and_the_anonymous_one_changes() {
    if testkit::has("tshark", &["--version"])
        && testkit::has("curl", &["--version"])
        && testkit::has("python3", &["--version"])
    {
        common::in_namespaces(SCRIPT, 150, &[]);
    }
}
