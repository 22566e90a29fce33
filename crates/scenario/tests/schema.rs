//! The schema against the parser that reads by it, the files of the repository, and a validator of JSON schemas by others.

use std::path::{Path, PathBuf};

use scenario::schema::{self, Engine, Key, Table, Variant};
use scenario::{Document, parse};

/// A file with one table of each kind.
fn file(key: &Key, flow: &str) -> Document {
    let kinds = || (0..).zip(link::QueueConfig::NAMES);
    let of_queue = key.table == Table::Queue;
    let has = |at| of_queue && key.name != "kind" && key.honoured_by(None).has(Variant::Queue(at));
    let kind = kinds().find(|(at, _)| has(*at)).map_or("codel", |(_, kind)| *kind);
    let thresholds = if kind == "red" { ", min = \"10p\", max = \"200p\"" } else { "" };
    let queue = format!("kind = \"{kind}\"{thresholds}");
    let (flow, on_off) = match key.table {
        Table::OnOff => (Variant::FLOWS[1].1, "on_off = { on = \"1s\", off = \"1s\" }"),
        _ => (flow, ""),
    };
    // What goes together with the key, of those that exclude each other.
    let loss = match (key.table, key.name) {
        (Table::Loss, "rate" | "correlation" | "burst") => "rate = 0.1",
        _ => "to_bad = 0.1, to_good = 0.1",
    };
    let jitter = if key.table == Table::Jitter { "jitter = {}\n" } else { "" };
    let text = format!(
        "name = \"n\"\nduration = \"9s\"\n\
         [[link]]\nbetween = [\"a\", \"b\"]\nrate = \"1Mbit/s\"\ndelay = \"20ms\"\nloss = {{ {loss} }}\nqueue = {{ {queue} }}\n{jitter}\
         [[flow]]\nname = \"leader\"\nfrom = \"a\"\nto = \"b\"\n{flow}\n[[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n{flow}\n{on_off}\n"
    );
    Document::parse(&text, "file.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// How `--set` calls a key; those in lists of tables it cannot call.
fn path(key: &Key) -> Option<String> {
    let name = key.name;
    match key.table {
        Table::Scenario => Some(name.to_owned()),
        Table::Link => Some(format!("link.1.{name}")),
        Table::Jitter => Some(format!("link.1.jitter.{name}")),
        Table::Loss => Some(format!("link.1.loss.{name}")),
        Table::Queue => Some(format!("link.1.queue.{name}")),
        Table::Flow => Some(format!("flow.f.{name}")),
        Table::OnOff => Some(format!("flow.f.on_off.{name}")),
        Table::Change | Table::Node => None,
    }
}

/// A key that the parser did not read would be one that is accepted and ignored. No key takes a date, so one has to be refused.
#[test]
fn every_key_is_read() {
    let mut read = 0;
    for key in schema::keys().filter(|key| !matches!(key.name, "extends" | "sweep" | "link" | "flow")) {
        let Some(path) = path(key).filter(|path| path != "link.1.from" && path != "link.1.to") else { continue };
        for (variant, flow) in Variant::FLOWS {
            if key.table == Table::Flow && !key.honoured_by(None).has(variant) {
                continue;
            }
            let mut document = file(key, flow);
            document.set(&format!("{path}=1979-05-27")).unwrap_or_else(|error| panic!("{error}"));
            let error = document.scenario().expect_err(&path);
            assert!(error.source_name() == "--set", "{path} of {}: {error}", variant.name());
            read += 1;
        }
    }
    assert!(read > 200, "{read}");
}

/// Whether the file is read and every engine takes it that says so.
#[test]
fn every_example_is_right_where_its_key_is_honoured() {
    for key in schema::keys().filter(|key| !key.example.is_empty() && key.name != "extends") {
        let Some(path) = path(key) else { continue };
        for (variant, flow) in Variant::FLOWS {
            // What it takes for the value to make sense: the other end, another path, or its own path.
            let value = match (key.table, key.name) {
                (Table::Flow, "from" | "to" | "paths") | (Table::Link, "between" | "from" | "to") => continue,
                (Table::Flow, "start_with") => "\"leader\"",
                (Table::Flow, "protocol") | (Table::Queue, "kind") => continue,
                _ => key.example,
            };
            let mut document = file(key, flow);
            document.set(&format!("{path}={value}")).unwrap_or_else(|error| panic!("{error}"));
            let of_flow = key.table == Table::Flow;
            let read = document.scenario();
            if of_flow && !key.honoured_by(None).has(variant) {
                let error = read.expect_err(&path);
                assert!(error.message().contains("is not for") && error.help().is_some(), "{error}");
                continue;
            }
            // A key of another generation, or of something else inside, changes what the flow is.
            if key.name == "generation" || key.name == "inside" {
                continue;
            }
            let scenario = read.unwrap_or_else(|error| panic!("{path}: {error}"));
            for engine in Engine::ALL {
                let (protocol, queue) = (Table::Flow.key("protocol"), key.table == Table::Queue);
                let runs = protocol.is_some_and(|key| key.honoured_by(Some(engine)).has(variant));
                let honours = !of_flow || key.honoured_by(Some(engine)).has(variant);
                let honours = honours && (of_flow || queue || !key.honoured_by(Some(engine)).is_empty());
                let told = scenario.check_for(engine);
                if key.table != Table::OnOff {
                    assert_eq!(told.is_ok(), runs && honours, "{path} of {} in {}", variant.name(), engine.command());
                }
                if let Err(error) = told {
                    assert!(error.help().is_some(), "{error}");
                }
            }
        }
    }
}

#[test]
fn a_key_that_an_engine_does_not_honour_is_told_with_its_place() {
    let text = "name = \"n\"\nduration = \"9s\"\n[[link]]\nbetween = [\"a\", \"b\"]\n[[flow]]\nfrom = \"a\"\nto = \"b\"\nprotocol = \"tcp\"\n  ecn = true\n";
    let scenario = parse(text, "x.toml").unwrap();
    assert_eq!(scenario.check_for(Engine::Sim), Ok(()));
    let error = scenario.check_for(Engine::Lab).unwrap_err();
    assert_eq!((error.line(), error.column()), (9, 3));
    assert_eq!(error.message(), "`sinnet lab` does not honour `ecn` of \"tcp\"");
    assert!(error.help().unwrap().contains("`sinnet sim` honours it"), "{error}");
    // Old files: the papers' mHIP was what the lab ran.
    let scenario = parse(&text.replace("\"tcp\"\n  ecn = true", "\"mhip\""), "x.toml").unwrap();
    let error = scenario.check_for(Engine::Lab).unwrap_err();
    assert_eq!((error.line(), error.column()), (8, 12));
    assert!(error.help().unwrap().contains("protocol = \"sinnet\""), "{error}");
    let error = parse(&text.replace("ecn = true", "inside = \"udp\""), "x.toml").unwrap_err();
    assert_eq!((error.line(), error.message()), (9, "`inside` is not for \"tcp\""));
}

#[test]
fn names_are_of_one_key_of_their_table() {
    for table in Table::ALL {
        let names: Vec<&str> = table.keys().map(|key| key.name).collect();
        let mut once = names.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), names.len(), "{table:?}");
        assert!(!names.is_empty());
    }
    assert_eq!(schema::find("flow.rate").len(), 1);
    assert!(schema::find("rate").len() >= 3);
}

/// `sinnet help scenario --markdown > docs/scenarios.md` makes it.
#[test]
fn the_documentation_is_made_from_the_schema() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios.md");
    let written = std::fs::read_to_string(path).expect("docs/scenarios.md");
    assert!(written == schema::markdown(), "docs/scenarios.md is old: `sinnet help scenario --markdown` makes it anew");
}

fn scenario_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            scenario_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            found.push(path);
        }
    }
}

/// Values of every kind, as files write them.
const VALUES: [&str; 14] = [
    "true",
    "false",
    "1",
    "0.5",
    "1250",
    "-1",
    "\"50%\"",
    "\"30ms\"",
    "\"8Mbit/s\"",
    "\"20p\"",
    "\"64kB\"",
    "\"2bdp\"",
    "\"x\"",
    "[\"1s\", \"2s\"]",
];

/// What an editor takes, the reader takes, and the other way round: of every key of a flow, whatever the value.
#[test]
fn the_json_schema_accepts_what_the_reader_accepts() {
    let schema = schema::json_schema();
    let validator = jsonschema::draft202012::new(&schema).expect("a JSON schema");
    let (mut taken, mut refused, mut different) = (0, 0, Vec::new());
    for key in Table::Flow.keys() {
        // Names have to be somebody's, and the protocol decides what else may be there.
        if matches!(key.name, "from" | "to" | "paths" | "start_with" | "protocol" | "generation" | "inside" | "on_off")
        {
            continue;
        }
        for (variant, flow) in Variant::FLOWS {
            if !key.honoured_by(None).has(variant) || flow.contains(&format!("{} = ", key.name)) {
                continue;
            }
            for value in VALUES {
                let text = format!(
                    "name = \"n\"\nduration = \"9s\"\n[[link]]\nbetween = [\"a\", \"b\"]\nrate = \"1Mbit/s\"\n\
                     [[flow]]\nfrom = \"a\"\nto = \"b\"\n{flow}\n{} = {value}\n",
                    key.name
                );
                let instance = serde_json::to_value(text.parse::<toml::Table>().expect("TOML")).expect("JSON");
                let reads = parse(&text, "file.toml");
                let (valid, read) = (validator.is_valid(&instance), reads.is_ok());
                // A profile and a scheduler are looked up by the engine.
                if valid != read && !(read && matches!(key.name, "profile" | "scheduler")) {
                    different.push(format!(
                        "{} = {value} of {}: valid {valid}, {:?}",
                        key.name,
                        variant.name(),
                        reads.err()
                    ));
                }
                if valid { taken += 1 } else { refused += 1 }
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert!(taken > 100 && refused > 500, "{taken} {refused}");
}

#[test]
fn every_scenario_file_fits_the_json_schema() {
    let schema = schema::json_schema();
    let validator = jsonschema::draft202012::new(&schema).expect("a JSON schema");
    let json = |text: &str| serde_json::to_value(text.parse::<toml::Table>().expect("TOML")).expect("JSON");
    let mut files = Vec::new();
    scenario_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios"), &mut files);
    assert!(files.len() > 60, "{}", files.len());
    for path in &files {
        let instance = json(&std::fs::read_to_string(path).unwrap());
        let errors: Vec<String> =
            validator.iter_errors(&instance).map(|error| format!("{} at {}", error, error.instance_path)).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", path.display());
    }
    let good =
        std::fs::read_to_string(files.iter().find(|path| path.ends_with("lab/two-paths.toml")).unwrap()).unwrap();
    for (from, to) in [
        ("seed = 1", "sed = 1"),
        ("seed = 1", "seed = \"1\""),
        ("\"8Mbit/s\"", "\"8MB\""),
        ("\"8Mbit/s\"", "8"),
        ("\"12s\"", "\"12\""),
        ("\"1.5bdp\"", "{ kind = \"rde\" }"),
        ("protocol = \"sinnet\"", "protocol = \"sinnet\"\nsend_jitter = \"1ms\""),
        ("protocol = \"sinnet\"\n", ""),
    ] {
        assert!(good.contains(from), "{from}");
        assert!(!validator.is_valid(&json(&good.replacen(from, to, 1))), "{to}");
    }
}
