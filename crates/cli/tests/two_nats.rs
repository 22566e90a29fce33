//! What the README and docs/operating.md promise to somebody with two uplinks, each behind a NAT of its own, and a server with
//! one address that does not know where its client is: the sum of the uplinks, a NAT's new public address, the gateway, and an
//! uplink that drops fragments. What docs/operating.md prints for the last two is run as it is printed. The oracles are curl,
//! the file that arrives and the kernel's counters. Where namespaces are not allowed the test says so and does nothing.

use crate::common;

/// What `common::in_namespaces` runs, with the gateway's commands for the client and the server as $1 and $2, and as $3 what
/// the configuration says of the MTU.
const SCRIPT: &str = r#"
host nat1; host nat2; host world
# The server has one address; NATs are on its Ethernet.
$there ip link add br0 type bridge; $there ip link set br0 up; $there ip addr add 198.51.100.7/24 dev br0
for i in 1 2; do
    eval "nat=\$nat$i; nat_pid=\$nat${i}_pid"
    ip link add e$i type veth peer name lan netns $nat_pid
    $there ip link add n$i type veth peer name wan netns $nat_pid
    ip addr add 10.$i.0.2/24 dev e$i; ip link set e$i up; ip route add default via 10.$i.0.1 metric $i
    $nat ip addr add 10.$i.0.1/24 dev lan; $nat ip link set lan up
    $nat ip addr add 198.51.100.${i}1/24 dev wan; $nat ip link set wan up
    $there ip link set n$i master br0; $there ip link set n$i up
    masquerade "$nat"
    # To the client; 8 and 4 Mbit/s.
    $nat tc qdisc add dev lan root tbf rate $((12 - 4 * i))mbit burst 5k latency 60ms
done
A=$($sinnet keygen --out a.pem); B=$($sinnet keygen --out b.pem)
printf 'identity = "a.pem"\n[[peer]]\nname = "b.hip"\nhit = "%s"\nlocators = ["198.51.100.7"]\n' $B >a.toml
printf 'identity = "b.pem"\n[[peer]]\nname = "a.hip"\nhit = "%s"\n' $A >b.toml
up_on_both
carried() { sed -n "s/^ *$1: *\([0-9]*\).*/\1/p" /proc/net/dev; }
ping -c 3 -i 0.2 -W 5 $B
wait_for '[ "$(grep -c "is up" a.log)" = 2 ]'
head -c 12000000 /dev/urandom >file
serve() { "$@" bash -c 'exec python3 -m http.server --bind :: 8000' >/dev/null 2>&1 & }
serve $there; serve $world
wait_for 'curl -sS --max-time 5 -o /dev/null "http://[$B]:8000/a.toml" 2>/dev/null'
# More than the faster of them could carry at all.
download() { # URL, variable
    local speed=$(curl -sS --max-time 60 -o got -w '%{speed_download}' $1); cmp file got
    echo "$1: $((${speed%.*} * 8 / 1000)) kbit/s"; [ ${speed%.*} -gt 1000000 ]
}
download "http://[$B]:8000/file"

# The first uplink's provider gives another address, in the middle of a download.
curl -sS --max-time 60 -o got "http://[$B]:8000/file" & download=$!
sleep 2
$nat1 ip addr flush dev wan; $nat1 ip addr add 198.51.100.23/24 dev wan
wait_for '$there $sinnet status --control b.sock | grep -q 198.51.100.23'
before=$(carried e1); wait_for '[ $(( $(carried e1) - before )) -gt 500000 ] && kill -0 $download'
wait $download; cmp file got

# The gateway, as it is printed. The world knows the server, but not what is behind it.
$there ip link add world type veth peer name eth0 netns $world_pid
$there ip addr add 192.0.2.1/24 dev world; $there ip link set world up
$world ip addr add 192.0.2.80/24 dev eth0; $world ip link set eth0 up
sudo() { "$@"; }
eval "$1"
export A B; $there bash -euc "sudo() { \"\$@\"; }; $2"
wait_for 'curl -sS --max-time 5 -o /dev/null "http://192.0.2.80:8000/a.toml" 2>/dev/null'
before=$(carried e2)
download "http://192.0.2.80:8000/file"
echo "e2 has carried $(( $(carried e2) - before )) bytes of it"; [ $(( $(carried e2) - before )) -gt 2000000 ]
refused grep gw0 <<<"$($sinnet status --control a.sock)"

# The second uplink takes 1400 bytes, and what its provider cuts is dropped.
$nat2 ip link set lan mtu 1400
nft 'add table ip cut; add chain ip cut in { type filter hook prerouting priority -450; }
    add rule ip cut in iifname "e2" ip frag-off & 0x3fff != 0 counter drop'
$sinnet down --control a.sock; wait $a
echo "$3" >>a.toml
$sinnet up -c a.toml --control a.sock 2>a.log & a=$!
wait_for 'grep -q " ready " a.log'
ping -c 1 -W 5 $B; wait_for '[ "$(grep -c "is up" a.log)" = 2 ]'
before=$(carried e2)
download "http://[$B]:8000/file"
echo "e2 has carried $(( $(carried e2) - before )) bytes of it"; [ $(( $(carried e2) - before )) -gt 2000000 ]
echo "all went well"
"#;

/// What stands in a section of docs/operating.md as `kind`, in order.
fn printed(section: &str, kind: &str) -> Vec<&'static str> {
    let text = include_str!("../../../docs/operating.md");
    let (_, section) = text.split_once(&format!("\n## {section}")).expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    section.split(&format!("```{kind}\n")).skip(1).filter_map(|block| block.split("```").next()).collect()
}

#[test]
fn behind_two_nats() {
    let (gateway, mtu) = (printed("A gateway", "console"), printed("MTU", "toml"));
    let ([client, server], [mtu]) = (&gateway[..], &mtu[..]) else { panic!("{gateway:?} {mtu:?}") };
    common::in_namespaces(SCRIPT, 120, &[client, server, mtu]);
}
