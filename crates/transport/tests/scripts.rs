//! What Linux does, segment by segment: the files in `scripts` play the peer and the application of a sender.
//!
//! The facts are those of packetdrill's scripts (google/packetdrill, `gtests/net/tcp`), which Linux passes; each file names the
//! one that it is from, or `linux-6.18` where that kernel was asked. It was asked all of them, the parts behind a `stop` too,
//! and does as they say. Positions count packets of 1,000 bytes from 1 on, as ours do, and `a..b` is without `b`. A line is
//!
//! ```text
//! source cubic/x.pkt            where the facts are from; required
//! connect 100ms                 the SYN is answered after so long; required
//! option sack off               neither side has it; further: windows only, no segment is checked; tolerance 3ms;
//!                               ecn on; counts all, slow start counts all packets that an acknowledgment covers
//! +10ms write 7                 the application has so many packets more
//! +10ms ack 5 sack 7..9,12..14  the peer has all below 5 and these; several numbers are several acknowledgments, each so
//!                               much later; `echo` says that a mark was seen, `original` that what is acknowledged is the
//!                               first transmission (by its timestamp), `duplicate` that it came twice
//! +0 send 10..12,1              these are sent now, in this order, and nothing else until the next `send`
//! +0 window 10                  the congestion window in whole packets
//! +0 threshold none             the slow-start threshold; `none` before there is one
//! +0 window 10 differs 8: why   Linux has 10, ours 8; where it no longer does, this is an error. Of segments: `differs +5ms 1,2`
//! stop: why                     what follows is Linux's, and not to be had of ours while something differs above
//! ```
//!
//! Where ours differs, the file says so and stays as Linux is. Linux samples the round-trip time with each acknowledgment, with
//! timestamps or without; ours needs timestamps for that, so they are on though packetdrill's scripts are without.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use clock::{Duration, Instant, Rng};
use transport::{Flags, NO_BLOCKS, Packet, Recovery, TcpConfig, TcpSender};

#[derive(Default)]
struct Script {
    connect: Option<Duration>,
    cites: bool,
    without_sack: bool,
    windows_only: bool,
    counts_all: bool,
    ecn: bool,
    tolerance: Duration,
    lines: Vec<Line>,
    differences: usize,
}

struct Line {
    number: usize,
    after: Duration,
    action: Action,
    /// What ours does instead.
    ours: Option<Expected>,
}

enum Action {
    Write(u64),
    Ack { upto: Vec<u64>, blocks: Vec<(u32, u32)>, flags: Flags, original: bool },
    Check(Expected),
}

#[derive(Clone, Debug, PartialEq)]
enum Expected {
    /// These packets, so long after the line before.
    Send(Duration, Vec<u64>),
    Window(u64),
    /// `u64::MAX` for none.
    Threshold(u64),
}

impl std::fmt::Display for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Send(after, packets) => write!(f, "{packets:?} sent at +{after}"),
            Self::Window(packets) => write!(f, "a window of {packets}"),
            Self::Threshold(u64::MAX) => write!(f, "no threshold"),
            Self::Threshold(packets) => write!(f, "a threshold of {packets}"),
        }
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number"))
}

fn time(text: &str) -> Result<Duration, String> {
    let (value, seconds) = match text.strip_suffix("ms") {
        Some(value) => (value, 1e-3),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let value: f64 = value.parse().map_err(|_| format!("`{text}` is not a time"))?;
    if value != 0.0 && !text.ends_with('s') {
        return Err(format!("`{text}` has no unit"));
    }
    Ok(Duration::from_secs_f64(value * seconds))
}

/// `1,3..5`: 1, 3 and 4.
fn ranges(text: &str) -> Result<Vec<(u64, u64)>, String> {
    let range = |part: &str| match part.split_once("..") {
        Some((from, to)) => Ok((number(from)?, number(to)?)),
        None => number(part).map(|one| (one, one + 1)),
    };
    text.split(',').map(range).collect()
}

/// The words of what is expected, or of what ours does instead: `after` the line before, if the words say no other time.
fn expected(kind: &str, words: &[&str], after: Duration) -> Result<Expected, String> {
    match (kind, words) {
        ("send", ["nothing"]) => Ok(Expected::Send(after, Vec::new())),
        ("send", [packets]) => {
            Ok(Expected::Send(after, ranges(packets)?.into_iter().flat_map(|(from, to)| from..to).collect()))
        }
        ("send", [at, packets]) if at.starts_with('+') => expected(kind, &[packets], time(&at[1..])?),
        ("window", [packets]) => number(packets).map(Expected::Window),
        ("threshold", ["none"]) => Ok(Expected::Threshold(u64::MAX)),
        ("threshold", [packets]) => number(packets).map(Expected::Threshold),
        _ => Err(format!("`{kind} {}` says nothing", words.join(" "))),
    }
}

fn acknowledgment(words: &[&str]) -> Result<Action, String> {
    let (mut upto, mut blocks, mut flags, mut original) = (Vec::new(), Vec::new(), Flags::ACK, false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "sack" => {
                let all = ranges(words.next().ok_or("`sack` of what?")?)?;
                blocks = all.into_iter().map(|(from, to)| (from as u32, to as u32)).collect();
            }
            "echo" => flags = flags.with(Flags::ECHO),
            "duplicate" => flags = flags.with(Flags::DUPLICATE),
            "original" => original = true,
            position => upto.push(number(position)?),
        }
    }
    Ok(Action::Ack { upto, blocks, flags, original })
}

impl Script {
    fn parse(text: &str) -> Result<Self, String> {
        let (mut script, mut stopped) = (Self::default(), false);
        for (index, line) in text.lines().enumerate() {
            let said = line.split('#').next().unwrap_or("").trim();
            if said.is_empty() {
                continue;
            }
            let line = script.line(index + 1, said, &mut stopped).map_err(|error| format!("{}: {error}", index + 1))?;
            if !stopped {
                script.differences += usize::from(line.as_ref().is_some_and(|line| line.ours.is_some()));
                script.lines.extend(line);
            }
        }
        match script {
            Self { cites: false, .. } => Err("no `source`".into()),
            Self { connect: None, .. } => Err("no `connect`".into()),
            _ if stopped && script.differences == 0 => Err("a `stop` although nothing differs".into()),
            _ => Ok(script),
        }
    }

    fn line(&mut self, number_of_line: usize, said: &str, stopped: &mut bool) -> Result<Option<Line>, String> {
        if let Some(why) = said.strip_prefix("stop:") {
            *stopped = true;
            return if why.trim().is_empty() { Err("`stop` says no reason".into()) } else { Ok(None) };
        }
        let (said, ours) = match said.split_once(" differs ") {
            Some((said, ours)) => {
                let (ours, _) = ours.split_once(": ").ok_or("a difference says `: ` and why")?;
                (said, Some(ours.split_whitespace().collect::<Vec<_>>()))
            }
            None => (said, None),
        };
        let words: Vec<&str> = said.split_whitespace().collect();
        match words[..] {
            ["source", _] => self.cites = true,
            ["connect", after] => self.connect = Some(time(after)?),
            ["option", "sack", "off"] => self.without_sack = true,
            ["option", "windows", "only"] => self.windows_only = true,
            ["option", "counts", "all"] => self.counts_all = true,
            ["option", "ecn", "on"] => self.ecn = true,
            ["option", "tolerance", by] => self.tolerance = time(by)?,
            [at, what, ref rest @ ..] if at.starts_with('+') => {
                let after = time(&at[1..])?;
                let action = match what {
                    "write" => Action::Write(number(rest.first().copied().unwrap_or(""))?),
                    "ack" => acknowledgment(rest)?,
                    kind => Action::Check(expected(kind, rest, after)?),
                };
                let ours = ours.map(|words| expected(what, &words, after)).transpose()?;
                return Ok(Some(Line { number: number_of_line, after, action, ours }));
            }
            _ => return Err(format!("`{said}` is not understood")),
        }
        Ok(None)
    }
}

/// A sender, and all that is not the sender.
struct Stage {
    now: Instant,
    sender: TcpSender,
    script: Script,
    /// The first packet that the peer has not said it has, and the last that the application has written.
    una: u64,
    written: u64,
    /// First and last transmission of each packet.
    times: BTreeMap<u64, (Instant, Instant)>,
    /// Sent, and expected by no line yet.
    sent: VecDeque<(Instant, u64)>,
}

impl Stage {
    fn new(mut script: Script) -> Self {
        let mut config = TcpConfig::linux("cubic".parse().unwrap(), 1052, 20);
        assert_eq!(config.mss(), 1000);
        config.ecn = script.ecn;
        if script.without_sack {
            config.recovery = Recovery::NewReno;
        }
        if script.counts_all {
            let limit = std::mem::replace(&mut config.engine.byte_counting_limit, f64::INFINITY);
            assert!(limit.is_finite(), "`option counts all` is needless, as Linux's profile does");
        }
        let sender = TcpSender::new(Arc::new(config), Rng::from_seed(1));
        let now = Instant::ZERO;
        let connect = script.connect.take().unwrap_or_default();
        let (times, sent) = (BTreeMap::new(), VecDeque::new());
        let mut stage = Self { now, sender, script, una: 0, written: 0, times, sent };
        stage.sender.start(now);
        stage.transmit();
        stage.advance(now + connect);
        assert_eq!(stage.sent.drain(..).collect::<Vec<_>>(), [(Instant::ZERO, 0)], "one SYN");
        stage.acknowledge(1, &[], Flags::ACK, false);
        stage
    }

    /// What the application has not written looks to this sender like what a full receiver does not take. A receiver takes one
    /// packet at least, so a sender that has nothing at all to do is not asked.
    fn transmit(&mut self) {
        if self.una > self.written {
            return;
        }
        self.sender.set_receiver_window(self.una, self.written + 1 - self.una);
        while let Some(packet) = self.sender.poll_transmit(self.now) {
            let position = u64::from(packet.position);
            self.times.entry(position).or_insert((self.now, self.now)).1 = self.now;
            self.sent.push_back((self.now, position));
        }
    }

    fn advance(&mut self, to: Instant) {
        while let Some((at, _)) = self.sender.poll_timeout().filter(|(at, _)| *at <= to) {
            self.now = at;
            self.sender.handle_timeout(at);
            self.transmit();
        }
        self.now = to;
    }

    fn acknowledge(&mut self, upto: u64, blocks: &[(u32, u32)], flags: Flags, original: bool) {
        // RFC 7323 §4.3: the time of the first packet that this acknowledges; of our receivers', of the one that has come out of order.
        let newest = match blocks.first() {
            Some((_, end)) if upto <= self.una => u64::from(*end).saturating_sub(1),
            _ => self.una,
        };
        let (first, last) = self.times.get(&newest).copied().unwrap_or((self.now, self.now));
        let (time, position) = (if original { first } else { last }, upto as u32);
        let packet = Packet { time, flow: 0, hop: 0, position, blocks: NO_BLOCKS, bytes: 52, flags, path: 0 };
        self.sender.handle_input(self.now, &packet, blocks);
        self.una = self.una.max(upto);
        self.transmit();
    }

    /// Nothing may be left that no line expects, when a line says that something else happens.
    fn settled(&mut self) -> Result<(), String> {
        if std::mem::take(&mut self.script.windows_only) {
            self.sent.clear();
            self.script.windows_only = true;
        }
        match self.sent.front() {
            None => Ok(()),
            Some((at, _)) => {
                let since_start = *at - Instant::ZERO;
                Err(format!("{:?} sent at {since_start}, which nothing expects", self.positions()))
            }
        }
    }

    fn positions(&self) -> Vec<u64> {
        self.sent.iter().map(|(_, position)| *position).collect()
    }

    fn play(&mut self, line: &Line) -> Result<(), String> {
        let start = self.now;
        match &line.action {
            Action::Write(packets) => {
                self.advance(start + line.after);
                self.settled()?;
                self.written += packets;
                // What a receiver says whose window opens.
                self.acknowledge(self.una, &[], Flags::ACK, false);
            }
            Action::Ack { upto, blocks, flags, original } => {
                for position in upto {
                    self.advance(self.now + line.after);
                    self.settled()?;
                    self.acknowledge(*position, blocks, *flags, *original);
                }
            }
            Action::Check(linux) => {
                let seen = self.see(start, line, linux)?;
                let matches = |expected: &Expected| self.is(&seen, expected);
                match &line.ours {
                    None if matches(linux) => {}
                    None => return Err(format!("expected {linux}, saw {seen}")),
                    Some(_) if matches(linux) => {
                        return Err(format!("the difference is gone, there is {linux} as in Linux: say so"));
                    }
                    Some(ours) if matches(ours) => {}
                    Some(ours) => return Err(format!("expected {linux}, or of ours {ours}, saw {seen}")),
                }
            }
        }
        Ok(())
    }

    /// What there is where the line expects something.
    fn see(&mut self, start: Instant, line: &Line, linux: &Expected) -> Result<Expected, String> {
        let latest = |expected: &Expected| match expected {
            Expected::Send(after, _) => *after,
            _ => line.after,
        };
        if !matches!(linux, Expected::Send(..)) {
            self.advance(start + line.after);
            return Ok(match linux {
                Expected::Window(_) => Expected::Window((self.sender.cwnd() + 1e-6) as u64),
                _ if self.sender.ssthresh().is_infinite() => Expected::Threshold(u64::MAX),
                _ => Expected::Threshold((self.sender.ssthresh() + 1e-6) as u64),
            });
        }
        if !line.after.is_zero() {
            self.settled()?;
        }
        let until = start + line.ours.iter().map(latest).fold(latest(linux), Duration::max);
        self.advance(until);
        if self.sent.is_empty()
            && let Some((at, _)) = self.sender.poll_timeout()
            && at <= until + self.script.tolerance
        {
            self.advance(at);
        }
        let at = self.sent.front().map_or(line.after, |(at, _)| at.saturating_since(start));
        let positions = self.positions();
        self.sent.clear();
        Ok(Expected::Send(at, positions))
    }

    fn is(&self, seen: &Expected, expected: &Expected) -> bool {
        match (seen, expected) {
            (Expected::Send(at, seen), Expected::Send(when, expected)) => {
                let off = (*at).max(*when) - (*at).min(*when);
                seen == expected && (seen.is_empty() || off <= self.script.tolerance)
            }
            _ => seen == expected,
        }
    }
}

/// How many differences the script has, or the line, what was expected and what was seen.
fn run(text: &str) -> Result<usize, String> {
    let mut script = Script::parse(text)?;
    let (lines, differences) = (std::mem::take(&mut script.lines), script.differences);
    let mut stage = Stage::new(script);
    for line in &lines {
        stage.play(line).map_err(|error| format!("{}: {error}", line.number))?;
    }
    stage.settled().map_err(|error| format!("at the end: {error}"))?;
    Ok(differences)
}

#[test]
fn the_sender_does_what_linux_does() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let failures: Vec<String> = files
        .iter()
        .filter_map(|file| {
            let error = run(&std::fs::read_to_string(file).unwrap()).err()?;
            Some(format!("{}:{error}", file.file_name().unwrap().display()))
        })
        .collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// A check that cannot fail is none.
#[test]
fn what_is_wrong_is_found() {
    let play = |lines: &str| run(&format!("source x\nconnect 100ms\n+0 write 12\n{lines}"));
    let right = "+0 send 1..11\n+100ms ack 2\n+0 send 11..13\n+0 window 11\n+0 threshold none";
    assert_eq!(play(right), Ok(0));
    assert_eq!(play(&right.replace("window 11", "window 12 differs 11: why")), Ok(1));
    for (from, to, error) in [
        ("11..13", "11..14", "6: expected [11, 12, 13] sent at +0s, saw [11, 12] sent at +0s"),
        ("+0 send 11..13", "+5ms send 11..13", "6: [11, 12] sent at 200ms, which nothing expects"),
        ("+0 send 11..13", "", "at the end: [11, 12] sent at 200ms, which nothing expects"),
        ("+0 send 1..11", "", "5: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] sent at 100ms, which nothing expects"),
        ("window 11", "window 10", "7: expected a window of 10, saw a window of 11"),
        (
            "window 11",
            "window 11 differs 10: why",
            "7: the difference is gone, there is a window of 11 as in Linux: say so",
        ),
        (
            "window 11",
            "window 9 differs 10: why",
            "7: expected a window of 9, or of ours a window of 10, saw a window of 11",
        ),
        ("window 11", "window 9 differs 11", "7: a difference says `: ` and why"),
        ("threshold none", "threshold 7", "8: expected a threshold of 7, saw no threshold"),
        ("+0 threshold", "stop:\n+0 threshold", "8: `stop` says no reason"),
        ("+0 window", "stop: nothing differs\n+0 window", "a `stop` although nothing differs"),
        ("window 11", "widnow 11", "7: `widnow 11` says nothing"),
        ("+100ms ack", "+100 ack", "5: `100` has no unit"),
    ] {
        let changed = right.replace(from, to);
        assert_ne!(changed, right);
        let found = play(&changed).unwrap_err();
        assert!(found.ends_with(error), "{found} is not {error}");
    }
}
