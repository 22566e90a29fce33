//! A host behind a NAT that is found by its rendezvous server, and a peer whose HIT nobody has typed in: three daemons, and the
//! kernel's NAT, which lets nothing in that was not asked for. The oracle is the kernel's ping. Where namespaces are not allowed the
//! test says so and does nothing.

use crate::common;

const SCRIPT: &str = r#"
host nat; host inside
$there ip link add br0 type bridge; $there ip link set br0 up; $there ip addr add 198.51.100.7/24 dev br0
ip link add eth0 type veth peer name a0 netns $far
ip addr add 198.51.100.1/24 dev eth0; ip link set eth0 up
$there ip link set a0 master br0; $there ip link set a0 up
$there ip link add n0 type veth peer name wan netns $nat_pid
$there ip link set n0 master br0; $there ip link set n0 up
$nat ip addr add 198.51.100.21/24 dev wan; $nat ip link set wan up
$nat ip link add lan type veth peer name eth0 netns $inside_pid
$nat ip addr add 10.1.0.1/24 dev lan; $nat ip link set lan up
$inside ip addr add 10.1.0.2/24 dev eth0; $inside ip link set eth0 up; $inside ip route add default via 10.1.0.1
masquerade "$nat"; only_answers "$nat" forward

A=$($sinnet keygen --out a.pem); B=$($sinnet keygen --out b.pem); C=$($sinnet keygen --out c.pem)
printf 'identity = "a.pem"\n[[peer]]\nname = "c.hip"\nhit = "%s"\nvia = ["198.51.100.7"]\n' $C >a.toml
printf '[[peer]]\nname = "b.hip"\nopportunistic = true\nlocators = ["198.51.100.7"]\n' >>a.toml
printf '[hip]\npuzzle = 4\n' >>a.toml
server() { # key
    printf 'identity = "%s"\n[rendezvous]\nclients = ["c.hip"]\n' $1
    printf '[[peer]]\nname = "a.hip"\nhit = "%s"\n[[peer]]\nname = "c.hip"\nhit = "%s"\n' $A $C
}
server b.pem >b.toml
printf 'identity = "c.pem"\n[[peer]]\nname = "b.hip"\nhit = "%s"\nlocators = ["198.51.100.7"]\nregister = true\n' $B >c.toml
printf '[[peer]]\nname = "a.hip"\nhit = "%s"\n' $A >>c.toml
up_on_both
$inside $sinnet up -c c.toml --control c.sock 2>c.log & c=$!
wait_for 'grep -q "passes on to us" c.log'

# Nobody has told the host here where that one is, and nothing gets to it unasked.
ping -c 3 -i 0.3 -W 8 $C
grep -q 198.51.100.21 <($sinnet status --control a.sock)
refused grep 198.51.100.7 <<<"$($sinnet status --control a.sock | sed '/b.hip/,$d')"

# The server's identity was asked for, proven, and kept.
wait_for 'grep -q "b.hip is $B, and nobody else" a.log'
[ "$(cat known-hits)" = "b.hip $B" ]
ping -c 2 -W 5 $B
$sinnet down --control a.sock; wait $a
$sinnet up -c a.toml --control a.sock 2>a.log & a=$!
wait_for 'grep -q " ready " a.log'
ping -c 2 -W 5 $B
[ "$(cat known-hits)" = "b.hip $B" ]

# Somebody else takes its place.
$sinnet down --control a.sock; wait $a
kill -9 $b; wait $b || true
M=$($sinnet keygen --out m.pem)
server m.pem >b.toml
$there ip link del sinnet0 2>/dev/null || true
$there $sinnet up -c b.toml --control m.sock 2>b.log & b=$!
wait_for 'grep -q " ready " b.log'
$sinnet up -c a.toml --control a.sock 2>a.log & a=$!
wait_for 'grep -q " ready " a.log'
refused ping -c 1 -W 1 $B
wait_for 'grep -q "198.51.100.7 is $M, but b.hip was $B" a.log'
refused ping -c 1 -W 1 $M
[ "$(cat known-hits)" = "b.hip $B" ]
echo "all went well"
"#;

#[test]
fn behind_a_nat_and_by_nobody_but_the_server() {
    common::in_namespaces(SCRIPT, 110, &[]);
}
