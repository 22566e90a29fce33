//! A server that does not know its clients, with real daemons in network namespaces: who may come comes, in both families, and
//! goes when it is silent; who may not does not. The oracles are the kernel's ping and curl. Where namespaces are not allowed the
//! test says so and does nothing.

use crate::common;

/// What `common::in_namespaces` runs.
const SCRIPT: &str = r#"
ip link add e1 type veth peer name f1; ip link set f1 netns $far
ip addr add 10.1.0.1/24 dev e1; ip link set e1 up
$there ip addr add 10.1.0.2/24 dev f1; $there ip link set f1 up
A=$($sinnet keygen --out a.pem); B=$($sinnet keygen --out b.pem); C=$($sinnet keygen --out c.pem)
openssl pkey -pubout -in b.pem -out b.pub
printf 'identity = "a.pem"\n[hip]\nencrypt_identity = true\n' >a.toml
printf '[[peer]]\nname = "b.hip"\nidentity = "b.pub"\nlocators = ["10.1.0.2"]\n' >>a.toml
sed 's/a\.pem/c.pem/' a.toml >c.toml
accept() { printf 'identity = "b.pem"\n[accept]\n%s\nmost = 2\nidle = "10s"\n' "$1"; }
accept "hits = [\"$A\"]" >b.toml
up_on_both
status() { $there $sinnet status --control b.sock; }
ping -c 3 -i 0.2 -W 5 $B
status | grep -q $A
# In both families, both ways.
lsi=$($there sed -n "s/.*$A comes as a guest, and is \([0-9.]*\) for IPv4.*/\1/p" b.log)
$there ping -c 1 -W 5 $A; $there ping -c 1 -W 5 $lsi
wait_for 'grep -q "$A is no guest any more" b.log'
refused grep $A <<<"$(status)"
# And again.
ping -c 1 -W 5 $B
# Somebody else may not.
$sinnet down --control a.sock; wait $a
$sinnet up -c c.toml --control a.sock 2>a.log & a=$!
wait_for 'grep -q " ready " a.log'
refused ping -c 1 -W 3 $B
refused grep $C <<<"$(status)"
# Now anybody may.
$there $sinnet down --control b.sock; wait $b
accept 'anybody = true' >b.toml
$there $sinnet up -c b.toml --control b.sock 2>b.log & b=$!
wait_for 'grep -q " ready " b.log'
grep -q 'anybody may come' b.log
ping -c 3 -W 5 $B
status | grep -q $C
$sinnet down --control a.sock; wait $a
$there $sinnet down --control b.sock; wait $b
echo "all went well"
"#;

#[test]
fn guests_come_and_go() {
    if testkit::has("openssl", &["version"]) {
        common::in_namespaces(SCRIPT, 90, &[]);
    }
}
