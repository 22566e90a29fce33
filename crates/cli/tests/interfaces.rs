//! Two daemons that find their access links themselves, in two network namespaces joined by two cables: in the middle of a
//! download an address goes and another comes, and then a third cable is plugged in. The oracles are the file that arrives
//! and the kernel's counters of the interfaces. Where namespaces are not allowed the test says so and does nothing.

use crate::common;

/// What `common::in_namespaces` runs.
const SCRIPT: &str = r#"
cable() { # number, megabits per second
    ip link add e$1 type veth peer name f$1
    ip link set f$1 netns $far
    ip link set e$1 up; $there ip link set f$1 up
    $there tc qdisc add dev f$1 root tbf rate ${2}mbit burst 20k latency 100ms 2>/dev/null || true
}
address() { ip addr $1 10.$2.0.$3/24 dev e$2; }
for i in 1 2; do cable $i 20; address add $i 1; $there ip addr add 10.$i.0.2/24 dev f$i; done
A=$($sinnet keygen --out a.pem); B=$($sinnet keygen --out b.pem)
configure() { # host, peer's name, peer's HIT, peer's number
    printf 'identity = "%s.pem"\nname = "%s.hip"\nmetrics = "127.0.0.1:9480"\n' $1 $1
    printf '[[peer]]\nname = "%s.hip"\nhit = "%s"\nlocators = ["10.1.0.%s", "10.2.0.%s"]\n' $2 $3 $4 $4
}
configure a b $B 2 >a.toml; configure b a $A 1 >b.toml
up_on_both
carried() { sed -n "s/^ *$1: *\([0-9]*\).*/\1/p" /proc/net/dev; }
# The interface carries a part of the download; a busy machine may take its time.
carries() {
    local before=$(carried $1)
    for _ in $(seq 50); do
        sleep 0.1
        [ $(( $(carried $1) - before )) -gt 500000 ] && kill -0 $download && return
    done
    echo "$1 has carried $(( $(carried $1) - before )) bytes in five seconds"
    $sinnet status --control a.sock; $there $sinnet status --control b.sock; $there ss -tin
    exit 1
}
ping -c 3 -i 0.2 -W 5 $B
wait_for '[ "$(grep -c "is up" a.log)" = 2 ]'
head -c 40000000 /dev/urandom >file
$there bash -c 'exec python3 -m http.server --bind :: 8000' >/dev/null 2>&1 &
wait_for 'curl -sS --max-time 5 -o /dev/null "http://[$B]:8000/a.toml" 2>/dev/null'
curl -sS --max-time 60 -o got "http://[$B]:8000/file" & download=$!
sleep 2
# The second path's address goes, and another comes.
address del 2 1
wait_for 'grep -q "10.2.0.1 on e2 is gone" a.log'
kill -0 $download
address add 2 9
wait_for 'grep -q "e2, 10.2.0.9 → 10.2.0.2" a.log'
carries e2
# A third cable.
cable 3 20; address add 3 1; $there ip addr add 10.3.0.2/24 dev f3
wait_for 'grep -q "is up: e3, 10.3.0.1 → 10.3.0.2" a.log'
carries e3
wait $download
cmp file got
grep -c 'has proved its identity' a.log | grep -qx 1
# And all addresses at once: the association waits, and goes on at the new one.
address del 1 1; address del 2 9; address del 3 1
wait_for '[ "$(grep -c "is gone and is not used" a.log)" = 4 ]'
sleep 1
address add 1 7
ping -c 3 -i 0.2 -W 10 -w 15 $B
grep -c 'has proved its identity' a.log | grep -qx 1
# What Prometheus reads says how much each path has carried, and holds no key.
curl -sS --max-time 5 -H 'Accept: application/openmetrics-text' -o metrics http://127.0.0.1:9480/metrics
tail -1 metrics | grep -qx '# EOF'
grep -q '^sinnet_path_received_bytes_total{peer="b.hip",.*,name="e1",.*} [1-9]' metrics
keys=$(grep -o '0x[0-9a-f]*' a.keys | cut -c3-); [ $(echo "$keys" | wc -w) -ge 4 ]
for key in $keys; do ! grep -qi $key metrics; done
refused grep 'PRIVATE' metrics
$sinnet down --control a.sock; wait $a
$there $sinnet down --control b.sock; wait $b
echo "all went well"
"#;

#[test]
fn addresses_come_and_go_under_a_download() {
    common::in_namespaces(SCRIPT, 90, &[]);
}

/// Two interfaces in one network, as a laptop's cable and its Wi-Fi at home. The router has learned each one's address from the
/// other, as ARP lets it, so that whatever comes to an address comes by the other's interface. With the encapsulation as $1.
const ONE_NETWORK: &str = r#"
$there ip link add br0 type bridge; $there ip link set br0 up; $there ip addr add 10.1.0.2/24 dev br0
for i in 1 2; do
    ip link add e$i type veth peer name f$i; ip link set f$i netns $far
    $there ip link set f$i master br0; $there ip link set f$i up; ip link set e$i up
    ip addr add 10.1.0.1$i/24 dev e$i
done
mac() { ip -br link show $1 | sed "s/.* \([0-9a-f:]\{17\}\) .*/\1/"; }
$there ip neigh replace 10.1.0.11 lladdr $(mac e2) dev br0
$there ip neigh replace 10.1.0.12 lladdr $(mac e1) dev br0
A=$($sinnet keygen --out a.pem); B=$($sinnet keygen --out b.pem)
esp=$(printf '[esp]\nencapsulation = "%s"' $1)
printf 'identity = "a.pem"\n[[peer]]\nname = "b.hip"\nhit = "%s"\nlocators = ["10.1.0.2"]\n%s\n' $B "$esp" >a.toml
printf 'identity = "b.pem"\n[[peer]]\nname = "a.hip"\nhit = "%s"\n%s\n' $A "$esp" >b.toml
up_on_both
ping -c 5 -i 0.2 -W 5 $B
wait_for '[ "$(grep -c "is up" a.log)" = 2 ]'
grep -q 'is up: e1, 10.1.0.11 ' a.log; grep -q 'is up: e2, 10.1.0.12 ' a.log
sleep 2
refused grep 'does not answer' a.log b.log
$sinnet down --control a.sock; wait $a
$there $sinnet down --control b.sock; wait $b
echo "all went well"
"#;

#[test]
fn two_interfaces_of_one_network_answer_for_each_other() {
    for encapsulation in ["udp", "native"] {
        common::in_namespaces(ONE_NETWORK, 60, &[encapsulation]);
    }
}

/// Two access links and one default route, under each reverse-path filter: where it is strict the second path is dark, which the
/// log and `sinnet check` say with what mends it; the remedy, or a rule that sends answers back where they belong, does.
const STRICT: &str = r#"
host router
link() { # number
    ip link add e$1 type veth peer name f$1; ip link set f$1 netns $router_pid
    ip link set e$1 up; $router ip link set f$1 up
    ip addr add 10.$1.0.1/24 dev e$1; $router ip addr add 10.$1.0.254/24 dev f$1
    ip route add default via 10.$1.0.254 metric $1
}
filter() { echo $2 >/proc/sys/net/ipv4/conf/$1/rp_filter; }
link 1; link 2
$router ip link add f9 type veth peer name e9; $router ip link set e9 netns $far
$router ip link set f9 up; $router ip addr add 10.9.0.254/24 dev f9; $router sysctl -qw net.ipv4.ip_forward=1
$there ip link set e9 up; $there ip addr add 10.9.0.2/24 dev e9; $there ip route add default via 10.9.0.254
A=$($sinnet keygen --out a.pem); B=$($sinnet keygen --out b.pem)
printf 'identity = "a.pem"\n[[peer]]\nname = "b.hip"\nhit = "%s"\nlocators = ["10.9.0.2"]\n' $B >a.toml
printf 'identity = "b.pem"\n[[peer]]\nname = "a.hip"\nhit = "%s"\n' $A >b.toml
says() { grep -q "drops what 10.9.0.2 sends to e2, .*leads over e1;.*sysctl -w net.ipv4.conf.e2.rp_filter=2" $1; }
try() { # how many paths come up
    $sinnet check a.toml >checked
    up_on_both
    ping -c 3 -i 0.2 -W 5 $B
    wait_for '[ "$(grep -c "is up: e" a.log)" = '$1' ]'; sleep 1
    [ "$(grep -c "is up: e" a.log)" = $1 ]
    $sinnet down --control a.sock; wait $a
    $there $sinnet down --control b.sock; wait $b
}
for all in 0 1; do
    filter all $all; filter e1 1; filter e2 1
    try 1; says checked; says a.log
    # What the sentence says mends it.
    filter e2 2
    try 2; refused says checked; refused says a.log
done
# As policy routing does, which many have for this.
filter e2 1
ip rule add from 10.2.0.1 lookup 100; ip route add default via 10.2.0.254 table 100
try 2; refused says checked; refused says a.log
echo "all went well"
"#;

#[test]
fn a_strict_reverse_path_filter_is_told_with_what_mends_it() {
    common::in_namespaces(STRICT, 120, &[]);
}
