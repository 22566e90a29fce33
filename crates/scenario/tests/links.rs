//! What links do to packets: jitter, loss with memory, and files of numbers. Oracles: arithmetic, and places counted by hand.

use clock::Duration;
use link::{ChangeKind, JitterConfig, LossConfig, QueueConfig, Trace};
use proptest::prelude::*;
use scenario::{Document, Scenario};
use text::Diagnostic;

/// A scenario whose link has these keys, from line 6 on, beside files with these texts.
fn load(keys: &str, files: &[(&str, &str)]) -> Result<Scenario, Diagnostic> {
    document(keys, files)?.scenario()
}

fn document(keys: &str, files: &[(&str, &str)]) -> Result<Document, Diagnostic> {
    let text =
        format!("name = \"n\"\nduration = \"9s\"\n[[link]]\nbetween = [\"a\", \"b\"]\ndelay = \"20ms\"\n{keys}\n");
    Document::load(&text, "folder/x.toml", &mut |name, beside| {
        assert_eq!(beside, "folder/x.toml");
        let found = files.iter().find(|(known, _)| *known == name);
        found
            .map(|(name, text)| (format!("folder/{name}"), (*text).to_owned()))
            .ok_or_else(|| "it is not there".to_owned())
    })
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn jitter_is_a_time_a_deviation_or_a_file() {
    let read = |keys: &str, file: &str| {
        let scenario = load(keys, &[("d.txt", file)]).unwrap_or_else(|error| panic!("{error}"));
        let config = scenario.directed()[1].config.clone();
        (config.jitter, config.reorder)
    };
    assert_eq!(read("", ""), (JitterConfig::None, false));
    assert_eq!(read("jitter = \"20ms\"\nreorder = true", ""), (JitterConfig::Uniform(ms(20)), true));
    assert_eq!(read("jitter = { uniform = \"5ms\" }", ""), (JitterConfig::Uniform(ms(5)), false));
    assert_eq!(read("jitter = { normal = \"5ms\" }", ""), (JitterConfig::Normal(ms(5)), false));
    let samples = JitterConfig::Samples([ms(3), ms(0), Duration::from_micros(1500)].into());
    assert_eq!(read("jitter = { file = \"d.txt\" }", "# ms\n3\n\n0 # none\n1.5").0, samples);
    let quantiles = JitterConfig::Quantiles([(0.0, ms(1)), (0.5, ms(2)), (1.0, ms(9))].into());
    assert_eq!(read("jitter = { file = \"d.txt\" }", "0 1\r\n0.5, 2\r\n1\t9\r\n").0, quantiles);
}

/// Place, and a piece of the message.
#[test]
fn a_jitter_that_makes_no_sense_is_told_with_its_place() {
    let file = "jitter = { file = \"d.txt\" }";
    for (keys, text, place, message) in [
        ("jitter = \"30ms\"", "", ("folder/x.toml", 6, 10), "more than the delay of 20ms"),
        ("jitter = { uniform = \"21ms\" }", "", ("folder/x.toml", 6, 22), "more than the delay"),
        ("jitter = { normal = \"21ms\" }", "", ("folder/x.toml", 6, 21), "more than the delay"),
        ("jitter = \"9ms\"\n[[link.change]]\nat = \"2s\"\ndelay = \"8ms\"", "", ("folder/x.toml", 6, 10), "of 8ms"),
        ("jitter = 5", "", ("folder/x.toml", 6, 10), "a jitter is needed here, not a number"),
        ("jitter = {}", "", ("folder/x.toml", 6, 10), "needs its distribution"),
        ("jitter = { uniform = \"1ms\", normal = \"1ms\" }", "", ("folder/x.toml", 6, 10), "one distribution"),
        ("jitter = { file = \"e.txt\" }", "", ("folder/x.toml", 6, 19), "cannot read \"e.txt\": it is not there"),
        (file, "", ("folder/d.txt", 1, 1), "no delay in this file"),
        (file, "1\n2\nthree\n", ("folder/d.txt", 3, 1), "\"three\" is not understood"),
        (file, "1\n-2\n", ("folder/d.txt", 2, 1), "no delay"),
        (file, "1\nnan\n", ("folder/d.txt", 2, 1), "no delay"),
        (file, "1\n0.5 2\n", ("folder/d.txt", 2, 1), "not understood"),
        (file, "0 1\n0.5 2\n0.4 3\n", ("folder/d.txt", 3, 1), "ascend"),
        (file, "0 1\n0.5 2\n1 1\n", ("folder/d.txt", 3, 1), "ascend"),
        (file, "0 1\n1.5 2\n", ("folder/d.txt", 2, 1), "ascend"),
    ] {
        let error = load(keys, &[("d.txt", text)]).expect_err(keys);
        assert_eq!((error.source_name(), error.line(), error.column()), place, "{error}");
        assert!(error.message().contains(message), "{error}");
    }
}

/// A document says all that it depends on: written anew it needs no file, and what is wrong is told all the same.
#[test]
fn what_a_file_says_stays_with_the_document() {
    let one = document("jitter = { file = \"d.txt\" }", &[("d.txt", "0 1\n1 2")]).unwrap();
    let again = Document::parse(&one.to_toml(), "y.toml").unwrap();
    assert_eq!(one.scenario().unwrap().links, again.scenario().unwrap().links);
    assert_eq!(again.to_toml(), one.to_toml());
    let wrong = document("jitter = { file = \"d.txt\" }", &[("d.txt", "0 1\n1 x")]).unwrap();
    let error = Document::parse(&wrong.to_toml(), "y.toml").unwrap().scenario().unwrap_err();
    assert_eq!(error.source_name(), "y.toml");
    let swept = document("[sweep]\n\"link.1.jitter.file\" = [\"a\", \"b\"]", &[("a", "1"), ("b", "2")]);
    let points = swept.unwrap().points().unwrap();
    let jitters = points.iter().map(|point| point.document.scenario().unwrap().links[0].jitter.clone());
    let samples = |delay| JitterConfig::Samples([ms(delay)].into());
    assert_eq!(jitters.collect::<Vec<_>>(), [samples(1), samples(2)]);
}

/// The chain's stationary loss and the correlation of neighbours, from its two probabilities.
fn of_chain(loss: LossConfig) -> (f64, f64, f64) {
    let LossConfig::GilbertElliott { to_bad, to_good, loss_good: 0.0, loss_bad: 1.0 } = loss else {
        panic!("{loss:?}")
    };
    (to_bad / (to_bad + to_good), 1.0 - to_bad - to_good, 1.0 / to_good)
}

proptest! {
    #[test]
    fn loss_with_memory_has_its_rate_and_its_correlation(rate in 0.001..0.999f64, c in 0.001..0.999f64) {
        let keys = format!("loss = {{ rate = {rate}, correlation = {c} }}");
        let (p, correlation, _) = of_chain(load(&keys, &[]).unwrap().links[0].loss);
        prop_assert!((p - rate).abs() < 1e-9 && (correlation - c).abs() < 1e-9);
    }

    #[test]
    fn loss_in_bursts_has_their_mean_length(rate in 0.001..0.5f64, burst in 1.0..50.0f64) {
        let burst = burst.max(rate / (1.0 - rate));
        let keys = format!("loss = {{ rate = {rate}, burst = {burst} }}");
        let (p, _, mean) = of_chain(load(&keys, &[]).unwrap().links[0].loss);
        prop_assert!((p - rate).abs() < 1e-9 && (mean / burst - 1.0).abs() < 1e-9);
    }
}

#[test]
fn loss_with_memory_is_read_or_refused() {
    assert_eq!(load("loss = { rate = 0.1 }", &[]).unwrap().links[0].loss, LossConfig::Random(0.1));
    assert_eq!(load("loss = { rate = 0, burst = 4 }", &[]).unwrap().links[0].loss, LossConfig::None);
    for (loss, column, message) in [
        ("{ burst = 4 }", 8, "needs `rate`"),
        ("{ rate = 0.1, to_bad = 0.1 }", 22, "`rate` says what `to_bad` is"),
        ("{ rate = 0.1, burst = 4, correlation = 0.2 }", 22, "says how long bursts are"),
        ("{ rate = 0.1, burst = 0.5 }", 30, "at least 1 packets"),
        ("{ rate = 0.8, burst = 2 }", 30, "at least 4"),
        ("{ rate = 0.1, correlation = 1 }", 8, "all packets are lost or none"),
        ("{ to_bad = 0.1 }", 8, "needs `to_good`"),
    ] {
        let error = load(&format!("loss = {loss}"), &[]).expect_err(loss);
        assert_eq!((error.line(), error.column()), (6, column), "{error}");
        assert!(error.message().contains(message), "{error}");
    }
}

#[test]
fn a_trace_is_read_as_mahimahi_has_it() {
    let read = |text: &str| load("trace = \"cell.trace\"\nqueue = \"1.5bdp\"", &[("cell.trace", text)]);
    let scenario = read("0\n1\n1\n3\n").unwrap();
    // 4 times 12,000 bits in 3 ms; 1.5 times that over 40 ms.
    let config = scenario.directed()[0].config.clone();
    assert_eq!((config.rate, config.trace), (Some(16_000_000), Some(Trace::new(&[0, 1, 1, 3]).unwrap())));
    assert_eq!(config.queue, QueueConfig::Packets(80));
    assert_eq!(scenario.remarks().count(), 0);
    let remarks = |text: &str| read(text).unwrap().remarks().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(
        remarks("1\n4\n3600004\n"),
        ["folder/cell.trace:3: nothing can be sent for 3600s before this: what comes waits"]
    );
    for (text, line, message) in [
        ("", 1, "empty"),
        ("\n# nothing\n", 1, "empty"),
        ("0\n0\n", 2, "no time"),
        ("1\n5\n\n4\n", 4, "4 comes after 5"),
        ("1\n2.5\n", 2, "\"2.5\" is not a time"),
        ("1\n-1\n", 2, "\"-1\" is not a time"),
    ] {
        let error = read(text).expect_err(text);
        assert_eq!((error.source_name(), error.line()), ("folder/cell.trace", line), "{error}");
        assert!(error.message().contains(message) && error.help().is_some(), "{error}");
    }
}

#[test]
fn what_rates_exclude_is_told() {
    let trace = ("t", "1\n");
    for (keys, line, message) in [
        ("trace = \"t\"\nrate = \"1Mbit/s\"", 7, "the `trace` says when"),
        ("trace = \"t\"\n[[link.change]]\nat = \"1s\"\nrate = \"1Mbit/s\"", 9, "the `trace` says when"),
        ("rate = \"1Mbit/s\"\ntrace = \"t\"\nschedule = \"lte\"", 8, "a `trace` or a `schedule`"),
        ("schedule = \"lte\"", 6, "makes a `rate` go up and down"),
        ("schedule = \"let\"", 6, "\"let\" is not known"),
        (
            "rate = \"1Mbit/s\"\nschedule = \"lte\"\n[[link.change]]\nat = \"1s\"\nrate = \"2Mbit/s\"",
            10,
            "the `schedule` says",
        ),
        ("rate = \"0bit/s\"", 6, "a rate of zero"),
        ("[[link.change]]\nat = \"1s\"\nevery = \"0s\"\ndown = true", 8, "more than 1000000 changes"),
    ] {
        let error = load(keys, &[trace]).expect_err(keys);
        assert_eq!((error.line(), error.message().contains(message)), (line, true), "{error}");
    }
}

#[test]
fn changes_come_again_and_again() {
    let keys = "rate = \"1Mbit/s\"\n[[link.change]]\nat = \"1s\"\nevery = \"4s\"\nrate = \"0bit/s\"\ndelay = \"30ms\"\n\
                [[link.change]]\nat = \"3s\"\nevery = \"4s\"\nrate = \"2Mbit/s\"";
    let scenario = load(keys, &[]).unwrap();
    let seen: Vec<_> =
        scenario.links[0].changes.iter().take(7).map(|change| (change.at.as_secs_f64(), change.what)).collect();
    let (zero, delay, two) = (ChangeKind::Rate(Some(0)), ChangeKind::Delay(ms(30)), ChangeKind::Rate(Some(2_000_000)));
    assert_eq!(seen, [(1.0, zero), (1.0, delay), (3.0, two), (5.0, zero), (5.0, delay), (7.0, two), (9.0, zero)]);
    assert_eq!(scenario.remarks().count(), 0);
    let pause = load("rate = \"1Mbit/s\"\n[[link.change]]\nat = \"2s\"\nrate = \"0bit/s\"", &[]).unwrap();
    assert_eq!(pause.remarks().collect::<Vec<_>>(), ["a-b: nothing can be sent for 7s from 2s on: what comes waits"]);
}
