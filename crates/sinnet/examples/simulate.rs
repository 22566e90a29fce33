//! A scenario in virtual time: one TCP download alone, then over two links with MPTCP, with five seeds each.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use sinnet::scenario::Document;
use sinnet::simulator::{RunOptions, run};

const TEXT: &str = r#"
name = "one link, or two"
duration = "20s"
warm_up = "2s"

[[link]]
between = ["server", "fibre"]
rate = "8Mbit/s"
delay = "20ms"
queue = "1bdp"

[[link]]
between = ["fibre", "client"]
rate = "1Gbit/s"
delay = "1ms"

[[link]]
between = ["server", "radio"]
rate = "4Mbit/s"
delay = "40ms"
queue = "1bdp"

[[link]]
between = ["radio", "client"]
rate = "1Gbit/s"
delay = "1ms"

[[flow]]
name = "download"
start = ["0s", "1s"]
from = "server"
to = "client"
"#;

fn main() -> Result<(), sinnet::Diagnostic> {
    let fibre = r#"["server", "fibre", "client"]"#;
    let radio = r#"["server", "radio", "client"]"#;
    let single = format!("protocol = \"tcp\"\npaths = [{fibre}]\n");
    let both = format!("protocol = \"mptcp\"\npaths = [{fibre}, {radio}]\n");
    for (name, flow) in [("one link", single), ("two links", both)] {
        // Parsed once, run with as many seeds as wanted.
        let scenario = Document::parse(&format!("{TEXT}{flow}"), "simulate.toml")?.scenario()?;
        for seed in 1..=5 {
            let result = run(&scenario, seed, &RunOptions::default())?;
            let goodput: f64 = result.flows.iter().map(|flow| flow.goodput_mbps).sum();
            println!("{name}, seed {seed}: {goodput:.2} Mbit/s");
        }
    }
    Ok(())
}
