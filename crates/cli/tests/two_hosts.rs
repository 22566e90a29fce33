//! Two daemons in two network namespaces, joined by two cables, over each family and each encapsulation. The oracle is the
//! kernel on both sides: its `ping` and its TCP. Where namespaces are not allowed the test says so and does nothing.

use crate::common;

/// What `common::in_namespaces` runs: $1 is the encapsulation, $2 and $3 are the beginnings of the addresses of the two cables,
/// $4 the prefix length, $5 an option of `ip addr add`.
const SCRIPT: &str = r#"
encapsulation=$1 one=$2 two=$3 prefix=$4 option=$5
for i in 1 2; do
    [ $i = 1 ] && net=$one || net=$two
    ip link add e$i type veth peer name f$i
    ip link set f$i netns $far
    ip addr add ${net}1/$prefix dev e$i $option; $there ip addr add ${net}2/$prefix dev f$i $option
    ip link set e$i up; $there ip link set f$i up
done
A=$($sinnet keygen --out a.pem); B=$($sinnet keygen --out b.pem)
configure() { # host, interface letter, peer's name, peer's HIT, peer's number
    printf 'identity = "%s.pem"\nname = "%s.hip"\n[esp]\nencapsulation = "%s"\n' $1 $1 $encapsulation
    for i in 1 2; do
        printf '[[path]]\nname = "p%s"\ninterface = "%s%s"\nrate = "50Mbit/s"\ndelay = "1ms"\n' $i $2 $i
    done
    printf '[[peer]]\nname = "%s.hip"\nhit = "%s"\nlocators = ["%s%s", "%s%s"]\n' $3 $4 $one $5 $two $5
}
configure a e b $B 2 >a.toml; configure b f a $A 1 >b.toml
up_on_both
field() { $sinnet status --control a.sock --json | grep -o "\"$1\": *[^,]*" | tail -1 | cut -d: -f2- | tr -d ' "'; }
[ "$(field ready)" = true ]
# Who watches stops when nobody reads.
{ timeout 10 $sinnet status --control a.sock --watch; echo $? >watched; } | head -1
[ "$(cat watched)" = 0 ]
ping -c 3 -i 0.2 -W 5 $B
# Both paths, each with an SA in each direction.
for _ in $(seq 50); do [ "$(grep -c 'is up' a.log)" = 2 ] && break; sleep 0.1; done
[ "$(grep -c 'is up' a.log)" = 2 ]; [ "$(wc -l <a.keys)" = 4 ]
lsi=$($sinnet status --control a.sock | sed -n 's/^  .*LSI //p')
ping -c 2 -i 0.2 -W 5 $lsi
# Programs' TCPs begin without looking for what the paths carry, in both families.
for name in $B $lsi; do ip -o route get $name | grep -q 'dev sinnet0.* initcwnd 2048'; done
grep -q 'CapEff:.*0000000000000000' /proc/$a/status
head -c 3000000 /dev/urandom >file
$there bash -c 'exec python3 -m http.server --bind :: 8000' >/dev/null 2>&1 &
for host in "[$B]" $lsi; do
    curl -sS --retry 20 --retry-connrefused --retry-delay 1 --max-time 20 -o got "http://$host:8000/file"
    cmp file got
done
if [ $encapsulation = auto ]; then
    sheds() { $sinnet status --control a.sock --json | grep -c '"sheds_udp": true' || true; }
    for _ in $(seq 50); do [ "$(sheds)" = 2 ] && break; ping -c 1 -W 1 $B >/dev/null; sleep 0.1; done
    [ "$(sheds)" = 2 ]
    # Firewalls that know UDP only. What is on its way is lost, and all else goes on.
    rules="add table inet fire; add chain inet fire in { type filter hook input priority 0; }
        add rule inet fire in meta l4proto esp counter drop"
    nft "$rules"; $there nft "$rules"
    for _ in $(seq 50); do [ "$(sheds)" = 0 ] && break; ping -c 1 -W 1 $B >/dev/null || true; sleep 0.1; done
    [ "$(sheds)" = 0 ]; refused grep 'packets 0 ' <<<"$(nft list table inet fire | grep drop)"
    ping -c 5 -i 0.1 -W 5 $B | grep ' 0% packet loss'
fi
$sinnet down --control a.sock; wait $a
for _ in $(seq 20); do grep -q 'closed by the peer' b.log && break; sleep 0.1; done
grep -q 'closed by the peer' b.log
kill -TERM $b; wait $b
[ ! -e a.sock ] && [ ! -e b.sock ]
echo "all went well"
"#;

fn two_hosts(encapsulation: &str, [one, two, prefix, option]: [&str; 4]) {
    common::in_namespaces(SCRIPT, 60, &[encapsulation, one, two, prefix, option]);
}

const IPV4: [&str; 4] = ["10.1.0.", "10.2.0.", "24", ""];
const IPV6: [&str; 4] = ["fd01::", "fd02::", "64", "nodad"];

#[test]
fn in_udp_over_ipv4() {
    two_hosts("udp", IPV4);
}

#[test]
fn in_udp_over_ipv6() {
    two_hosts("udp", IPV6);
}

#[test]
fn without_udp_where_that_arrives_over_ipv4() {
    two_hosts("auto", IPV4);
}

#[test]
fn without_udp_where_that_arrives_over_ipv6() {
    two_hosts("auto", IPV6);
}

#[test]
fn natively_over_ipv4() {
    two_hosts("native", IPV4);
}

#[test]
fn natively_over_ipv6() {
    two_hosts("native", IPV6);
}
