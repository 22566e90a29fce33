//! A host whose configuration names no peer, and names of the DNS: a name server (NSD) with a zone that is signed and one that is
//! not, a resolver beside the daemon that validates (Unbound), and a program (curl) that asks the daemon; one of the names leads to a
//! host behind a NAT that only its rendezvous server reaches. The oracles are these
//! programs: BIND and ldns read the record that `sinnet keygen --dns` prints and dig tells it again, other names resolve as without us, and
//! the web server says from which address it was asked. Where namespaces are not allowed the test says so and does nothing.

use crate::common;

const SCRIPT: &str = r#"
counter() { $sinnet status --control a.sock --json | grep -o "\"$1\": [0-9]*" | grep -o '[0-9]*$'; }
$there ip link add br0 type bridge; $there ip link set br0 up; $there ip addr add 198.51.100.7/24 dev br0
plug() { # name of the other end, what begins a command there, its process, device, address
    $there ip link add $1 master br0 type veth peer name $4 netns $3; $there ip link set $1 up
    $2 ip addr add $5/24 dev $4; $2 ip link set $4 up
}
plug a0 "" $$ eth0 198.51.100.1
# A host that can only be asked by way of its rendezvous server: its NAT lets nothing in.
host server; host nat; host inside
plug s0 "$server" $server_pid eth0 198.51.100.9
plug n0 "$nat" $nat_pid wan 198.51.100.21
$nat ip link add lan type veth peer name eth0 netns $inside_pid
$nat ip addr add 10.1.0.1/24 dev lan; $nat ip link set lan up
$inside ip addr add 10.1.0.2/24 dev eth0; $inside ip link set eth0 up; $inside ip route add default via 10.1.0.1
masquerade "$nat"; only_answers "$nat" forward

A=$($sinnet keygen --out a.pem); B=$($sinnet keygen --out b.pem)
printf 'identity = "a.pem"\nlsi = "198.18.0.1"\n[dns]\nupstream = ["127.0.0.1:5301"]\n[hip]\npuzzle = 4\n' >a.toml
printf 'identity = "b.pem"\n[hip]\npuzzle = 4\n[[peer]]\nname = "a.hip"\nhit = "%s"\n' $A >b.toml

# Neither of the two in the host behind the NAT knows where the other is.
S=$($sinnet keygen --out s.pem); C=$($sinnet keygen --out c.pem)
printf 'identity = "s.pem"\n[rendezvous]\nclients = ["c.hip"]\n[[peer]]\nname = "c.hip"\nhit = "%s"\n' $C >s.toml
printf 'identity = "c.pem"\n[[peer]]\nname = "a.hip"\nhit = "%s"\n' $A >c.toml
printf '[[peer]]\nname = "s.hip"\nhit = "%s"\nlocators = ["198.51.100.9"]\nregister = true\n' $S >>c.toml
$server $sinnet up -c s.toml --control s.sock 2>s.log &
$inside $sinnet up -c c.toml --control c.sock 2>inside.log &

record() { $sinnet keygen --key ${2:-b.pem} --dns $1 ${3:+--rvs $3} | tail -1; }
start() { printf '$ORIGIN %s\n$TTL 60\n@ IN SOA ns root 1 3600 600 86400 60\n@ IN NS ns\nns IN A 127.0.0.1\n' $1; }
start example. >zone
printf 'b IN A 198.51.100.7\nplain IN A 198.51.100.7\nforged IN A 198.51.100.7\nwww IN CNAME b\n' >>zone
{ record b.example; record forged.example | sed -E 's/(HIP 3 2001002.{10}).{4}/\1ABCD/'; } >>zone
printf 'server IN A 198.51.100.9\naway IN A 198.51.100.99\n' >>zone
{ record inside.example. c.pem server.example; record away.example. c.pem server.example; record lost.example. c.pem; } >>zone
for part in 1 2 3 4 5 6 7 8; do printf 'big IN TXT "%s%0240d"\n' $part 0; done >>zone
start open. >open
printf 'b IN A 198.51.100.7\n' >>open; record b.open >>open
named-checkzone example. zone; named-checkzone open. open
key=$(ldns-keygen -a ECDSAP256SHA256 -k example.)
ldns-signzone -n -f signed zone $key
# This NSD knows the record by its number only (RFC 3597).
for zone in signed open; do ldns-read-zone -u HIP $zone >$zone.nsd; done

cat >nsd.conf <<END
server:
    ip-address: 127.0.0.1@5302
    username: ""
    zonesdir: "$PWD"
    pidfile: "$PWD/nsd.pid"
    database: ""
    zonelistfile: "$PWD/nsd.list"
    xfrdfile: "$PWD/nsd.xfrd"
    xfrdir: "$PWD"
    logfile: "$PWD/nsd.log"
remote-control:
    control-enable: no
zone:
    name: example.
    zonefile: signed.nsd
zone:
    name: open.
    zonefile: open.nsd
END
cat >unbound.conf <<END
server:
    interface: 127.0.0.1@5301
    username: ""
    chroot: ""
    directory: "$PWD"
    pidfile: ""
    do-daemonize: no
    use-syslog: no
    logfile: "$PWD/unbound.log"
    do-not-query-localhost: no
    trust-anchor-file: "$PWD/$key.ds"
    module-config: "validator iterator"
stub-zone:
    name: example.
    stub-addr: 127.0.0.1@5302
stub-zone:
    name: open.
    stub-addr: 127.0.0.1@5302
END
nsd -d -c nsd.conf >nsd.err 2>&1 & unbound -c unbound.conf >unbound.err 2>&1 &
direct() { dig +time=3 @127.0.0.1 -p 5302 "$@"; }
wait_for 'direct +short plain.example A | grep -q 198.51.100.7'
wait_for 'dig @127.0.0.1 -p 5301 +adflag b.example HIP | grep -q "flags:.* ad"'

# What is printed is what another implementation reads and tells.
[ "$(direct +short +nosplit b.example HIP)" = "$(record b.example | cut -d' ' -f4-)" ]

up_on_both
printf 'nameserver 198.18.0.1\n' >resolv.conf; mount --bind resolv.conf /etc/resolv.conf
mkdir www; echo 'by its name' >www/page
cat >www/serve.py <<'END'
import http.server, socket
class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
Server(("::", 8000), http.server.SimpleHTTPRequestHandler).serve_forever()
END
(cd www; exec $there python3 serve.py >/dev/null 2>../www.log) &
wait_for '$there ss -ltn | grep -q :8000'

# The peer that no configuration names, over IPv6 and IPv4 and by an alias; its server sees our HIT.
[ "$(curl -sS --max-time 10 http://b.example:8000/page)" = 'by its name' ]
[ "$(grep -c "$(python3 -c "import ipaddress; print(ipaddress.ip_address('$A'))")" www.log)" = 1 ]
refused grep 198.51.100.1 www.log
[ "$(curl -4sS --max-time 10 http://b.example:8000/page)" = 'by its name' ]
[ "$(curl -sS --max-time 10 http://www.example:8000/page)" = 'by its name' ]
refused grep 198.51.100.1 www.log
[ "$(dig +short b.example AAAA)" = "$(python3 -c "import ipaddress; print(ipaddress.ip_address('$B'))")" ]
grep -q 'b.example is .* which is signed' a.log
$sinnet status --control a.sock | grep -q 'b.example .* signed'
[ "$(counter hip_records)" -ge 1 ]

# By its rendezvous server: without an address.
wait_for 'grep -q "passes on to us" inside.log'
mkdir behind; echo 'by its server' >behind/page
(cd behind; exec $inside python3 ../www/serve.py >/dev/null 2>../inside-www.log) &
wait_for '$inside ss -ltn | grep -q :8000'
[ "$(curl -sS --max-time 10 http://inside.example:8000/page)" = 'by its server' ]
$sinnet status --control a.sock | sed -n '/inside.example/,$p' | grep 198.51.100.21
grep -q 'inside.example is .* which is signed, at \[\], and its rendezvous servers' a.log
refused grep 198.51.100.1 inside-www.log
# The same record without the server leads nowhere.
[ -z "$(dig +short lost.example AAAA)" ]
[ "$(counter hip_records_placeless)" = 1 ]

# Nobody has vouched for it but the DNS: it gets to no program here that has not asked it.
python3 -m http.server --bind :: 9000 >/dev/null 2>&1 & wait_for 'ss -ltn | grep -q :9000'
curl -sS --max-time 3 -o /dev/null "http://[$A]:9000/"
refused $there curl -sS --max-time 2 -o /dev/null "http://[$A]:9000/" 2>/dev/null
[ "$(counter uninvited)" -ge 1 ]

# Everything else is as without us, also what is too long for a datagram.
for question in 'plain.example A' 'plain.example AAAA' 'example NS' 'none.example A' 'b.example HIP' 'big.example TXT'; do
    [ "$(dig +short $question | sort)" = "$(direct +short $question | sort)" ] || { echo "differs: $question"; exit 1; }
done
[ "$(dig big.example TXT | grep -c TCP)" -ge 0 ]
[ "$(dig none.example A | grep -c NXDOMAIN)" -ge 1 ]
[ "$(curl -sS --max-time 10 http://plain.example:8000/page)" = 'by its name' ]
grep -q 198.51.100.1 www.log

# A record with another's HIT, and one that nobody has signed.
[ "$(dig +short forged.example A)" = 198.51.100.7 ]
[ "$(counter hip_records_forged)" = 1 ]
grep -q 'the HIP record of forged.example is not used: it tells the HIT' a.log
[ "$(dig +short b.open A)" = 198.51.100.7 ]
[ "$(counter hip_records_unsigned)" = 1 ]
grep -q 'the HIP record of b.open is not used: .* does not say that it is signed' a.log

# Where that is enough.
$sinnet down --control a.sock; wait $a
sed -i 's/^\[dns\]/&\nhip_records = "any"/' a.toml
$sinnet up -c a.toml --control a.sock 2>c.log & a=$!
wait_for 'grep -q " ready " c.log'
[ "$(curl -sS --max-time 10 http://b.open:8000/page)" = 'by its name' ]
grep -q 'b.open is .* which is not signed' c.log
# By its rendezvous server: where its address is nobody's.
[ "$(curl -sS --max-time 20 http://away.example:8000/page)" = 'by its server' ]
grep -q 'away.example is .* which is signed, at \[198.51.100.99\], and its rendezvous servers' c.log

# The host's own resolver asks us as long as we run, however we end.
umount /etc/resolv.conf
mkdir etc; cp /etc/passwd /etc/group /etc/nsswitch.conf etc; printf 'nameserver 192.0.2.53\nsearch open\n' >etc/resolv.conf
cp etc/resolv.conf before; mount --bind etc /etc
again() { # value of resolver
    sed -i "/^resolver/d; s/^\[dns\]/&\nresolver = \"$1\"/" a.toml
    $sinnet up -c a.toml --control a.sock 2>c.log & a=$!
    wait_for 'grep -q " ready " c.log'
}
$sinnet down --control a.sock; wait $a
again resolv.conf
[ "$(grep -v '^#' /etc/resolv.conf)" = "$(printf 'nameserver 198.18.0.1\nsearch open')" ]
[ "$(curl -sS --max-time 10 http://b:8000/page)" = 'by its name' ]
$sinnet down --control a.sock; wait $a
wait_for 'cmp -s before /etc/resolv.conf'
again resolv.conf
kill -9 $a; wait $a || true
wait_for 'cmp -s before /etc/resolv.conf'
[ "$(ls /etc)" = "$(printf 'group\nnsswitch.conf\npasswd\nresolv.conf')" ]
again resolv.conf
kill -9 $(cat /proc/$a/task/$a/children) $a; wait $a || true
refused cmp -s before /etc/resolv.conf
$sinnet clean | grep -q 'resolv.conf is what it was'
cmp before /etc/resolv.conf

# systemd-resolved is none here; it would be told so (resolvectl(1)).
mkdir bin; printf '#!/bin/sh\necho "$@" >>%s/told\n' $PWD >bin/resolvectl; chmod +x bin/resolvectl
PATH=$PWD/bin:$PATH again systemd-resolved
[ "$(cat told)" = "$(printf 'dns sinnet0 198.18.0.1\ndomain sinnet0 ~.\ndefault-route sinnet0 yes')" ]
cmp before /etc/resolv.conf
$sinnet down --control a.sock; wait $a
echo "all went well"
"#;

#[test]
fn a_name_of_the_dns_is_a_peer() {
    let programs = [
        ("nsd", "-v"),
        ("unbound", "-V"),
        ("ldns-signzone", "-v"),
        ("named-checkzone", "-v"),
        ("dig", "-v"),
        ("curl", "-V"),
    ];
    if programs.iter().all(|(program, version)| testkit::has(program, &[version])) {
        common::in_namespaces(SCRIPT, 110, &[]);
    }
}
