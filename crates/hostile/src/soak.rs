//! Half an hour as fast as the machine goes, over two paths, with new keys about once a minute.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use crate::clear::verdict;
use crate::clockwork::{now, pause};
use crate::ground::{Ground, Plan, Usage};
use crate::report::{Row, counted};
use crate::restart::{Transfer, connection};
use crate::tap::Tap;
use crate::{Attack, Failure, Options};

/// The soak.
pub(crate) const SOAKS: [Attack; 1] =
    [Attack { name: "soak", told: "line rate over two paths, new keys each minute, for --minutes", run: soak }];

/// New keys after so many seconds; a short soak has them four times, but not more often than the daemon allows.
const REKEY: f64 = 60.0;
const SOONEST: f64 = 10.0;
/// How long one looks at the wire for the SPIs in use. Looking at everything would cost more than the tunnel.
const LOOK: Duration = Duration::from_millis(60);
/// Memory may be so much more in the last third than in the first.
const FLAT: f64 = 1.1;

/// What was measured every two seconds.
#[derive(Default)]
struct Seen {
    usage: Vec<[Usage; 2]>,
    /// Every SPI that was on the wire, by the address that it is sent to.
    spis: BTreeMap<Ipv4Addr, BTreeSet<u32>>,
    /// How often nothing had arrived since the time before.
    stalled: u32,
}

fn soak(options: &Options) -> Result<Row, Failure> {
    let rekey = (options.minutes * 15.0).clamp(SOONEST, REKEY);
    let settings = format!("[esp]\nrekey = \"{rekey:.0}s\"\n");
    let mut ground = Ground::new(&options.sinnet, Plan { second_link: true, settings, ..Plan::default() })?;
    ground.start_all()?;
    ground.associate(2)?;
    let to = ground.hit_address("B")?.into();
    let (client, server) = connection(&ground, to)?;
    let transfer = Transfer::start(server, client, 0.0);
    pause(Duration::from_secs(5))?;
    let before = ground.status("A")?;
    let begin = now();
    let seen = watch(&ground, &transfer, options.minutes * 60.0)?;
    let seconds = begin.elapsed().as_secs_f64();
    let after = ground.status("A")?;
    let mut harm = flat(&seen.usage);
    if seen.stalled > 0 {
        harm.push(format!("{} times nothing arrived for 2 s", seen.stalled));
    }
    // Each host renews what it has had for so long, a little earlier or later; half of that has to be seen at least.
    let (addresses, due) = (4, (seconds / rekey / 2.0).max(1.0) as usize);
    let changes: Vec<usize> = seen.spis.values().map(|spis| spis.len().saturating_sub(1)).collect();
    if changes.len() < addresses || changes.iter().any(|changes| *changes < due) {
        harm.push(format!("SPIs changed {changes:?} times at the {addresses} addresses, not {due} times each"));
    }
    let bytes = transfer.bytes();
    if !transfer.finish()? {
        harm.push("what arrived is not what was sent".to_owned());
    }
    let mbps = bytes as f64 * 8.0 / seconds / 1e6;
    let minutes = seconds / 60.0;
    let note = format!(
        "{bytes} bytes at {mbps:.0} Mbit/s in {minutes:.1} minutes, SPIs changed {changes:?} times with new keys each \
         {rekey:.0} s"
    );
    let mut row = verdict("soak", harm, note);
    row.counters = counted(&before, &after);
    let end = |samples: Option<&[Usage; 2]>| samples.map_or(0, |both| both[0].rss);
    row.rss_kb = Some([end(seen.usage.first()), end(seen.usage.last())]);
    Ok(row)
}

fn watch(ground: &Ground, transfer: &Transfer, seconds: f64) -> Result<Seen, Failure> {
    let (begin, mut seen, mut last) = (now(), Seen::default(), 0);
    while begin.elapsed().as_secs_f64() < seconds {
        seen.usage.push([ground.usage("A"), ground.usage("B")]);
        let tap = Tap::start(&ground.switch, &[])?;
        pause(LOOK)?;
        for (address, spis) in tap.stop().spis {
            seen.spis.entry(address).or_default().extend(spis);
        }
        pause(Duration::from_secs(2))?;
        let bytes = transfer.bytes();
        seen.stalled += u32::from(bytes == last);
        last = bytes;
    }
    Ok(seen)
}

/// What has grown between the first third and the last, in sentences.
fn flat(samples: &[[Usage; 2]]) -> Vec<String> {
    let mut harm = Vec::new();
    let third = samples.len() / 3;
    for (index, host) in ["A", "B"].iter().enumerate() {
        let of = |part: &[[Usage; 2]]| part.iter().filter_map(|both| both.get(index).copied()).collect::<Vec<_>>();
        let first = of(samples.get(..third).unwrap_or_default());
        let end = of(samples.get(samples.len() - third..).unwrap_or_default());
        let mut early: Vec<u64> = first.iter().map(|usage| usage.rss).collect();
        early.sort_unstable();
        let (median, most) = (early.get(early.len() / 2).copied(), end.iter().map(|usage| usage.rss).max());
        if most.unwrap_or(0) as f64 > median.unwrap_or(0) as f64 * FLAT {
            harm.push(format!("the memory of {host} grows from {median:?} to {most:?} kB"));
        }
        let files = |usages: &[Usage]| usages.iter().map(|usage| usage.files).max().unwrap_or(0);
        if files(&end) > files(&first) {
            harm.push(format!("{host} has {} open files after {}", files(&end), files(&first)));
        }
    }
    harm
}
