//! Half an hour as fast as the machine goes, over two paths, with new keys about once a minute.

use std::time::Duration;

use crate::clear::verdict;
use crate::clockwork::{now, pause};
use crate::ground::{Ground, Plan, Usage};
use crate::report::{Row, counted};
use crate::restart::{Transfer, connection};
use crate::{Attack, Failure, Options};

/// The soak.
pub(crate) const SOAKS: [Attack; 1] = [Attack {
    name: "soak",
    told: "line rate over two paths, new keys each million packets, for --minutes",
    run: soak,
}];

/// New keys after so many packets of a path: at 300 Mbit/s over two paths about once a minute.
const REKEY: u32 = 1_000_000;
/// Memory may be so much more in the last third than in the first.
const FLAT: f64 = 1.1;

fn soak(options: &Options) -> Result<Row, Failure> {
    let settings = format!("[esp]\nrekey_packets = {REKEY}\n");
    let mut ground = Ground::new(&options.sinnet, Plan { second_link: true, settings, ..Plan::default() })?;
    ground.start_all()?;
    ground.associate(2)?;
    let to = ground.hit_address("B")?.into();
    let (client, server) = connection(&ground, to)?;
    let transfer = Transfer::start(server, client, 0.0);
    pause(Duration::from_secs(5))?;
    let before = ground.status("A")?;
    let begin = now();
    let mut samples: Vec<[Usage; 2]> = Vec::new();
    let (mut stalled, mut last) = (0, 0);
    while begin.elapsed().as_secs_f64() < options.minutes * 60.0 {
        samples.push([ground.usage("A"), ground.usage("B")]);
        pause(Duration::from_secs(2))?;
        let bytes = transfer.bytes();
        stalled += u32::from(bytes == last);
        last = bytes;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let after = ground.status("A")?;
    let mut harm = Vec::new();
    for (index, host) in ["A", "B"].iter().enumerate() {
        let of = |part: &[[Usage; 2]]| part.iter().filter_map(|both| both.get(index).copied()).collect::<Vec<_>>();
        let third = samples.len() / 3;
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
    if stalled > 0 {
        harm.push(format!("{stalled} times nothing arrived for 2 s"));
    }
    let bytes = transfer.bytes();
    if !transfer.finish()? {
        harm.push("what arrived is not what was sent".to_owned());
    }
    let mbps = bytes as f64 * 8.0 / seconds / 1e6;
    let mut row = verdict("soak", harm, format!("{bytes} bytes at {mbps:.0} Mbit/s in {:.1} minutes", seconds / 60.0));
    row.counters = counted(&before, &after);
    let end = |samples: Option<&[Usage; 2]>| samples.map_or(0, |both| both[0].rss);
    row.rss_kb = Some([end(samples.first()), end(samples.last())]);
    Ok(row)
}
