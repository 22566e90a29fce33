//! The kernel's own test of Multipath TCP over two paths, passed by plain TCP through Sinnet, in virtual time. The limits are
//! those of Linux' tools/testing/selftests/net/mptcp/simult_flows.sh: `1000 · size · 80 / ((rate 1 + rate 2) · 9 · 10⁶) + 450` ms.

use lab::{Hosts, Options, Progress};

const FILE: &str = include_str!("../../../scenarios/lab/simult-flows.toml");
const SIZE: f64 = 16.0 * 1024.0 * 1024.0;

/// Milliseconds from the start of the connection to the last byte of 16 MiB.
fn takes(rates: [u32; 2], delays: [u32; 2], upload: bool) -> f64 {
    let mut document = scenario::Document::parse(FILE, "simult-flows.toml").expect("a scenario");
    let mut set = |assignment: String| document.set(&assignment).expect("a setting");
    for (link, (rate, delay)) in [1, 3].into_iter().zip(rates.into_iter().zip(delays)) {
        set(format!("link.{link}.rate={rate}Mbit/s"));
        set(format!("link.{link}.delay={delay}ms"));
    }
    if upload {
        set("flow.1.from=a".to_owned());
        set("flow.1.to=b".to_owned());
        set("flow.1.paths=[[\"a\", \"r1\", \"b\"], [\"a\", \"r2\", \"b\"]]".to_owned());
    }
    let options = Options { directory: None, executable: "sinnet".into(), hosts: Hosts::Virtual, together: true };
    let report = lab::run(&document.scenario().expect("a scenario"), &options, &mut Progress::silent());
    let report = report.expect("a report");
    assert!(report.sha256_equal, "{report:?}");
    // From the first byte to the last; before are the two round trips until it comes.
    SIZE * 8.0 / report.together_mbps / 1e3 + 4.0 * f64::from(delays.into_iter().min().unwrap_or(0))
}

#[test]
fn the_kernels_own_test_is_passed() {
    for rates in [[10, 10], [30, 10]] {
        let limit = 1000.0 * SIZE * 80.0 / (f64::from(rates[0] + rates[1]) * 9e6) + 450.0;
        for delays in [[0, 0], [1, 50], [50, 1]] {
            for upload in [false, true] {
                let taken = takes(rates, delays, upload);
                assert!(taken <= limit, "{rates:?} {delays:?} {upload}: {taken:.0} of {limit:.0} ms");
            }
        }
    }
}
