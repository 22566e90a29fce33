//! SCTP and CMT-SCTP in the simulator, against closed forms: what a link carries, the sum of paths, the shares of
//! uncoupled paths, and what divided buffers and NR-SACK are for.

use simulator::{RunOptions, RunResult};

/// Two paths from `s` to `d` of their own, and one of `single` beside the second.
fn run(flow: &str, first: (f64, u32), second: (f64, u32), more: &str) -> RunResult {
    let link = |ends: &str, (rate, delay): (f64, u32)| {
        format!("[[link]]\nbetween = {ends}\nrate = \"{rate}Mbit/s\"\ndelay = \"{delay}ms\"\nqueue = \"1bdp\"\n")
    };
    let text = format!(
        "name = \"sctp\"\nduration = \"60s\"\nwarm_up = \"10s\"\n{}{}\
         [[link]]\nbetween = [\"s\", \"r1\"]\n[[link]]\nbetween = [\"s\", \"r3\"]\n\
         [[link]]\nbetween = [\"r2\", \"d\"]\n[[link]]\nbetween = [\"r4\", \"d\"]\n\
         [[flow]]\nname = \"multi\"\nfrom = \"s\"\nto = \"d\"\n{flow}\n{more}",
        link("[\"r1\", \"r2\"]", first),
        link("[\"r3\", \"r4\"]", second),
    );
    let scenario = scenario::parse(&text, "sctp.toml").unwrap();
    simulator::run(&scenario, 7, &RunOptions::default()).unwrap()
}

const BOTH: &str = "paths = [[\"s\", \"r1\", \"r2\", \"d\"], [\"s\", \"r3\", \"r4\", \"d\"]]";
const FIRST: &str = "paths = [[\"s\", \"r1\", \"r2\", \"d\"]]";

#[track_caller]
fn assert_between(value: f64, low: f64, high: f64) {
    assert!((low..=high).contains(&value), "{value} is not between {low} and {high}");
}

/// 1452 of 1500 bytes are payload. A queue of 1 BDP keeps Reno's link busy always.
#[test]
fn sctp_fills_a_link() {
    let flow = format!("protocol = \"sctp\"\n{FIRST}");
    let result = run(&flow, (10.0, 20), (10.0, 20), "");
    let full = 10.0 * 1452.0 / 1500.0;
    assert_between(result.flows[0].goodput_mbps, 0.98 * full, full);
}

/// With spare paths SCTP uses one, and goes on over the other when that is gone (RFC 9260 §8.2): the second half of the
/// run carries as much.
#[test]
fn sctp_moves_to_a_spare_path() {
    let change = "\n[[link.change]]\nat = \"30s\"\ndown = true\n";
    let text = format!(
        "name = \"spare\"\nduration = \"400s\"\nwarm_up = \"300s\"\n\
         [[link]]\nbetween = [\"s\", \"r1\"]\nrate = \"4Mbit/s\"\ndelay = \"10ms\"\nqueue = \"1bdp\"{change}\
         [[link]]\nbetween = [\"r1\", \"d\"]\n\
         [[link]]\nbetween = [\"s\", \"r2\"]\nrate = \"4Mbit/s\"\ndelay = \"10ms\"\nqueue = \"1bdp\"\n\
         [[link]]\nbetween = [\"r2\", \"d\"]\n\
         [[flow]]\nfrom = \"s\"\nto = \"d\"\nprotocol = \"sctp\"\npaths = [[\"s\", \"r1\", \"d\"], [\"s\", \"r2\", \"d\"]]\n"
    );
    let scenario = scenario::parse(&text, "spare.toml").unwrap();
    let result = simulator::run(&scenario, 7, &RunOptions::default()).unwrap();
    let flow = &result.flows[0];
    let full = 4.0 * 1452.0 / 1500.0;
    assert_between(flow.goodput_mbps, 0.97 * full, full);
    assert_eq!(flow.paths[0].delivered, 0);
    assert!(flow.paths[0].probes > 0, "the dead path is tried");
}

/// CMT carries the sum of its paths, whatever the rule, when nobody else is there.
#[test]
fn cmt_carries_the_sum_of_its_paths() {
    for rule in ["reno-mp", "rp-mp-v1", "rp-mp-v2", "lia-byte", "olia", "balia"] {
        let flow = format!("protocol = \"cmt-sctp\"\ncongestion = \"{rule}\"\n{BOTH}");
        let result = run(&flow, (10.0, 20), (10.0, 20), "");
        let full = 20.0 * 1452.0 / 1500.0;
        // Resource pooling halves the sum of both at a loss on either, and that is all of one of two equal paths: a
        // window that grows evenly from a packet to 2 BDP fills three quarters of its link, and one whose growth is its
        // share, slow while it is small, less.
        let least = if rule.starts_with("rp") { 0.6 } else { 0.9 };
        assert_between(result.flows[0].goodput_mbps, least * full, full);
    }
}

/// Three SCTP sub-flows on one link, two of which are one flow: two thirds (ALGORITHMS §4.1); with coupled rules it is
/// noticeably less.
#[test]
fn uncoupled_paths_take_a_share_each() {
    let share = |rule: &str| {
        let red = "queue = { kind = \"red\", min = \"30p\", max = \"90p\", limit = \"90p\" }";
        let text = format!(
            "name = \"scenario 2\"\nduration = \"120s\"\nwarm_up = \"20s\"\n\
             [[link]]\nbetween = [\"r1\", \"r2\"]\nrate = \"30Mbit/s\"\ndelay = \"10ms\"\n{red}\n\
             [[link]]\nbetween = [\"s0\", \"a\"]\n[[link]]\nbetween = [\"a\", \"r1\"]\n\
             [[link]]\nbetween = [\"s0\", \"b\"]\n[[link]]\nbetween = [\"b\", \"r1\"]\n\
             [[link]]\nbetween = [\"r2\", \"d0\"]\n[[link]]\nbetween = [\"s1\", \"r1\"]\n[[link]]\nbetween = [\"r2\", \"d1\"]\n\
             [[flow]]\nname = \"multi\"\nfrom = \"s0\"\nto = \"d0\"\nprotocol = \"cmt-sctp\"\ncongestion = \"{rule}\"\n\
             paths = [[\"s0\", \"a\", \"r1\", \"r2\", \"d0\"], [\"s0\", \"b\", \"r1\", \"r2\", \"d0\"]]\n\
             [[flow]]\nname = \"single\"\nfrom = \"s1\"\nto = \"d1\"\nprotocol = \"sctp\"\n"
        );
        let scenario = scenario::parse(&text, "two.toml").unwrap();
        let result = simulator::run(&scenario, 7, &RunOptions::default()).unwrap();
        result.flows[0].goodput_mbps / (result.flows[0].goodput_mbps + result.flows[1].goodput_mbps)
    };
    assert_between(share("reno-mp"), 0.62, 0.71);
    for rule in ["rp-mp-v2", "lia-byte"] {
        assert_between(share(rule), 0.38, 0.62);
    }
}

/// A fast and a slow path with buffers of less than the slow one's delay needs: undivided, chunks of the slow path fill
/// them and the fast one waits; divided and with NR-SACK it does not (Dreibholz and others, GLOBECOM 2010; Natarajan and
/// others, ICNP 2008).
#[test]
fn divided_buffers_and_nr_sack_keep_the_fast_path_busy() {
    let with = |keys: &str| {
        let flow = format!(
            "protocol = \"cmt-sctp\"\ncongestion = \"reno-mp\"\nsend_buffer = \"250kB\"\nreceiver_window = \"250kB\"\n{keys}\n{BOTH}"
        );
        run(&flow, (20.0, 5), (1.0, 100), "").flows[0].goodput_mbps
    };
    let blocked = with("splitting = \"none\"\nnr_sack = false");
    let divided = with("splitting = \"both\"\nnr_sack = true");
    assert!(divided > blocked * 1.02, "{divided} and {blocked}");
    assert_between(divided, 0.9 * 20.0 * 0.968, 21.0 * 0.968);
}
