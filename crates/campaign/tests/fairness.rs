//! Expected allocations of scenario files: the evaluation scenarios of M. Becke and others (ICC 2012), what is measured
//! beside them, and what is refused.

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

use campaign::{Campaign, FairnessReport, Options, Origin, Seeds};
use serde_json::Value;

/// Evaluation scenario 3: sub-flow 0 alone on α, sub-flow 1 beside flow 1 on β.
fn scenario_3(alpha: u32, beta: u32, more: &str) -> String {
    let red = "queue = { kind = \"red\", min = \"30p\", max = \"90p\", limit = \"90p\" }";
    format!(
        r#"
        name = "scenario 3"
        duration = "12s"
        warm_up = "4s"
        [[link]]
        between = ["s0", "r1"]
        [[link]]
        between = ["r1", "r2"]
        rate = "{alpha}Mbit/s"
        delay = "10ms"
        {red}
        [[link]]
        between = ["r2", "d0"]
        [[link]]
        between = ["s0", "r3"]
        [[link]]
        between = ["s1", "r3"]
        [[link]]
        between = ["r3", "r4"]
        rate = "{beta}Mbit/s"
        delay = "10ms"
        {red}
        [[link]]
        between = ["r4", "d0"]
        [[link]]
        between = ["r4", "d1"]
        [[flow]]
        name = "multi"
        from = "s0"
        to = "d0"
        protocol = "cmt-sctp"
        congestion = "rp-mp-v2"
        paths = [["s0", "r1", "r2", "d0"], ["s0", "r3", "r4", "d0"]]
        [[flow]]
        name = "single"
        from = "s1"
        to = "d1"
        protocol = "sctp"
        {more}
        "#
    )
}

fn sentence(text: &str) -> String {
    match Campaign::parse(text, "test.toml", &[], Seeds::default()) {
        Err(error) => error.to_string(),
        Ok(campaign) => campaign.expectations().unwrap_err().to_string(),
    }
}

fn fairness(text: &str) -> Value {
    let campaign = Campaign::parse(text, "test.toml", &[], Seeds::default()).unwrap();
    let expectations = campaign.expectations().unwrap();
    let options = Options {
        threads: NonZeroUsize::MIN,
        out: None,
        interval: None,
        pcap: false,
        origin: Origin { version: String::new(), program: String::new() },
    };
    let report = campaign.run(&options, &AtomicBool::new(false), |_| {}).unwrap();
    let fairness = FairnessReport::new(expectations, &report);
    assert!(fairness.to_string().contains("friendliness factor"));
    fairness.to_json()
}

#[test]
fn scenario_3_by_its_formulas() {
    let found = fairness(&scenario_3(20, 30, ""));
    let flows = &found["points"][0]["flows"];
    let rate = |value: &Value| value.as_f64().unwrap();
    // §V-C: link-centric ρ(α), ρ(β)/2, ρ(β)/2; network-centric ρ(α), (ρ(β) - ρ(α))/2, the rest.
    for (notion, expected) in [("link-centric flow", [20.0, 15.0, 15.0]), ("network-centric flow", [20.0, 5.0, 25.0])] {
        let [first, second] = [0, 1].map(|path| rate(&flows[0]["subflows"][path]["expected"][notion]));
        let shares = [first, second, rate(&flows[1]["expected"][notion])];
        for (found, expected) in shares.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-3, "{notion}: {found} instead of {expected}");
        }
    }
    // Nobody measures more than there is.
    let [multi, single] = [0, 1].map(|flow| rate(&flows[flow]["measured"]["mean"]));
    assert!(multi > 5.0 && single > 5.0 && multi + single < 50.0, "{multi} {single}");
    // The path over the other router, too, is one: from s0 by r3 or r1.
    assert_eq!(flows[0]["paths"], 2);
    assert_eq!(flows[0]["loop_free_paths"][0]["bandwidth"].as_f64(), Some(20.0));
}

#[test]
fn what_makes_no_sense_is_told() {
    let shared = "[[node]]\nname = \"s0\"\nlocators = [\"10.0.0.1\", \"10.0.1.1\"]\n\
                  [[node]]\nname = \"d0\"\nlocators = [\"10.0.9.1\", \"10.0.1.1\"]\n";
    let error = sentence(&scenario_3(20, 30, shared));
    assert!(error.contains("the locator \"10.0.1.1\" belongs to \"s0\" already"), "{error}");
    let source = "[[flow]]\nname = \"source\"\nfrom = \"s1\"\nto = \"d1\"\nprotocol = \"udp\"\nrate = \"31Mbit/s\"\n";
    let error = sentence(&scenario_3(20, 30, source));
    assert!(error.contains("sources send 31 Mbit/s over the link from r3 to r4, which has 30"), "{error}");
    let endless = scenario_3(20, 30, "").replace("rate = \"20Mbit/s\"", "rate = \"unlimited\"");
    let endless = endless.replace("queue = { kind = \"red\", min = \"30p\", max = \"90p\", limit = \"90p\" }", "");
    assert!(sentence(&endless).contains("nothing limits this flow"), "{}", sentence(&endless));
    for (rule, expected) in [
        ("wvegas", "\"wvegas\" needs the round-trip time of every packet"),
        ("rp-mp-v3", "did you mean \"rp-mp-v"),
        ("rp-mp-v2:blocking=perhaps", "its value must be on or off"),
    ] {
        let error = sentence(&scenario_3(20, 30, "").replace("rp-mp-v2", rule));
        assert!(error.contains(expected), "{error}");
    }
    let coupled = scenario_3(20, 30, "congestion = \"lia\"");
    assert!(sentence(&coupled).contains("couples the paths that are in use at once, and here there is one"));
    let small = scenario_3(20, 30, "").replace("congestion = \"rp-mp-v2\"", "send_buffer = \"2kB\"");
    assert!(sentence(&small).contains("no room for one message on each path"), "{}", sentence(&small));
    let tcp = scenario_3(20, 30, "cuc = \"v2\"");
    let error = sentence(&tcp);
    assert!(error.contains("`cuc` is not for \"sctp\"") && error.contains("it is for \"cmt-sctp\""), "{error}");
}
