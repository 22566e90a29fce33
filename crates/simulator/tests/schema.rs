//! Every key of a flow that the schema says the simulator honours changes what is simulated.

use scenario::Document;
use scenario::schema::{Engine, Table, Variant};

/// The variants of flows that the simulator has.
fn simulated() -> impl Iterator<Item = (Variant, &'static str)> {
    let protocol = Table::Flow.key("protocol").expect("a key").honoured_by(Some(Engine::Sim));
    Variant::FLOWS.into_iter().filter(move |(variant, _)| protocol.has(*variant))
}

/// The plan of a scenario with two flows alike, as text; the second one has `setting`.
fn plan(flow: &str, setting: Option<&str>) -> String {
    let text = format!(
        "name = \"n\"\nduration = \"60s\"\n[[link]]\nbetween = [\"a\", \"b\"]\nrate = \"8Mbit/s\"\nqueue = \"50p\"\ndelay = \"9ms\"\n\
         [[flow]]\nname = \"leader\"\nfrom = \"a\"\nto = \"b\"\n{flow}\nstart = [\"20s\", \"40s\"]\n\
         [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n{flow}\n"
    );
    let mut document = Document::parse(&text, "file.toml").unwrap();
    if let Some(setting) = setting {
        // Only where all flows have it does a profile say something of links; and flows of one association have one host.
        let of_all = ["profile", "scheduler", "path_congestion", "rates"];
        let which = if of_all.iter().any(|key| setting.starts_with(key)) { "*" } else { "f" };
        document.set(&format!("flow.{which}.{setting}")).unwrap();
    }
    let scenario = document.scenario().unwrap_or_else(|error| panic!("{error}"));
    let plan = simulator::plan(&scenario, 1).unwrap_or_else(|error| panic!("{error}"));
    format!("{:?} {:?} {:?}", plan.links, plan.flows, plan.associations)
}

#[test]
fn what_is_honoured_changes_what_is_simulated() {
    let mut seen = 0;
    for key in Table::Flow.keys() {
        for (variant, flow) in simulated() {
            if !key.honoured_by(Some(Engine::Sim)).has(variant) || flow.contains(&format!("{} = ", key.name)) {
                continue;
            }
            let value = match (key.name, variant) {
                // They are there already, or lead elsewhere; SCTP and mHIP have one scheduler, and mHIP is in ns-2.
                ("from" | "to" | "paths" | "generation" | "inside", _) => continue,
                ("scheduler", Variant::Mhip1 | Variant::Mhip23 | Variant::Sctp | Variant::CmtSctp) => continue,
                ("profile", Variant::Mhip1 | Variant::Mhip23) => continue,
                // The leader has the usual size, and the two share an association.
                ("packet_size", Variant::SinnetTcp) => continue,
                // CUBIC and timestamps are what it has.
                ("congestion", Variant::SinnetTcp) => "\"reno\"",
                ("undo", Variant::SinnetTcp) => "\"never\"",
                // mHIP is in ns-2, which has none.
                ("timestamps", Variant::Mhip1) => "true",
                // CMT-SCTP is as paper [4] has it.
                ("ordered", Variant::CmtSctp) => "true",
                ("nr_sack", Variant::CmtSctp) => "false",
                ("name", _) => "\"other\"",
                ("start_with", _) => "\"leader\"",
                // The registry's rules; "reno" is how TCP repairs losses.
                ("congestion", _) => "\"cubic\"",
                _ => key.example,
            };
            let setting = format!("{}={value}", key.name);
            assert_ne!(plan(flow, None), plan(flow, Some(&setting)), "{setting} of {}", variant.name());
            seen += 1;
        }
    }
    assert!(seen > 80, "{seen}");
}

/// Where the default is a value, to write it down changes nothing.
#[test]
fn the_defaults_are_those_of_the_schema() {
    let mut seen = 0;
    for key in Table::Flow.keys().filter(|key| !key.is_required()) {
        let parts: Vec<&str> = key.default.split("; ").collect();
        for (variant, flow) in simulated() {
            if !key.honoured_by(Some(Engine::Sim)).has(variant) || flow.contains(&format!("{} = ", key.name)) {
                continue;
            }
            // "true; of \"cmt-sctp\" false": what is said of a variant, or else what is said of all.
            let groups: &[&str] = match variant {
                Variant::Mhip1 | Variant::Mhip23 => &["\"mhip\"", "profile"],
                Variant::Sctp => &["SCTP", "\"sctp\""],
                Variant::CmtSctp => &["SCTP", "\"cmt-sctp\""],
                Variant::Mptcp => &["\"mptcp\""],
                Variant::SinnetTcp | Variant::SinnetUdp | Variant::SinnetPing => &["\"sinnet\""],
                _ => &[],
            };
            let special = parts.iter().skip(1).any(|part| groups.iter().any(|group| part.contains(group)));
            let Some(value) = parts.first().filter(|value| !special && is_value(value)) else { continue };
            let setting = format!("{}={value}", key.name);
            assert_eq!(plan(flow, None), plan(flow, Some(&setting)), "{setting} of {}", variant.name());
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen}");
}

fn is_value(text: &str) -> bool {
    format!("v = {text}").parse::<toml::Table>().is_ok()
}

/// Every scenario of the repository that is for the simulator runs in it.
#[test]
fn the_scenarios_of_the_repository_are_simulated() {
    let mut seen = 0;
    for folder in ["sim", "papers"] {
        let folder = format!("{}/../../scenarios/{folder}", env!("CARGO_MANIFEST_DIR"));
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let document = Document::load(&text, &path.to_string_lossy(), &mut scenario::read_beside);
            for point in document.and_then(|document| document.points()).unwrap_or_else(|error| panic!("{error}")) {
                let scenario = point.document.scenario().unwrap_or_else(|error| panic!("{error}"));
                simulator::plan(&scenario, 1).unwrap_or_else(|error| panic!("{error}"));
                seen += 1;
            }
        }
    }
    assert!(seen > 60, "{seen}");
}
