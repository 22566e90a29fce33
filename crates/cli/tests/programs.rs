//! Policies by user and by cgroup, with real daemons in network namespaces: what two users send to the same port takes different
//! paths, what a third one sends does not pass, and what the peer sees of it is as without. The oracles are the kernel's counters
//! of the interfaces, its errors, and a program on the other side. Where this is not root, or namespaces are not allowed, the test
//! says so and does nothing.

use crate::common;

const SCRIPT: &str = r#"
{ cat /etc/passwd; echo "one:x:64996:64996::/:/bin/false"; } >passwd; mount --bind passwd /etc/passwd
chmod 755 .
for i in 1 2; do
    ip link add e$i type veth peer name f$i; ip link set f$i netns $far
    ip addr add 10.$i.0.1/24 dev e$i; $there ip addr add 10.$i.0.2/24 dev f$i
    ip link set e$i up; $there ip link set f$i up
done
hierarchy=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
group=sinnet-test-$$; mkdir -p $hierarchy/$group/inner $hierarchy/$group/other
trap 'kill $(jobs -p) 2>/dev/null; wait; rmdir $hierarchy/$group/inner $hierarchy/$group/other $hierarchy/$group' EXIT
A=$($sinnet keygen --out a.pem); B=$($sinnet keygen --out b.pem)
policies() { # path of the first user, path of the second
    printf '[[policy]]\nuser = "one"\npaths = ["%s"]\nstrict = true\n' $1
    printf '[[policy]]\nuser = "64997"\nports = ["9000"]\npaths = ["%s"]\nstrict = true\n' $2
    printf '[[policy]]\nuser = "64998"\nthrough = false\n'
    printf '[[policy]]\ncgroup = "%s/other"\nthrough = false\n' $group
    printf '[[policy]]\ncgroup = "%s"\npaths = ["%s"]\nstrict = true\n' $group $2
}
for i in 1 2; do printf '[[path]]\nname = "p%s"\ninterface = "%s%s"\n' $i e $i; done >paths
{ printf 'identity = "a.pem"\n'; cat paths; printf '[[peer]]\nname = "b.hip"\nhit = "%s"\n' $B
  printf 'locators = ["10.1.0.2", "10.2.0.2"]\n'; } >begin
{ cat begin; policies p1 p2; } >a.toml
sed 's/"e/"f/' paths | { printf 'identity = "b.pem"\n'; cat -; printf '[[peer]]\nname = "a.hip"\nhit = "%s"\n' $A; } >b.toml
up_on_both
ping -c 2 -i 0.2 -W 5 $B
wait_for '[ "$(grep -c "is up" a.log)" = 2 ]'
lsi=$($sinnet status --control a.sock | sed -n 's/^  .*LSI //p')
cat >hear.py <<'END'
import select, socket, threading, time
v6 = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); v6.bind(("::", 9000))
v6.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1); v6.setsockopt(0, 13, 1) # IP_RECVTOS
def slow():
    server = socket.create_server(("::", 9001), family=socket.AF_INET6)
    while True:
        connection, _ = server.accept()
        time.sleep(1); got = 0
        while data := connection.recv(1 << 16): got += len(data)
        print("stream of", got, flush=True)
threading.Thread(target=slow, daemon=True).start()
print("hears", flush=True)
while True:
    data, more, _, where = v6.recvmsg(2000, 100)
    marks = [value[0] for level, kind, value in more]
    print(data[:5].decode(), "marked", marks, flush=True)
END
$there python3 hear.py >>heard & wait_for '[ -e heard ] && grep -q hears heard'
cat >as_.py <<'END'
import encodings.idna, os, sys
user = int(os.environ.get("AS", 0)) # who could not read more of this Python
if user: os.setgroups([]); os.setresgid(user, user, user); os.setresuid(user, user, user)
END
cat >say.py <<'END'
import socket, sys, time, as_
host, word, marks = sys.argv[1], sys.argv[2], [int(mark) for mark in sys.argv[3:]] or [0]
sender = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
for number in range(200):
    mark = marks[number % len(marks)]
    if ":" in host: sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, mark << 2)
    else: sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, mark << 2)
    sender.sendto(word.encode() * 200, (host, 9000)); time.sleep(0.001)
END
cat >stream.py <<'END'
import socket, sys, as_
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)
connection.sendall(b"x" * 1_500_000); connection.close()
END
as() { AS=$1 "${@:2}"; }
within() { inside=$1; shift; bash -c 'echo $$ >$0/cgroup.procs; exec "$@"' $hierarchy/$group/$inside "$@"; }
sent() { sed -n "s/^ *e$1: *//p" /proc/net/dev | awk '{ print int($9 / 1000) }'; } # kB
measure() { # the path that it must take; what is done
    only=$1; shift
    before=($(sent 1) $(sent 2)); "$@"; sleep 0.3; after=($(sent 1) $(sent 2))
    took=($((after[0] - before[0])) $((after[1] - before[1])))
    echo "$only: ${took[*]} kB: $*"
    [ ${took[$((only - 1))]} -gt 180 ] && [ ${took[$((2 - only))]} -lt 60 ]
}
heard() { wait_for "[ \$(grep -c '^$1' heard) = 200 ]"; } # each of them
for host in $B $lsi; do # both families
    measure 1 as 64996 python3 say.py $host one__; heard one__
    measure 2 as 64997 python3 say.py $host two__; heard two__
    measure 2 within inner python3 say.py $host cgrp_; heard cgrp_
    # With whatever they mark their packets, they are not taken for others.
    as 64998 python3 say.py $host three $(seq 0 63) 2>refused || grep -q 'Permission denied\|No route to host' refused
    within other python3 say.py $host three 2>refused || grep -q 'Permission denied\|No route to host' refused
    measure 1 as 64996 python3 say.py $host mark_ $(seq 0 63); heard mark_
    # Of those who are in no policy each goes on.
    python3 say.py $host root_; heard root_
    refused grep three heard
    [ "$(grep -o 'marked .*' heard | sort -u)" = 'marked [0]' ]
    : >heard
done
refused as 64998 timeout 3 python3 stream.py $B 9001 2>refused; grep 'Permission denied' refused
# What is left when a program has closed its socket is still its own.
measure 1 eval 'as 64996 python3 stream.py $B 9001; wait_for "grep -q \"stream of 1500000\" heard"'
# Policies change while it runs; whom the filter does not know needs a restart.
{ cat begin; policies p2 p1; } >a.toml; kill -HUP $a; wait_for 'grep -q "SIGHUP: the peers" a.log'; : >heard
measure 2 as 64996 python3 say.py $B one__; heard one__
measure 1 as 64997 python3 say.py $B two__; heard two__
sed 's/"one"/"64995"/' a.toml >c.toml; cat c.toml >a.toml; kill -HUP $a
wait_for 'grep -q "the user 64995 was in no policy when Sinnet started" a.log'
: >heard; measure 2 as 64996 python3 say.py $B one__; heard one__
grep -q 'CapEff:.*0000000000000000' /proc/$a/status
# Who is not there is told with the line.
sed 's/"64995"/"missing"/' c.toml >a.toml; refused $sinnet check a.toml 2>refused; grep 'there is no user missing' refused
grep "a.toml:$(grep -n missing a.toml | cut -d: -f1):" refused
sed "s|$group|$group/no|" c.toml >a.toml; refused $sinnet check a.toml 2>refused; grep "there is no cgroup $group/no" refused
sed "s/^identity.*/&\n[tun]\nfirewall = false/" c.toml >a.toml; refused $sinnet check a.toml 2>refused; grep 'packet filter' refused
$sinnet down --control a.sock; wait $a
$there $sinnet down --control b.sock; wait $b
echo "all went well"
"#;

#[test]
fn users_and_cgroups_have_paths_of_their_own() {
    common::in_namespaces_of_root(SCRIPT, 90, &[]);
}
