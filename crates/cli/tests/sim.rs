//! `sinnet sim` as a person uses it: results, files, going on, and what is said about wrong input.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use serde_json::Value;

const ONE_FLOW: &str = r#"
name = "one flow"
duration = "5s"
[[link]]
between = ["s", "d"]
rate = "2Mbit/s"
delay = "30ms"
queue = "1.5bdp"
[[flow]]
name = "f"
count = 2
from = "s"
to = "d"
protocol = "tcp"
congestion = "newreno"
profile = "ns2"
packet_size = 1250
start = ["0s", "1s"]
"#;

fn scenario(directory: &Path, text: &str) -> PathBuf {
    let path = directory.join("scenario.toml");
    fs::write(&path, text).unwrap();
    path
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sinnet"));
    command.arg("sim").args(arguments).stdin(Stdio::null());
    command
}

fn sim(path: &Path, arguments: &[&str]) -> Output {
    command(arguments).arg(path).output().unwrap()
}

#[track_caller]
fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn rows(path: &Path) -> usize {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    reader.metadata().file_metadata().num_rows() as usize
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn the_json_has_the_promised_shape_whatever_the_threads() {
    let directory = tempfile::tempdir().unwrap();
    let path = scenario(directory.path(), ONE_FLOW);
    let one = json(&sim(&path, &["--json", "--seeds", "3", "--threads", "1"]));
    assert_eq!(one["scenario"], "one flow");
    assert_eq!(one["version"], env!("CARGO_PKG_VERSION"));
    let seeds: Vec<u64> = one["runs"].as_array().unwrap().iter().map(|run| run["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds, [1, 2, 3]);
    let run = &one["runs"][0];
    assert_eq!(run["virtual_s"], 5.0);
    assert!(run["packets"].as_u64().unwrap() > 1000 && run["cpu_s"].as_f64().unwrap() > 0.0);
    for key in ["goodput_mbps", "throughput_mbps", "retransmissions", "losses", "timeouts", "reordered", "mean_cwnd"] {
        assert!(run["flows"][1][key].is_number(), "{key} of {run}");
    }
    for key in ["mean", "p50", "p95", "p99"] {
        // No round trip is shorter than the propagation, none longer than that and a full queue: 2.5 of 60 ms, and a bit.
        let rtt = run["flows"][0]["rtt"][key].as_f64().unwrap();
        assert!((60.0..180.0).contains(&rtt), "{key} = {rtt}");
    }
    for key in ["utilisation", "queue_drops"] {
        assert!(run["links"][0][key].is_number());
    }
    assert!(run["links"][0]["queue"]["p95"].is_number());
    let total = &one["summary"]["total"]["goodput_mbps"];
    assert!((1.0..2.0).contains(&total["mean"].as_f64().unwrap()) && total["ci95"].is_number());

    let mut three = json(&sim(&path, &["--json", "--seeds", "3", "--threads", "3"]));
    let mut one = one;
    for run in [&mut one, &mut three].into_iter().flat_map(|report| report["runs"].as_array_mut().unwrap()) {
        run["cpu_s"] = Value::Null; // the one number that is not a function of scenario and seed
    }
    assert_eq!(one, three);
}

/// Six queues are six points of the sweep, though five of them are tables.
#[test]
fn a_sweep_over_tables_runs_each() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/sim/queues.toml");
    let report = json(&sim(&path, &["--json", "--set", "duration=12s"]));
    let runs = report["runs"].as_array().unwrap();
    let digests: std::collections::BTreeSet<&str> = runs.iter().filter_map(|run| run["digest"].as_str()).collect();
    assert_eq!((runs.len(), digests.len()), (6, 6));
    assert_eq!(runs[3]["parameters"]["link.bottleneck.queue"], "{ kind = \"fq_codel\" }");
}

#[test]
fn the_table_shows_means_and_intervals() {
    let directory = tempfile::tempdir().unwrap();
    let output = sim(&scenario(directory.path(), ONE_FLOW), &["--seeds", "2"]);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    for part in ["one flow", "2 runs", "f, each of 2", "all together", " ± ", "s-d", "d-s"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

#[test]
fn a_campaign_is_stored_and_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let path =
        scenario(directory.path(), &format!("{ONE_FLOW}\n[sweep]\n\"link.s-d.rate\" = [\"1Mbit/s\", \"2Mbit/s\"]\n"));
    let out = directory.path().join("out");
    let arguments = ["--json", "--seeds", "2", "--interval", "500ms", "--out", &text(&out)];
    let first = json(&sim(&path, &arguments));
    assert_eq!(first["runs"].as_array().unwrap().len(), 4);
    assert_eq!(first["runs"][0]["parameters"]["link.s-d.rate"], "1Mbit/s");

    assert_eq!(rows(&out.join("summary.parquet")), 4);
    assert_eq!(rows(&out.join("summary_flows.parquet")), 8);
    assert_eq!(rows(&out.join("summary_links.parquet")), 8);
    // Ten samples in five seconds, of two flows or two directions.
    for kind in ["flows", "paths", "links"] {
        let found = files(&out.join(kind));
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found.iter().all(|path| rows(path) == 20));
    }
    assert_eq!(fs::read_to_string(out.join("scenario.toml")).unwrap(), fs::read_to_string(&path).unwrap());
    // Every column is in the documentation, which calls swept keys by an example.
    let documented = include_str!("../../../docs/metrics.md");
    for table in files(&out).into_iter().chain(["flows", "paths", "links"].map(|kind| files(&out.join(kind)).remove(0)))
    {
        let Some("parquet") = table.extension().and_then(|extension| extension.to_str()) else { continue };
        let reader = SerializedFileReader::new(File::open(&table).unwrap()).unwrap();
        for field in reader.metadata().file_metadata().schema().get_fields() {
            let name = field.name().replace("link.s-d.rate", "link.s-d.delay");
            assert!(documented.contains(&format!("`{name}`")), "{name} of {table:?}");
        }
    }
    let record: Value = serde_json::from_slice(&fs::read(&files(&out.join("runs"))[0]).unwrap()).unwrap();
    assert_eq!(record["version"], env!("CARGO_PKG_VERSION"));
    assert!(record["scenario"].as_str().unwrap().contains("packet_size = 1250"));

    // The series add up to the summary: the last sample's bytes are the goodput.
    let reader = SerializedFileReader::new(File::open(&files(&out.join("flows"))[0]).unwrap()).unwrap();
    let names: Vec<String> =
        reader.metadata().file_metadata().schema().get_fields().iter().map(|f| f.name().into()).collect();
    assert_eq!(
        names,
        ["run", "seed", "link.s-d.rate", "time_s", "flow", "goodput_mbps", "delivered_bytes", "retransmissions"]
    );
    let mut last = 0;
    let mut sum = 0.0;
    for row in reader.get_row_iter(None).unwrap().map(Result::unwrap).filter(|row| row.get_string(4).unwrap() == "f.1")
    {
        last = row.get_ulong(6).unwrap();
        sum += row.get_double(5).unwrap() * 0.5;
    }
    assert!(last > 0 && (sum - last as f64 * 8e-6).abs() < 1e-9, "{sum} Mbit, {last} bytes");

    // Nothing is run again: it takes no processor time. What is removed is run again.
    let ran = |report: &Value| (0..4).filter(|index| report["runs"][*index]["cpu_s"] != 0.0).count();
    let again = json(&sim(&path, &arguments));
    assert_eq!((ran(&first), ran(&again)), (4, 0));
    assert_eq!(again["summary"], first["summary"]);
    fs::remove_file(&files(&out.join("runs"))[0]).unwrap();
    let again = json(&sim(&path, &arguments));
    assert_eq!(ran(&again), 1);
    for index in 0..4 {
        assert_eq!(again["runs"][index]["digest"], first["runs"][index]["digest"]);
    }
}

/// What is stored says what was run, also with `--set` and `extends`, and can be run again as it is.
#[test]
fn what_is_stored_is_what_was_run() {
    let directory = tempfile::tempdir().unwrap();
    scenario(directory.path(), ONE_FLOW);
    let path = directory.path().join("two.toml");
    fs::write(&path, "extends = \"scenario.toml\"\n[sweep]\n\"link.s-d.delay\" = [\"10ms\", \"5ms\"]\n").unwrap();
    let out = directory.path().join("out");
    let set = ["--set", "duration=2s", "--set", "link.s-d.rate=1Mbit/s", "--out", &text(&out), "--json"];
    let first = json(&sim(&path, &set));
    let stored = directory.path().join("moved.toml");
    fs::copy(out.join("scenario.toml"), &stored).unwrap();
    let kept = fs::read_to_string(&stored).unwrap();
    assert!(kept.contains("duration = \"2s\"") && kept.contains("1Mbit/s") && !kept.contains("extends ="), "{kept}");
    let again = json(&sim(&stored, &["--json"]));
    for index in 0..2 {
        assert_eq!(again["runs"][index]["digest"], first["runs"][index]["digest"]);
        assert_eq!(again["runs"][index]["virtual_s"], 2.0);
    }
    // The Parquet files have it too, and the swept times as numbers, which sort.
    let reader = SerializedFileReader::new(File::open(out.join("summary.parquet")).unwrap()).unwrap();
    let notes = reader.metadata().file_metadata().key_value_metadata().unwrap();
    let note = notes.iter().find(|note| note.key == "sinnet.scenario").unwrap();
    assert_eq!(note.value.as_deref(), Some(kept.as_str()));
    let delays: Vec<f64> = reader.get_row_iter(None).unwrap().map(|row| row.unwrap().get_double(2).unwrap()).collect();
    assert_eq!(delays, [0.01, 0.005]);
    // As rows, too.
    let rows = sim(&path, &["--csv", "--set", "duration=2s", "--set", "link.s-d.rate=1Mbit/s"]);
    let rows = String::from_utf8(rows.stdout).unwrap();
    assert!(rows.starts_with("link.s-d.delay,seed,flow,goodput_mbps,") && rows.contains("\n0.005,1,f.2,"), "{rows}");

    // Runs with other settings would be mixed with these; more values of the sweep are welcome.
    let told = sim(&path, &["--set", "duration=3s", "--set", "link.s-d.rate=1Mbit/s", "--out", &text(&out)]);
    let told = String::from_utf8(told.stderr).unwrap();
    assert!(told.contains("`duration = \"2s\"` there, `duration = \"3s\"` here"), "{told}");
    fs::write(&path, fs::read_to_string(&path).unwrap().replace("\"5ms\"", "\"5ms\", \"7ms\"")).unwrap();
    let more = json(&sim(&path, &set));
    assert_eq!(more["runs"].as_array().unwrap().len(), 3);
    assert_eq!(more["runs"][0]["cpu_s"], 0.0, "it was not run again");
}

/// What the command line sets is set: never overruled by a sweep without a word.
#[test]
fn a_swept_key_that_is_set_is_swept_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let path =
        scenario(directory.path(), &format!("{ONE_FLOW}\n[sweep]\nlink.s-d.rate = [\"1Mbit/s\", \"2Mbit/s\"]\n"));
    let one = json(&sim(&path, &["--json", "--set", "link.s-d.rate=3Mbit/s"]));
    assert_eq!(one["runs"].as_array().unwrap().len(), 1);
    assert!(one["runs"][0]["flows"][0]["goodput_mbps"].as_f64().unwrap() > 1.0, "{one}");
    refused(directory.path(), &path, &["--set", "link.s-d.rate=50"], "50", false);
    refused(
        directory.path(),
        &path,
        &["--set", "link.*.rate=3Mbit/s"],
        "the sweep over `link.s-d.rate` would set this key",
        false,
    );
}

/// ns-3's users expect a hundred packets.
#[test]
fn a_queue_without_a_limit_is_remarked_on() {
    let directory = tempfile::tempdir().unwrap();
    let told = |text: &str| {
        let output = sim(&scenario(directory.path(), text), &[]);
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(told(ONE_FLOW), "");
    assert_eq!(told(&ONE_FLOW.replace("\"1.5bdp\"", "\"unlimited\"")), "", "it is meant");
    let silent = told(&ONE_FLOW.replace("queue = \"1.5bdp\"\n", ""));
    assert!(silent.contains("everything may wait at s-d"), "{silent}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "waits until another process has finished its first run")]
fn ctrl_c_keeps_what_is_finished() {
    let directory = tempfile::tempdir().unwrap();
    let path = scenario(directory.path(), ONE_FLOW);
    let out = directory.path().join("out");
    let arguments = ["--seeds", "100", "--threads", "1", "--set", "duration=60s", "--out", &text(&out), "--json"];
    let child = command(&arguments).arg(&path).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for _ in 0..600 {
        if files(&out.join("runs")).iter().any(|path| path.extension().is_some_and(|extension| extension == "json")) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130), "{told}");
    assert!(told.contains("of 100 runs are finished; the same command runs the rest"), "{told}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let kept = report["runs"].as_array().unwrap().len();
    assert!(report["stopped"].as_bool().unwrap() && (1..100).contains(&kept));
    assert_eq!((files(&out.join("runs")).len(), rows(&out.join("summary.parquet"))), (kept, kept));

    let count = (kept + 1).to_string();
    let arguments = ["--seeds", &count, "--set", "duration=60s", "--out", &text(&out), "--json"];
    let again = json(&sim(&path, &arguments));
    let digests = |report: &Value| -> Vec<Value> {
        report["runs"].as_array().unwrap()[..kept].iter().map(|run| run["digest"].clone()).collect()
    };
    assert_eq!(digests(&again), digests(&report));
    assert!(again["runs"].as_array().unwrap()[..kept].iter().all(|run| run["cpu_s"] == 0.0), "some were run again");
}

#[test]
fn wireshark_agrees_with_the_results() {
    let directory = tempfile::tempdir().unwrap();
    let path = scenario(directory.path(), ONE_FLOW);
    let out = directory.path().join("out");
    let congestion = ["--set", "flow.f.congestion=sack", "--set", "flow.f.count=1", "--set", "link.s-d.loss=0.01"];
    let mut arguments = vec!["--json", "--pcap", "--out", out.to_str().unwrap()];
    arguments.extend(congestion);
    let report = json(&sim(&path, &arguments));
    let capture = files(&files(&out.join("pcap"))[0]).remove(0);
    assert_eq!(capture.file_name().unwrap(), "s-d.pcapng");
    let count = |filter: &str| {
        let output = Command::new("tshark")
            .args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-Y", filter, "-r"])
            .arg(&capture)
            .output()
            .expect("tshark is needed (see `make need-test`)");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().count() as u64
    };
    let links = &report["runs"][0]["links"];
    let delivered = |link: usize| links[link]["delivered"].as_u64().unwrap();
    assert_eq!(count("tcp && frame.interface_name == \"s-d\""), delivered(0));
    assert_eq!(count("tcp && frame.interface_name == \"d-s\""), delivered(1));
    assert_eq!(count("_ws.malformed || _ws.expert.severity >= \"Error\" || ip.checksum.status == \"Bad\""), 0);
    assert_eq!(count("tcp.checksum.status == \"Bad\""), 0);
    assert_eq!(count("tcp.flags.syn == 1 && tcp.flags.ack == 0"), 1);
    assert_eq!(count("tcp.flags.syn == 1 && tcp.flags.ack == 1"), 1);
    // Data lost on the link and sent again appear as such to Wireshark too, however it calls them.
    let again = count("tcp.len > 0 && (tcp.analysis.retransmission || tcp.analysis.out_of_order)");
    let sent_again = report["runs"][0]["flows"][0]["retransmissions"].as_u64().unwrap();
    assert!(again > 0 && again <= sent_again, "{again} of {sent_again}");
    assert!(count("tcp.options.sack") > 0);
}

/// What a person gets wrong, and what is said about it. Nothing may be left behind.
#[test]
fn wrong_input_is_told_in_a_sentence() {
    let in_file: &[(&str, &str, &str)] = &[
        ("delay = \"30ms\"", "dealy = \"30ms\"", "did you mean `delay`"),
        ("rate = \"2Mbit/s\"", "rate = \"0Mbit/s\"", "zero"),
        ("rate = \"2Mbit/s\"", "rate = \"2 apples\"", "rate"),
        ("delay = \"30ms\"", "delay = \"-30ms\"", "30ms"),
        ("duration = \"5s\"", "duration = \"-5s\"", "-5s"),
        ("duration = \"5s\"", "duration = \"0s\"", "no time"),
        ("duration = \"5s\"", "", "duration"),
        ("to = \"d\"", "to = \"nowhere\"", "nowhere"),
        ("to = \"d\"", "to = \"s\"", "s"),
        ("to = \"d\"", "to = \"d\"\npaths = [[\"s\", \"x\", \"d\"]]", "x"),
        ("to = \"d\"", "to = \"d\"\npaths = [[\"s\", \"d\", \"s\", \"d\"]]", "twice"),
        ("between = [\"s\", \"d\"]", "between = [\"s\", \"s\"]", "itself"),
        ("count = 2", "count = 1000000000", "1000000000"),
        ("count = 2", "count = 0", "count"),
        ("congestion = \"newreno\"", "congestion = \"newrono\"", "did you mean \"newreno\""),
        ("profile = \"ns2\"", "profile = \"ns4\"", "ns4"),
        ("packet_size = 1250", "packet_size = 30", "packet"),
        ("protocol = \"tcp\"", "protocol = \"tpc\"", "tcp"),
        ("queue = \"1.5bdp\"", "queue = \"many\"", "queue"),
        ("name = \"f\"", "name = ", ""),
        ("name = \"one flow\"", "extends = \"missing.toml\"", "cannot extend \"missing.toml\""),
        ("name = \"one flow\"", "extends = \"scenario.toml\"", "without end"),
    ];
    for (right, wrong, expected) in in_file {
        assert!(ONE_FLOW.contains(right), "{right}");
        let directory = tempfile::tempdir().unwrap();
        let path = scenario(directory.path(), &ONE_FLOW.replacen(right, wrong, 1));
        refused(directory.path(), &path, &[], expected, true);
    }
    let on_command_line: &[(&[&str], &str)] = &[
        (&["--set", "duration"], "key=value"),
        (&["--set", "link.x-y.rate=1Mbit/s"], "x-y"),
        (&["--set", "flow.f.count=1000000000"], "1000000000"),
        (&["--set", "flow.f.colour=red"], "colour"),
        (&["--interval", "0s"], "above zero"),
        (&["--interval", "soon"], "above zero"),
        (&["--interval", "1ns"], "longer --interval"),
        (&["--seeds", "0"], "0"),
        (&["--seeds", "4000000000"], "fewer seeds"),
        (&["--seed", "-1"], "-1"),
        (&["--threads", "0"], "0"),
        (&["--colour"], "--colour"),
    ];
    for (arguments, expected) in on_command_line {
        let directory = tempfile::tempdir().unwrap();
        let path = scenario(directory.path(), ONE_FLOW);
        refused(directory.path(), &path, arguments, expected, false);
    }
    let directory = tempfile::tempdir().unwrap();
    refused(directory.path(), Path::new("/nonexistent/scenario.toml"), &[], "/nonexistent/scenario.toml", false);
    let binary = directory.path().join("binary.toml");
    fs::write(&binary, [0xff, 0xfe, 0x00]).unwrap();
    refused(directory.path(), &binary, &[], "UTF-8", false);
}

#[track_caller]
fn refused(directory: &Path, path: &Path, arguments: &[&str], expected: &str, has_place: bool) {
    let out = directory.join("out");
    let output = sim(path, &[arguments, &["--out", &text(&out)]].concat());
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?} {expected}: {told}");
    assert!(output.stdout.is_empty());
    assert!(told.contains(expected), "{expected:?} is not in {told}");
    assert!(!told.contains("panicked"), "{told}");
    if has_place {
        let place = told.split_once("scenario.toml:").map(|(_, rest)| rest).unwrap_or_default();
        let numbers: Vec<&str> = place.splitn(3, ':').take(2).collect();
        assert!(numbers.len() == 2 && numbers.iter().all(|number| number.parse::<u32>().is_ok()), "no place in {told}");
    }
    assert!(!out.exists(), "something is left behind after {told}");
}

#[test]
fn directories_that_cannot_be_used_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = scenario(directory.path(), ONE_FLOW);
    let try_out = |out: &Path| {
        let output = sim(&path, &["--out", &text(out)]);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{told}");
        told
    };
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(try_out(&file).contains("a file is where a directory should be"));
    let foreign = directory.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("thesis.tex"), "").unwrap();
    assert!(try_out(&foreign).contains("thesis.tex"));

    let out = directory.path().join("out");
    assert!(sim(&path, &["--out", &text(&out)]).status.success());
    let series = files(&out.join("links")).remove(0);
    let whole = fs::read(&series).unwrap();
    fs::write(&series, &whole[..whole.len() / 2]).unwrap();
    let told = try_out(&out);
    assert!(told.contains(series.to_str().unwrap()) && told.contains("not a whole Parquet file"), "{told}");
    // What the sentence says helps.
    fs::remove_file(&series).unwrap();
    assert!(sim(&path, &["--out", &text(&out)]).status.success());
    assert_eq!(fs::read(&series).unwrap(), whole);
    fs::write(out.join("summary.parquet"), "PAR1").unwrap();
    assert!(try_out(&out).contains("summary.parquet"));
}

/// A disk of 64 kB in a mount namespace of its own.
#[test]
fn a_full_disk_is_told_and_leaves_nothing_half_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = scenario(directory.path(), ONE_FLOW);
    let disk = directory.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let script = "mount -t tmpfs -o size=64k tmpfs \"$1\" || exit 77
        \"$2\" sim \"$3\" --seeds 50 --threads 2 --out \"$1/out\"; status=$?
        find \"$1/out\" -name '.unfinished-*' -o -name '*.parquet' -size 0 -o -name '*.json' -size 0
        ls \"$1/out/runs\" | wc -l
        exit $status";
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .args([disk.as_path(), Path::new(env!("CARGO_BIN_EXE_sinnet")), &path])
        .output()
        .expect("unshare is needed (see `make need-test`)");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.code() == Some(77) || told.contains("unshare:") {
        // The unit tests with /dev/full remain.
        return testkit::skip("this machine does not allow namespaces");
    }
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("the disk is full. Make room and start again"), "{told}");
    // The number of finished runs, and no file that is not whole.
    assert!(listed.trim().parse::<u32>().is_ok_and(|runs| (1..50).contains(&runs)), "{listed}");
}

#[test]
fn what_would_be_run_is_listed_and_nothing_is_run() {
    let directory = tempfile::tempdir().unwrap();
    let path =
        scenario(directory.path(), &format!("{ONE_FLOW}\n[sweep]\n\"link.s-d.rate\" = [\"1Mbit/s\", \"2Mbit/s\"]\n"));
    let listed = json(&sim(&path, &["--dry-run", "--seeds", "3", "--seed", "5", "--json"]));
    assert_eq!((&listed["runs"], listed["points"].as_array().unwrap().len()), (&Value::from(6), 2));
    assert_eq!(listed["points"][1]["parameters"]["link.s-d.rate"], "2Mbit/s");
    assert_eq!(listed["points"][1]["seeds"], serde_json::json!([5, 6, 7]));
    let told = String::from_utf8(sim(&path, &["--dry-run", "--seeds", "3", "--seed", "5"]).stdout).unwrap();
    assert_eq!(told.lines().next(), Some("6 runs"));
    assert!(told.contains("link.s-d.rate=1Mbit/s: 3 seeds, 5 to 7"), "{told}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

/// The files of a directory and of those in it, with what they hold.
fn tree(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for path in files(&directory) {
            if path.is_dir() {
                directories.push(path);
            } else {
                all.insert(path.strip_prefix(root).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    all
}

/// Shards in one store or in several that are merged: byte for byte what one process stores.
#[test]
fn shards_make_the_same_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = scenario(
        directory.path(),
        &format!(
            "{ONE_FLOW}\n[sweep]\n\"link.s-d.queue\" = [\"30p\", \"20p\", {{ kind = \"codel\", limit = \"30p\" }}]\n"
        ),
    );
    let place = |name: &str| text(&directory.path().join(name));
    let run = |out: &str, more: &[&str]| {
        let arguments =
            [&["--json", "--seeds", "3", "--interval", "500ms", "--set", "duration=1s", "--out", out], more];
        json(&sim(&path, &arguments.concat()))
    };
    let store = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_sinnet")).arg("store").args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (whole, together, apart) = (place("whole"), place("together"), place("apart"));
    run(&whole, &[]);
    let whole = tree(Path::new(&whole));
    assert!(whole.len() > 9 * 4, "{:?}", whole.keys());

    // At the same time into one store, as on a cluster; one of them twice.
    std::thread::scope(|scope| {
        for number in ["1/4", "2/4", "3/4", "4/4", "2/4"] {
            let together = &together;
            scope.spawn(move || assert_eq!(run(together, &["--shard", number])["shard"], number));
        }
    });
    let (_, status, _) = store(&["status", &together]);
    assert!(status.contains("9 runs,") && status.contains("no tables over all runs yet"), "{status}");
    assert_eq!(run(&together, &[])["runs"].as_array().unwrap().len(), 9);
    assert!(tree(Path::new(&together)) == whole);

    // Each into a store of its own; the number of one is a cluster's.
    let shards: Vec<String> = (1..=3).map(|number| place(&format!("shard{number}"))).collect();
    for (number, out) in shards.iter().enumerate() {
        if number == 1 {
            let mut command = Command::new(env!("CARGO_BIN_EXE_sinnet"));
            command.env("SLURM_ARRAY_TASK_ID", "8").env("SLURM_ARRAY_TASK_MIN", "7").args(["sim", &text(&path)]);
            command.args([
                "--seeds",
                "3",
                "--interval",
                "500ms",
                "--set",
                "duration=1s",
                "--out",
                out,
                "--shard",
                "auto/3",
            ]);
            assert!(
                String::from_utf8(command.output().unwrap().stdout).unwrap().contains("shard 2/3: 3 of 3 runs stored")
            );
        } else {
            run(out, &["--shard", &format!("{}/3", number + 1)]);
        }
    }
    let (code, told, _) = store(&["merge", &apart, &shards[0], &shards[1]]);
    assert!(code == Some(0) && told.contains("6 runs added"), "{told}");
    let missing = |out: &str| {
        let all =
            ["missing", &text(&path), "--seeds", "3", "--interval", "500ms", "--set", "duration=1s", "--out", out];
        store(&all)
    };
    let (code, told, _) = missing(&apart);
    assert!(code == Some(1) && told.contains("3 of 9 runs are missing\nseed 3 link.s-d.queue=30p"), "{told}");
    let (_, told, _) = store(&["merge", &apart, &shards[1], &shards[2], "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&told).unwrap(), serde_json::json!({"added": 3, "there": 3}));
    assert_eq!(missing(&apart).0, Some(0));
    run(&apart, &[]);
    assert!(tree(Path::new(&apart)) == whole);

    // A file that is not what its run wrote, a record that leads elsewhere, another campaign: nothing is merged.
    let broken = files(&Path::new(&shards[0]).join("flows")).remove(0);
    let good = fs::read(&broken).unwrap();
    fs::write(&broken, b"nothing").unwrap();
    let (code, _, told) = store(&["merge", &place("new"), &shards[0]]);
    assert!(code == Some(2) && told.contains("it is not what the run wrote"), "{told}");
    fs::write(&broken, good).unwrap();
    let record = files(&Path::new(&shards[1]).join("runs")).remove(0);
    let text = fs::read_to_string(&record).unwrap();
    fs::write(&record, text.replacen("\"flows/", "\"../flows/", 1)).unwrap();
    let (code, _, told) = store(&["merge", &place("newer"), &shards[1]]);
    assert!(code == Some(2) && told.contains("is no file of a store"), "{told}");
    let (code, _, told) = store(&["status", &directory.path().to_string_lossy()]);
    assert!(code == Some(2) && told.contains("holds no campaign"), "{told}");
}

/// The scripts for clusters are this command with its shard.
#[test]
fn a_cluster_is_told_the_same_command() {
    let directory = tempfile::tempdir().unwrap();
    let path = scenario(directory.path(), ONE_FLOW);
    let print = |how: &str| {
        let output = sim(&path, &["--seeds", "5", "--set", "duration=2s", "--out", "my results", how, "64"]);
        String::from_utf8(output.stdout).unwrap()
    };
    let script = print("--print-slurm");
    assert!(script.starts_with("#!/bin/sh\n") && script.contains("#SBATCH --array=0-63\n"), "{script}");
    assert!(script.contains(" --seeds 5 --set 'duration=2s' --out 'my results' --interval 0.1s "), "{script}");
    assert!(script.trim_end().ends_with("--shard auto/64"), "{script}");
    // As the last job of the array.
    let file = directory.path().join("job.sh");
    fs::write(&file, script.replace("auto/64", "auto/5")).unwrap();
    let mut job = Command::new("sh");
    job.arg(&file).env("SLURM_ARRAY_TASK_ID", "4").current_dir(directory.path());
    let told = String::from_utf8(job.output().unwrap().stdout).unwrap();
    assert_eq!(told, "shard 5/5: 1 of 1 runs stored\n");
    let job = print("--print-k8s");
    assert!(job.contains("completions: 64\n") && job.contains("\"--out\",\"my results\""), "{job}");
}
