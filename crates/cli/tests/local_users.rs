//! A daemon that root started, among the other users of its machine. The oracles are the kernel's: what /proc says of the
//! process, and what it lets other users do. Where this is not root, or namespaces are not allowed, the test says so and does
//! nothing.

use crate::common;

/// A daemon with a user of its own, `keeper`, and the metrics; `other` is a user who is nobody to it. Who the users of this
/// machine are is changed for this mount namespace only.
const BEGIN: &str = r#"
keeper=64999 other=64998 outsider="setpriv --reuid 64998 --regid 64998 --clear-groups"
{ cat /etc/passwd; echo "keeper:x:$keeper:$keeper::/:/bin/false"; echo "member:x:64997:64997::/:/bin/false"; } >passwd
{ cat /etc/group; echo "keeper:x:$keeper:"; echo "askers:x:64990:"; } >group
mount --bind passwd /etc/passwd; mount --bind group /etc/group
chmod 755 .; touch sinnet; mount --bind $sinnet sinnet; sinnet=./sinnet # where everybody may run it
ip link add e1 type veth peer name f1; ip link set f1 netns $far
ip addr add 10.1.0.1/24 dev e1; ip link set e1 up; $there ip link set f1 up
$sinnet keygen --out a.pem
printf 'identity = "a.pem"\nname = "a.hip"\nmetrics = "127.0.0.1:9480"\nuser = "keeper"\n' >a.toml
for i in 1 2; do printf '[[path]]\nname = "p%s"\ninterface = "e%s"\n' $i $i >>a.toml; done # e2 comes later
start() { # what goes on in front of the program
    "$@" $sinnet up -c a.toml --control run/a.sock 2>a.log & a=$!
    for _ in $(seq 100); do grep -q ' ready ' a.log && return; kill -0 $a || break; sleep 0.1; done
    cat a.log; return 1
}
resident() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' /proc/$a/status; } # in KiB
ticks() { cut -d' ' -f14,15 /proc/$a/stat | tr ' ' +; } # of a hundredth of a second
"#;

const LEAST_PRIVILEGE: &str = r#"
start env
cat /proc/$a/status
grep -q "^Uid:.$keeper.$keeper.$keeper.$keeper" /proc/$a/status
grep -q "^Gid:.$keeper.$keeper.$keeper.$keeper" /proc/$a/status
grep -q "^Groups:.$keeper *$" /proc/$a/status
for set in CapInh CapPrm CapEff CapBnd CapAmb; do grep -q "^$set:.0000000000000000" /proc/$a/status; done
grep -q '^Seccomp:.2' /proc/$a/status; grep -q '^NoNewPrivs:.1' /proc/$a/status
[ "$(ls /proc/$a/task | wc -l)" = 1 ]
grep -q 'confined: user keeper' a.log
$sinnet status --control run/a.sock | grep 'confined: user keeper, .* system calls'
# With what is left, all of it works: names over both transports, metrics (for nobody who comes by a name that was made to
# point here), an interface that appears.
cat >ask.py <<'END'
import socket, struct, sys
lsi = sys.argv[1]
question = b'\0\7\1\0\0\1\0\0\0\0\0\0' + b'\1a\3hip\0' + struct.pack('>HH', 1, 1)
names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); names.settimeout(5)
names.sendto(question, (lsi, 53)); assert names.recv(512).endswith(socket.inet_aton(lsi))
names = socket.create_connection((lsi, 53), 5); names.sendall(struct.pack('>H', len(question)) + question)
assert names.recv(512).endswith(socket.inet_aton(lsi))
for host, told in ('localhost', b'sinnet_host_info'), ('evil.example', b' 421 '):
    metrics = socket.create_connection(('127.0.0.1', 9480), 5)
    metrics.sendall(b'GET /metrics HTTP/1.1\r\nHost: ' + host.encode() + b'\r\n\r\n')
    answer = b''
    while more := metrics.recv(65536): answer += more
    assert told in answer and (b'sinnet' in answer) == (host == 'localhost'), answer
END
python3 ask.py $($sinnet status --control run/a.sock | sed -n '1s/.*LSI \([0-9.]*\).*/\1/p')
ip link add e2 type veth peer name f2; ip link set f2 netns $far
ip addr add 10.2.0.1/24 dev e2; ip link set e2 up; $there ip link set f2 up
for _ in $(seq 50); do grep -q '10.2.0.1 on p2 is there and is used' a.log && break; sleep 0.1; done
grep '10.2.0.1 on p2 is there and is used' a.log
# A terminal that closes ends nothing.
printf '[[peer]]\nname = "new.hip"\nhit = "2001:22::77"\nlocators = ["10.1.0.7"]\n' >>a.toml
kill -HUP $a; sleep 0.5; grep -q 'SIGHUP.*new.hip is new' a.log
$sinnet status --control run/a.sock --json | grep -q '"ready": true'
# The one that dies leaves no memory behind.
grep -q 'Max core file size  *0  *0 ' /proc/$a/limits
[ "$(stat -c %u /proc/$a/environ)" = 0 ] # not dumpable (proc(5))
$sinnet down --control run/a.sock; wait $a
[ ! -e run/a.sock ]
# As dist/sinnet.service starts it: never root.
mknod tun c 10 200; chmod 666 tun; mount --bind tun /dev/net/tun
chown $keeper a.pem; few=-all,+net_admin,+net_raw,+net_bind_service
never_root="setpriv --reuid $keeper --regid $keeper --clear-groups --inh-caps $few --ambient-caps $few --bounding-set $few"
if $never_root test -w /dev/net/tun; then
    start $never_root; for set in CapPrm CapEff CapAmb; do grep -q "^$set:.0000000000000000" /proc/$a/status; done
    grep -q '^Seccomp:.2' /proc/$a/status; grep -q 'confined: user keeper, no capabilities' a.log
    $sinnet down --control run/a.sock; wait $a; [ ! -e run/a.sock ]
fi
chown 0 a.pem
# Who started as root and names nobody stays what it is where there is no user sinnet, and says so.
sed -i /user/d a.toml; start env; grep -q "^Uid:.0" /proc/$a/status; grep -q 'runs as root' a.log
kill -ABRT $a; wait $a || true
[ -z "$(find . -name 'core*')" ]
start env; kill -TERM $a; wait $a
# A user who is not there is told before anything is done.
echo 'user = "missing"' | cat - a.toml >b.toml; refused $sinnet up -c b.toml --control run/b.sock 2>b.log; grep 'useradd --system' b.log
echo "all went well"
"#;

const VISITORS: &str = r#"
sed -i 's/^user.*/&\ncontrol_everyone = true/' a.toml
ulimit -n 4096; start env
$outsider $sinnet status --control run/a.sock --json | grep -q '"ready": true'
refused $outsider $sinnet down --control run/a.sock 2>refused; grep 'only root' refused
cat >crowd.py <<'END'
import os, socket, sys, time
os.setgroups([]); os.setresgid(64998, 64998, 64998); os.setresuid(64998, 64998, 64998)
silent, slow, greedy = [], [], []
def come(list):
    s = socket.socket(socket.AF_UNIX); s.setblocking(False)
    try: s.connect('run/a.sock'); list.append(s)
    except OSError: pass
end = time.monotonic() + float(sys.argv[1])
for _ in range(1000): come(silent)
while time.monotonic() < end:
    for _ in range(8): come(silent); come(slow); come(greedy)
    del silent[:-1000], slow[:-200], greedy[:-200]
    for s in slow:
        try: s.send(b'{')
        except OSError: pass
    for s in greedy:
        try: s.send(b'{"command":"status"}\n' * 190)
        except OSError: pass
    time.sleep(0.01)
END
before=$(resident)
python3 crowd.py 6 & crowd=$!
sleep 2
# Root has a place of his own, however many others there are.
for _ in 1 2 3; do timeout 2 $sinnet status --control run/a.sock --json >state; grep -q '"ready": true' state; done
sleep 2; after=$(resident)
echo "resident: $before KiB before, $after KiB after"; [ $((after - before)) -lt 16384 ]
kill -0 $crowd
timeout 3 $sinnet down --control run/a.sock; wait $a
kill $crowd; wait $crowd || true
# Without file descriptors for visitors it waits for them, and does not spin.
start prlimit --nofile=26:26
python3 -c '
import socket, time
all = []
for _ in range(16): s = socket.create_connection(("127.0.0.1", 9480)); all.append(s)
time.sleep(4)' & sleep 1
one=$(( $(ticks) )); sleep 2; two=$(( $(ticks) ))
echo "$((two - one)) ticks in 2 s"; [ $((two - one)) -lt 60 ]
timeout 3 $sinnet down --control run/a.sock; wait $a
echo "all went well"
"#;

const ACCESS: &str = r#"
start env
[ "$(stat -c '%a %u %g' run/a.sock)" = "660 $keeper $keeper" ]
refused $outsider $sinnet status --control run/a.sock 2>refused; grep 'may not ask' refused
setpriv --reuid $keeper --regid $keeper --clear-groups $sinnet status --control run/a.sock | grep -q confined
setpriv --reuid $keeper --regid $keeper --clear-groups $sinnet down --control run/a.sock; wait $a
sed -i 's/^user.*/&\ncontrol_group = "askers"/' a.toml; start env
member="setpriv --reuid 64997 --regid 64997 --groups 64990"
$member $sinnet status --control run/a.sock | grep -q confined
refused $member $sinnet down --control run/a.sock 2>refused; grep 'only root' refused
refused $outsider $sinnet status --control run/a.sock 2>refused
# Who reads the log may leave, or stop reading: the daemon goes on.
kill -TERM $a; wait $a
mkfifo log; exec 3<>log; $sinnet up -c a.toml --control run/a.sock 2>log & a=$!
answers() { for _ in $(seq 50); do timeout 2 $sinnet status --control run/a.sock >/dev/null 2>&1 && return; sleep 0.1; done; return 1; }
answers
for _ in $(seq 1200); do kill -HUP $a; sleep 0.005; done # more than a pipe holds, and nobody reads
timeout 3 $sinnet status --control run/a.sock | grep -q confined
timeout 3 $sinnet down --control run/a.sock; wait $a
exec 3>&-
{ $sinnet up -c a.toml --control run/a.sock 2>&1 & echo $! >pid; wait $!; echo $? >code; } | head -1 &
for _ in $(seq 50); do [ -s pid ] && break; sleep 0.1; done
answers
for _ in 1 2 3; do kill -HUP $(cat pid); sleep 0.2; done
timeout 3 $sinnet down --control run/a.sock
for _ in $(seq 50); do [ -s code ] && break; sleep 0.1; done; [ "$(cat code)" = 0 ]
# What is not ours stays.
echo precious >file; refused $sinnet up -c a.toml --control file 2>refused; [ "$(cat file)" = precious ]
chmod 644 a.pem; refused $sinnet up -c a.toml --control run/a.sock 2>refused; grep 'chmod 600' refused
echo "all went well"
"#;

fn among_users(script: &str) {
    common::in_namespaces_of_root(&format!("{BEGIN}{script}"), 90, &[]);
}

#[test]
fn the_daemon_keeps_no_privilege_that_it_does_not_need() {
    among_users(LEAST_PRIVILEGE);
}

#[test]
fn a_crowd_of_other_users_neither_grows_it_nor_keeps_root_out() {
    among_users(VISITORS);
}

#[test]
fn who_may_ask_and_who_may_end_it_is_a_choice() {
    among_users(ACCESS);
}
