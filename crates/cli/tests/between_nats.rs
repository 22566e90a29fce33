//! Two hosts of which each has two uplinks, each uplink behind a NAT of the kernel, and a relay by which they meet: within three
//! seconds there are paths past the relay over all four, when it is killed nothing happens, and a download has 97 % of the sum of
//! what it has over each uplink alone. A NAT of the kernel lets in nothing that was not asked for from there (port restricted); one
//! with random ports gives each destination another (symmetric); one that forwards the port lets in everybody (full cone). The
//! oracles are ping, curl and the file that arrives. Where namespaces are not allowed the test says so and does nothing.

use crate::common;

/// What `common::in_namespaces` runs, with the kinds of the NATs of the two as $1 and $2, and whether
/// the relay has to carry data as $3.
const SCRIPT: &str = r#"
# The relay's Ethernet is the Internet.
$there ip link add br0 type bridge; $there ip link set br0 up; $there ip addr add 198.51.100.7/24 dev br0
host b; here=$$
uplink() { # side, number, kind, in the namespace of process, as
    local side=$1 i=$2 kind=$3 pid=$4 in=$5 n=$1$2
    host nat; eval "nat$n=\$nat"
    ip link add x$n type veth peer name y$n
    ip link set x$n netns $pid; ip link set y$n netns $nat_pid
    $in ip link set x$n name e$i; $in ip addr add 10.$n.0.2/24 dev e$i; $in ip link set e$i up
    $in ip route add default via 10.$n.0.1 metric $i
    $nat ip link set y$n name lan; $nat ip addr add 10.$n.0.1/24 dev lan; $nat ip link set lan up
    $there ip link add n$n type veth peer name wan netns $nat_pid
    $there ip link set n$n master br0; $there ip link set n$n up
    $nat ip addr add 198.51.100.$n/24 dev wan; $nat ip link set wan up
    masquerade "$nat" $([ $kind != symmetric ] || echo random,fully-random); only_answers "$nat" input
    if [ $kind = cone ]; then
        $nat nft "add chain ip nat in { type nat hook prerouting priority -100; }
            add rule ip nat in iifname wan udp dport 10500 dnat to 10.$n.0.2"
    else
        only_answers "$nat" forward
    fi
    # 8 and 4 Mbit/s to the host.
    $nat tc qdisc add dev lan root tbf rate $((12 - 4 * i))mbit burst 5k latency 60ms
}
for i in 1 2; do uplink 1 $i $1 $here ""; uplink 2 $i $2 $b_pid "$b"; done

data=$3
A=$($sinnet keygen --out a.pem); B=$($sinnet keygen --out b.pem); R=$($sinnet keygen --out r.pem)
printf 'identity = "r.pem"\n[[peer]]\nname = "a.hip"\nhit = "%s"\n[[peer]]\nname = "b.hip"\nhit = "%s"\n' $A $B >r.toml
[ $data = no ] || printf '[rendezvous]\ndata = "2 Mbit/s"\n' >>r.toml
for side in a b; do
    other=$([ $side = a ] && echo "b $B" || echo "a $A"); set -- $other
    printf 'identity = "%s.pem"\n[[peer]]\nname = "relay.hip"\nhit = "%s"\nlocators = ["198.51.100.7"]\nregister = true\n' $side $R >$side.toml
    printf '[[peer]]\nname = "%s.hip"\nhit = "%s"\nvia = ["198.51.100.7"]\n' $1 $2 >>$side.toml
done
# What is sent from port 8001 or 8002 takes one uplink.
for i in 1 2; do
    printf '[[policy]]\nto = ["a.hip"]\nports = ["800%s"]\npaths = ["e%s"]\nstrict = true\n' $i $i >>b.toml
done
$there $sinnet relay -c r.toml --control r.sock 2>r.log & r=$!
wait_for 'grep -q " ready " r.log'
# It needs no device, and leaves none.
refused $there ip link show sinnet0 2>/dev/null
$sinnet up -c a.toml --control a.sock 2>a.log & a=$!
$b $sinnet up -c b.toml --control b.sock 2>b.log & b_up=$!
for log in a.log b.log; do
    wait_for "grep -q 'passes on to us' $log"
    wait_for "[ \$(grep -c 'to relay.hip is up' $log) = 2 ]"
done

now() { date +%s%3N; }
over() { grep -q "to $2.hip is up: e$3, .* → 198.51.100.[12]" $1.log; } # log, peer, uplink
began=$(now)
ping -c 1 -W 8 $B & ping=$!
if [ $data = yes ]; then
    # There is no way past the relay, which carries the data.
    wait_for 'grep -q "to b.hip is up: e[12], .* → 198.51.100.7" a.log' 50
    took=$(( $(now) - began )); wait $ping; echo "by the relay after $took ms"; [ $took -lt 5000 ]
    $b bash -c 'exec python3 -m http.server --bind :: 8000' >/dev/null 2>&1 &
    head -c 500000 /dev/urandom >file
    wait_for 'curl -sS --max-time 20 -o got "http://[$B]:8000/file" 2>/dev/null'; cmp file got
    $there $sinnet status --control r.sock | grep carried
    echo "all went well"; exit
fi
wait_for 'over a b 1 && over a b 2 && over b a 1 && over b a 2' 50
took=$(( $(now) - began )); wait $ping
echo "paths over all uplinks after $took ms"; [ $took -lt 3000 ]

# The relay is killed, and nobody misses it.
kill -9 $r; wait $r || true
head -c 9000000 /dev/urandom >file
for port in 8000 8001 8002; do
    $b bash -c "exec python3 -m http.server --bind :: $port" >/dev/null 2>&1 &
    wait_for "curl -sS --max-time 5 -o /dev/null 'http://[$B]:$port/a.toml' 2>/dev/null"
done
download() { # port, seconds: bytes a second, also of a part
    curl -sS --max-time $2 -o got -w '%{speed_download} %{size_download}\n' "http://[$B]:$1/file" 2>/dev/null >got.size || true
    read speed size <got.size; speed=${speed%.*}
    cmp -n $size got file
}
# Each uplink of the server by itself, and all at once, for as long: the headers of ESP in UDP weigh the same in all of them.
download 8001 7; one=$speed; download 8002 7; other=$speed
download 8000 60; both=$speed; cmp got file
part() { echo "$(($1 * 1000 / $2 / 10)).$(($1 * 1000 / $2 % 10)) %"; }
echo "$((one * 8 / 1000)) and $((other * 8 / 1000)) kbit/s alone, $((both * 8 / 1000)) together: $(part $both $((one + other)))" \
    "of the sum, $(part $both 1500000) of the links' rate"
# Alone, no uplink had the other's help: one link has 8 Mbit/s, one 4; and both were filled.
[ $one -lt 1000000 ] && [ $other -lt 1000000 ] && { [ $one -lt 500000 ] || [ $other -lt 500000 ]; }
[ $((one + other)) -gt 1250000 ]
[ $((both * 100)) -ge $(((one + other) * 97)) ]
ping -c 20 -i 0.2 -W 2 $B | grep ' 0% packet loss'
refused grep 'the association with b.hip has ended' a.log
$sinnet status --control a.sock
echo "all went well"
"#;

#[test]
fn both_port_restricted() {
    common::in_namespaces(SCRIPT, 150, &["restricted", "restricted", "no"]);
}

#[test]
fn both_full_cone() {
    common::in_namespaces(SCRIPT, 150, &["cone", "cone", "no"]);
}

#[test]
fn one_symmetric() {
    common::in_namespaces(SCRIPT, 150, &["symmetric", "cone", "no"]);
}

/// The kernel's NAT on the other side lets nothing in but from the very port that something went to.
#[test]
fn one_symmetric_and_the_other_port_restricted() {
    common::in_namespaces(SCRIPT, 150, &["symmetric", "restricted", "yes"]);
}

#[test]
fn the_other_symmetric() {
    common::in_namespaces(SCRIPT, 150, &["cone", "symmetric", "no"]);
}
