//! Sinnet as it ships in the simulator, against what cannot be otherwise (links, delays, amounts), TCP, and the papers' generation.

use scenario::Document;
use scenario::schema::Engine;
use simulator::{FlowResult, RunOptions, RunResult};

fn run(text: &str, seed: u64) -> RunResult {
    let scenario = scenario::parse(text, "sinnet.toml").unwrap_or_else(|error| panic!("{error}"));
    simulator::run(&scenario, seed, &RunOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Two paths between two hosts of these rates in Mbit/s and one-way delays in ms, with a queue of one and a half round trips.
fn two_paths(paths: [(u32, u32); 2], duration: u32, change: &str, flows: &str) -> String {
    let links = paths.iter().enumerate().map(|(index, (rate, delay))| {
        let change = if index == 0 { change } else { "" };
        format!(
            "[[link]]\nbetween = [\"b\", \"r{index}\"]\nrate = \"{rate}Mbit/s\"\ndelay = \"{delay}ms\"\nqueue = \"1.5bdp\"\n\
             {change}\n[[link]]\nbetween = [\"r{index}\", \"a\"]\ndelay = \"1ms\"\n"
        )
    });
    let head = format!("name = \"two paths\"\nduration = \"{duration}s\"\nwarm_up = \"{}s\"\n", duration / 4);
    head + &links.collect::<String>() + flows
}

/// A link that is no bottleneck, of so many milliseconds.
fn fast_link(from: &str, to: &str, delay: u32) -> String {
    format!("[[link]]\nbetween = [\"{from}\", \"{to}\"]\nrate = \"1Gbit/s\"\ndelay = \"{delay}ms\"\n")
}

fn flow(name: &str, keys: &str) -> String {
    format!(
        "[[flow]]\nname = \"{name}\"\nfrom = \"b\"\nto = \"a\"\nprotocol = \"sinnet\"\n\
         paths = [[\"b\", \"r0\", \"a\"], [\"b\", \"r1\", \"a\"]]\n{keys}\n"
    )
}

/// Payload of a full packet over its bytes. With a whole header of TCP it has 1500: IPv4, UDP, ESP with AES-GCM and implicit IVs, the number
/// of the flow, and TCP with timestamps. In short that is 23 bytes less, and three of padding more.
const PART: f64 = (1500.0 - 20.0 - 8.0 - 8.0 - 2.0 - 16.0 - 2.0 - 32.0) / (1500.0 - 23.0 + 3.0);

/// No more than the links carry can arrive, and with queues of more than a round trip hardly less does (G. Appenzeller and
/// others, 2004), whatever TCP is inside.
#[test]
fn two_paths_are_one_of_their_sum() {
    for (paths, congestion) in [
        ([(8, 29), (4, 29)], "cubic"),
        ([(50, 9), (50, 9)], "reno"),
        ([(20, 4), (20, 49)], "cubic"),
        ([(8, 14), (4, 60)], "vegas"),
    ] {
        let text = two_paths(paths, 16, "", &flow("f", &format!("congestion = \"{congestion}\"")));
        let result = run(&text, 1);
        let sum = PART * f64::from(paths[0].0 + paths[1].0);
        let part = result.flows[0].goodput_mbps / sum;
        assert!(part <= 1.0, "{paths:?} {congestion}: more than the links carry, {part}");
        assert!(part > 0.93, "{paths:?} {congestion}: {part}");
        let both = &result.flows[0].paths;
        for (index, (path, (rate, delay))) in both.iter().zip(paths).enumerate() {
            assert!(path.goodput_mbps > 0.8 * PART * f64::from(rate), "{paths:?}: {path:?}");
            let least = 2.0 * f64::from(delay + 1);
            assert!(path.srtt_ms > least && path.srtt_ms < 3.0 * least + 5.0, "{path:?}");
            // At most what the path and its queue hold, in packets, and about as much as the path does.
            let bdp = f64::from(rate) * 1e6 * least * 1e-3 / 8.0 / 1500.0;
            assert!(path.mean_cwnd > 0.7 * bdp && path.mean_cwnd < 3.0 * bdp, "{bdp} {path:?}");
            // What a queue drops reduces the window (RFC 5681 §3.1), and nothing else does. Queues of equal paths that rise and
            // fall together are taken for one: then what the other drops does, too.
            let drops = |link: &&simulator::LinkResult| link.queue_drops > 0;
            let own = result.links.iter().find(|link| link.name == format!("b-r{index}")).filter(drops);
            let any = result.links.iter().find(drops).filter(|_| paths[0] == paths[1]);
            assert!(path.reductions > path.undone || own.is_none(), "{path:?} {own:?}");
            assert!(path.reductions == path.undone || own.or(any).is_some(), "{path:?}");
        }
        assert_eq!(result.flows[0].timeouts, 0);
    }
}

/// Two thousand small downloads that begin at once take as long as their bytes: none of them loses what the least window lets it
/// have waiting, and waits for its timer when all others are done.
#[test]
fn a_crowd_takes_as_long_as_its_bytes() {
    let text = two_paths([(8, 29), (4, 29)], 60, "", &flow("f", "count = 2000\namount = \"8kB\""));
    let result = run(&text.replace("warm_up = \"15s\"\n", ""), 1);
    let last =
        result.flows.iter().map(|flow| if flow.completed { flow.end_s } else { f64::INFINITY }).fold(0.0, f64::max);
    let least = 2000.0 * 8_000.0 * 8.0 / (PART * 12e6);
    assert!(last > least && last < 1.25 * least, "{last} s, {least} s at least");
}

/// Whichever scheduler chooses, two paths carry their sum (and with a copy of every packet on each, what the better one does);
/// whether windows are measured or rates are told. Some wait for a quicker path, so the two are equally long.
#[test]
fn every_scheduler_has_the_sum() {
    let measured = scheduler::Scheduler::NAMES.iter().map(|name| (*name, "measured"));
    for (name, rates) in measured.chain([(scheduler::Scheduler::default().name(), "configured")]) {
        let keys = format!("scheduler = \"{name}\"\nrates = \"{rates}\"");
        let result = run(&two_paths([(8, 14), (4, 14)], 16, "", &flow("f", &keys)), 1);
        let flow = &result.flows[0];
        let carried = if name == "redundant" { 8.0 } else { 12.0 };
        let part = flow.goodput_mbps / (PART * carried);
        assert!(part > 0.93 && part <= 1.0, "{name} {rates}: {part}");
        // Copies take of each link what it has.
        for (name_of_link, rate) in [("b-r0", 8.0), ("b-r1", 4.0)] {
            let link = result.links.iter().find(|link| link.name == name_of_link).unwrap();
            assert!(link.utilisation > 0.93, "{name} {rates}, {rate} Mbit/s: {link:?}");
        }
    }
}

/// The rule of the paths is the one that is named, and the usual one where none is.
#[test]
fn paths_have_the_rule_that_is_named() {
    let digest = |rule: &str| {
        let text = two_paths([(8, 14), (4, 34)], 16, "", &flow("f", &format!("path_congestion = \"{rule}\"")));
        run(&text, 1).digest
    };
    assert_ne!(digest("lia"), digest("mhip"));
    assert_eq!(digest("sinnet"), run(&two_paths([(8, 14), (4, 34)], 16, "", &flow("f", "")), 1).digest);
}

/// A BBR paces itself by what one path delivers, and has a window of two of the least round trips: it fills no path, and a packet of a
/// distant one is acknowledged after that. All the same it has more than over the better path without Sinnet, or nearly as much where the
/// near path is the slow one: it drains its paths each ten seconds, and then begins with that.
#[test]
fn a_program_that_paces_itself_has_a_distant_path_as_well() {
    for (paths, least) in [
        ([(50, 19), (50, 119)], 1.4),
        ([(20, 4), (100, 39)], 0.9),
        ([(50, 7), (100, 29)], 1.2),
        ([(100, 4), (50, 24)], 1.1),
    ] {
        let (alone, together) = bbr(paths, 24);
        let best = alone[0].max(alone[1]);
        assert!(together > least * best, "{paths:?}: {together} Mbit/s, and {best} over the better path");
    }
}

/// What a BBR has over each of two paths as TCP, and over both, after a quarter of the seconds; the means of three seeds.
fn bbr(paths: [(u32, u32); 2], duration: u32) -> ([f64; 2], f64) {
    let mean = |flow: &str| {
        let text = two_paths(paths, duration, "", flow);
        (1..=3).map(|seed| run(&text, seed).flows[0].goodput_mbps).sum::<f64>() / 3.0
    };
    let alone = ["r0", "r1"].map(|path| {
        let keys = format!("paths = [[\"b\", \"{path}\", \"a\"]]\nprofile = \"linux\"\ncongestion = \"bbr\"\n");
        mean(&format!("[[flow]]\nname = \"f\"\nfrom = \"b\"\nto = \"a\"\nprotocol = \"tcp\"\n{keys}"))
    });
    (alone, mean(&flow("f", "congestion = \"bbr\"")))
}

/// After ten seconds a BBR looks for the least round trip again, and sees the distant path's: from then on its window is made for both.
#[test]
fn a_program_that_looks_for_the_least_round_trip_again_has_both_paths() {
    for paths in [[(50, 19), (50, 119)], [(20, 4), (100, 39)], [(100, 4), (50, 24)], [(10, 5), (40, 60)]] {
        let (alone, together) = bbr(paths, 56);
        let sum: f64 = alone.iter().sum();
        assert!(together > 0.93 * sum, "{paths:?}: {together} Mbit/s, and {sum} over the paths one by one");
    }
}

/// Links that lose packets of their own carry most of what they carry without that, whatever is inside: where every loss is
/// answered it is a tenth, √(3/2p) packets in a round trip on each (M. Mathis and others, 1997).
#[test]
fn random_loss_does_not_hold_paths_back() {
    for (loss, inside) in [("0.5%", "cubic"), ("2%", "cubic"), ("2%", "bbr"), ("5%", "cubic"), ("5%", "bbr")] {
        let links =
            two_paths([(50, 19), (50, 19)], 30, "", "").replace("queue =", &format!("loss = \"{loss}\"\nqueue ="));
        let goodput = |rule: &str| {
            let keys = format!("congestion = \"{inside}\"\npath_congestion = \"{rule}\"");
            let flow = flow("f", &keys);
            (1..=3).map(|seed| run(&(links.clone() + &flow), seed).flows[0].goodput_mbps).sum::<f64>() / 3.0
        };
        let (borne, answered) = (goodput("sinnet"), goodput("mhip"));
        assert!(borne > 0.6 * PART * 100.0, "{loss} {inside}: {borne} Mbit/s of 100");
        assert!(answered < 0.2 * PART * 100.0, "{loss} {inside}: {answered} Mbit/s, and the links do not lose enough");
    }
}

/// A Reno on the same lossy link has what it has beside a CUBIC: its own losses limit it.
#[test]
fn who_shares_a_lossy_link_keeps_what_he_has() {
    let of_reno = |flow: &str| {
        let text = two_paths([(20, 19), (20, 19)], 60, "loss = \"1%\"", flow)
            + "[[flow]]\nname = \"tcp\"\nfrom = \"r0\"\nto = \"b\"\nprotocol = \"tcp\"\nprofile = \"linux\"\ncongestion = \"reno\"\n";
        (1..=3).map(|seed| run(&text, seed).flows[1].goodput_mbps).sum::<f64>() / 3.0
    };
    let beside_us = of_reno(&flow("f", "").replace("from = \"b\"\nto = \"a\"", "from = \"a\"\nto = \"b\"").replace(
        "paths = [[\"b\", \"r0\", \"a\"], [\"b\", \"r1\", \"a\"]]",
        "paths = [[\"a\", \"r0\", \"b\"], [\"a\", \"r1\", \"b\"]]",
    ));
    let beside_cubic = of_reno(
        "[[flow]]\nname = \"f\"\nfrom = \"r0\"\nto = \"b\"\nprotocol = \"tcp\"\nprofile = \"linux\"\ncongestion = \"cubic\"\n",
    );
    assert!(beside_us > 0.8 * beside_cubic, "{beside_us} where it is {beside_cubic} beside a CUBIC");
}

/// A long path beside a short one: reports of it are earlier than its round trip, and its window is never all in flight. It grows all
/// the same, as a TCP's does (RFC 5681 §3.1): from some packets, which is all that 0.3 Mbit/s leave it, to what the link carries
/// by one a round trip.
#[test]
fn a_long_path_beside_a_short_one_grows() {
    let change =
        "[[link.change]]\nat = \"1s\"\nrate = \"0.3Mbit/s\"\n[[link.change]]\nat = \"15s\"\nrate = \"4Mbit/s\"";
    let text = two_paths([(4, 149), (8, 14)], 80, change, &flow("f", "")).replace("\"20s\"", "\"60s\"");
    for seed in 1..=3 {
        let result = run(&text, seed);
        let long = &result.flows[0].paths[0];
        assert!(long.goodput_mbps > 0.85 * PART * 4.0, "seed {seed}: {long:?}");
    }
}

/// Nor does that path take more from a TCP at its link than another TCP would (RFC 6356 §2), which it would if early reports let out
/// more than a window in a round trip: of a CUBIC as much as that has, of a Reno what a CUBIC in its place takes. One run differs from
/// the mean of many by a third.
#[test]
fn a_long_path_beside_a_short_one_is_a_tcp() {
    let on_the_long_path = "paths = [[\"b\", \"r0\", \"a\"]]\nstart = [\"0s\", \"3s\"]\n";
    let tcp = |congestion: &str| {
        format!(
            "[[flow]]\nname = \"{congestion}\"\nfrom = \"b\"\nto = \"a\"\nprotocol = \"tcp\"\nprofile = \"linux\"\n\
             congestion = \"{congestion}\"\n{on_the_long_path}"
        )
    };
    let ours = flow("f", "start = [\"0s\", \"3s\"]");
    let ratio = |first: &str, second: &str| {
        let text =
            two_paths([(20, 59), (8, 14)], 80, "", &(first.to_owned() + second)).replace("\"1.5bdp\"", "\"0.5bdp\"");
        let of = |seed| {
            let flows = run(&text, seed).flows;
            let first = flows[0].paths.first().map_or(flows[0].goodput_mbps, |path| path.goodput_mbps);
            first / flows[1].goodput_mbps
        };
        (1..=12).map(of).sum::<f64>() / 12.0
    };
    let (beside_cubic, beside_reno) = (ratio(&ours, &tcp("cubic")), ratio(&ours, &tcp("sack")));
    let cubics = ratio(&tcp("cubic"), &tcp("sack"));
    assert!((0.75..1.33).contains(&beside_cubic), "{beside_cubic} of a CUBIC");
    assert!(beside_reno < 1.2 * cubics, "{beside_reno} of a Reno, of which a CUBIC takes {cubics}");
}

/// There is nothing in a run but the scenario and the seed.
#[test]
fn the_same_seed_gives_the_same_run_and_another_another() {
    let flows =
        flow("f", "count = 3") + &flow("u", "inside = \"udp\"\nrate = \"1Mbit/s\"") + &flow("p", "inside = \"ping\"");
    let text = two_paths([(8, 20), (4, 30)], 6, "loss = 0.003", &flows);
    let (one, two, other) = (run(&text, 1), run(&text, 1), run(&text, 2));
    assert_eq!(one, two);
    assert_ne!(one.digest, other.digest);
}

/// At one bottleneck, two paths of what ships are about one TCP, as the goals of RFC 6356 §2 have it: two TCPs would get two
/// thirds.
#[test]
fn two_paths_through_one_bottleneck_are_one_tcp() {
    let text = |sinnet: &str| {
        let links = [
            ("b", "b1"),
            ("b1", "s"),
            ("b", "b2"),
            ("b2", "s"),
            ("r", "a1"),
            ("a1", "a"),
            ("r", "a2"),
            ("a2", "a"),
            ("c", "s"),
            ("r", "d"),
        ];
        let links = links.map(|(from, to)| fast_link(from, to, 1));
        format!(
            "name = \"shared\"\nduration = \"60s\"\nwarm_up = \"15s\"\n\
             [[link]]\nbetween = [\"s\", \"r\"]\nrate = \"10Mbit/s\"\ndelay = \"17ms\"\nqueue = \"1.5bdp\"\n{}\
             [[flow]]\nname = \"f\"\nfrom = \"b\"\nto = \"a\"\nprotocol = {sinnet}\n\
             paths = [[\"b\", \"b1\", \"s\", \"r\", \"a1\", \"a\"], [\"b\", \"b2\", \"s\", \"r\", \"a2\", \"a\"]]\n\
             [[flow]]\nname = \"tcp\"\nfrom = \"c\"\nto = \"d\"\nprotocol = \"tcp\"\nprofile = \"linux\"\ncongestion = \"reno\"\nstart = [\"1s\", \"2s\"]\n",
            links.concat()
        )
    };
    let factor = |protocol: &str| {
        let both = (1..=4).map(|seed| run(&text(protocol), seed));
        both.map(|result| result.flows[0].goodput_wire_mbps / result.flows[1].goodput_wire_mbps).sum::<f64>() / 4.0
    };
    let shipped = factor("\"sinnet\"");
    assert!((0.6..1.6).contains(&shipped), "{shipped}");
}

/// Likewise at a queue of five packets, where what hosts take for each packet varies by more than the queue does: what tells that there
/// is one queue is that both paths lose at the same times. Two CUBICs would have twice what one beside them has.
#[test]
fn two_paths_through_one_short_queue_are_one_tcp() {
    let links = [("b", "b1", 2), ("b1", "s", 0), ("b", "b2", 4), ("b2", "s", 0), ("c", "s", 1)];
    let links = links.map(|(from, to, delay)| fast_link(from, to, delay));
    let text = format!(
        "name = \"short\"\nduration = \"150s\"\nwarm_up = \"30s\"\nprocessing = \"wander\"\n\
         [[link]]\nbetween = [\"s\", \"a\"]\nrate = \"3.2Mbit/s\"\ndelay = \"35ms\"\nqueue = \"5p\"\n{}\
         [[flow]]\nname = \"f\"\nfrom = \"b\"\nto = \"a\"\nprotocol = \"sinnet\"\n\
         paths = [[\"b\", \"b1\", \"s\", \"a\"], [\"b\", \"b2\", \"s\", \"a\"]]\nstart = [\"0s\", \"1s\"]\n\
         [[flow]]\nname = \"tcp\"\nfrom = \"c\"\nto = \"a\"\nprotocol = \"tcp\"\nprofile = \"linux\"\n\
         congestion = \"cubic\"\nstart = [\"0s\", \"1s\"]\n",
        links.concat()
    );
    let factor = |seed| {
        let flows = run(&text, seed).flows;
        flows[0].throughput_mbps / flows[1].throughput_mbps
    };
    let factors: Vec<f64> = (1..=4).map(factor).collect();
    assert!(factors.iter().sum::<f64>() / 4.0 < 1.5, "{factors:?}");
}

/// Likewise where each flow has a queue of its own: three paths would have three times what the flow beside them has, if they all carried,
/// and a few packets in each round trip on those that rest would be half as much again.
#[test]
fn three_paths_through_a_fair_queue_are_one_tcp() {
    let ends = (0..3).flat_map(|path| [("b", path, path), ("a", path, 0)]);
    let links = ends.map(|(end, path, delay)| {
        let (way, router) = (format!("{end}{path}"), if end == "b" { "s" } else { "r" });
        fast_link(end, &way, 2 * delay) + &fast_link(&way, router, 0)
    });
    let paths = [0, 1, 2].map(|path| format!("[\"b\", \"b{path}\", \"s\", \"r\", \"a{path}\", \"a\"]"));
    let text = format!(
        "name = \"fair\"\nduration = \"150s\"\nwarm_up = \"30s\"\nprocessing = \"wander\"\n\
         [[link]]\nbetween = [\"s\", \"r\"]\nrate = \"4Mbit/s\"\ndelay = \"20ms\"\nqueue = {{ kind = \"fq_codel\", limit = \"100p\" }}\n\
         {}{}{}[[flow]]\nname = \"f\"\nfrom = \"b\"\nto = \"a\"\nprotocol = \"sinnet\"\npaths = [{}]\nstart = [\"0s\", \"1s\"]\n\
         [[flow]]\nname = \"tcp\"\nfrom = \"c\"\nto = \"d\"\nprotocol = \"tcp\"\nprofile = \"linux\"\n\
         congestion = \"cubic\"\nstart = [\"0s\", \"1s\"]\n",
        fast_link("c", "s", 2),
        fast_link("r", "d", 0),
        links.collect::<String>(),
        paths.join(", ")
    );
    let factor = |seed| {
        let flows = run(&text, seed).flows;
        flows[0].throughput_mbps / flows[1].throughput_mbps
    };
    let mut factors: Vec<f64> = (1..=5).map(factor).collect();
    factors.sort_by(f64::total_cmp);
    assert!(factors[2] < 1.2, "{factors:?}");
}

/// Of a file whose first path breaks in its midst all arrives, at the rate of the other path from then on.
#[test]
fn a_path_that_dies_takes_nothing_along() {
    let change = "[[link.change]]\nat = \"4s\"\ndown = true\n";
    let text = two_paths([(8, 20), (4, 30)], 40, change, &flow("f", "amount = \"10MB\""));
    let text = text.replace("warm_up = \"10s\"", "");
    let result = run(&text, 1);
    let flow = &result.flows[0];
    assert!(flow.completed, "{flow:?}");
    let sent = 4.0 * 12.0 + (flow.end_s - 4.0) * 4.0;
    let part = 80.0 / (sent * PART);
    assert!(part > 0.88 && part <= 1.0, "{part} {flow:?}");
    assert_eq!((flow.paths[0].closings, flow.paths[1].closings), (1, 0));
    // What was in flight on it went on the other, and TCP inside did not hear of it.
    assert!(flow.paths[1].retransmissions > 10, "{flow:?}");
    assert_eq!(flow.timeouts, 0, "{flow:?}");
    // It comes back.
    let text = text.replace("down = true\n", "down = true\n[[link.change]]\nat = \"7s\"\nup = true\n");
    let again = run(&text, 1);
    assert!(again.flows[0].end_s < flow.end_s - 3.0, "{} {}", again.flows[0].end_s, flow.end_s);
}

/// UDP below the sum of the paths loses nothing, and an echo takes the delays of a path and hardly more.
#[test]
fn datagrams_and_echoes_travel_inside() {
    let flows =
        flow("u", "inside = \"udp\"\nrate = \"10Mbit/s\"\npacket_size = 1280") + &flow("p", "inside = \"ping\"");
    let result = run(&two_paths([(8, 20), (4, 20)], 12, "", &flows), 1);
    let [udp, ping] = result.flows.as_slice() else { panic!() };
    assert_eq!(udp.losses, 0);
    assert!((udp.goodput_wire_mbps - 10.0).abs() < 0.05, "{udp:?}");
    assert!(udp.paths.iter().all(|path| path.goodput_mbps > 1.0), "{udp:?}");
    // 20 a second after 3 s.
    assert!(ping.rtt.samples > 170 && ping.delivered > 170, "{ping:?}");
    assert!(ping.rtt.min >= 42.0 && ping.rtt.p50 < 60.0, "{ping:?}");
}

/// What flows share: one association between two hosts, or each its own. A thousand of these get the same.
#[test]
fn a_thousand_associations_get_the_same() {
    let keys = "count = 1000\nassociation = \"own\"\nstart = [\"0s\", \"1s\"]";
    let text = two_paths([(150, 10), (150, 10)], 4, "", &flow("f", keys));
    let plan = simulator::plan(&scenario::parse(&text, "many.toml").unwrap(), 1).unwrap();
    assert_eq!((plan.flows.len(), plan.associations.len()), (1000, 1000));
    let result = run(&text, 1);
    let rates: Vec<f64> = result.flows.iter().map(|flow: &FlowResult| flow.goodput_mbps).collect();
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(sum, squares), rate| (sum + rate, squares + rate * rate));
    assert!(sum > 0.8 * PART * 300.0, "{sum}");
    // R. Jain and others, 1984.
    assert!(sum * sum / (1000.0 * squares) > 0.7, "{}", sum * sum / (1000.0 * squares));
    let shared = text.replace("association = \"own\"", "");
    let plan = simulator::plan(&scenario::parse(&shared, "one.toml").unwrap(), 1).unwrap();
    assert_eq!((plan.flows.len(), plan.associations.len()), (1000, 1));
}

/// A program that sends four times what the links carry and asks nothing of anybody: it gets what the download beside it gets, for
/// queues are fair; an echo waits for the queues of the links and not behind it, and the TCP of others has what it has without.
#[test]
fn who_floods_gets_his_part_and_no_more() {
    let beside = "[[link]]\nbetween = [\"c\", \"b\"]\ndelay = \"1ms\"\n[[flow]]\nname = \"tcp\"\nfrom = \"c\"\nto = \"r0\"\n\
                  protocol = \"tcp\"\nprofile = \"linux\"\ncongestion = \"reno\"\npaths = [[\"c\", \"b\", \"r0\"]]\nstart = [\"0s\", \"1s\"]\n";
    let usual = flow("d", "") + &flow("p", "inside = \"ping\"");
    let flood = flow("u", "inside = \"udp\"\nrate = \"48Mbit/s\"\npacket_size = 1280");
    let runs = |flows: &str| {
        let text = two_paths([(8, 29), (4, 29)], 40, "", &format!("{flows}{beside}"));
        [1, 2, 3].map(|seed| run(&text, seed))
    };
    let mean = |runs: &[RunResult; 3], name: &str, of: fn(&FlowResult) -> f64| {
        let found = runs.iter().flat_map(|result| &result.flows).filter(|flow| flow.name == name);
        found.map(of).sum::<f64>() / 3.0
    };
    let (before, flooded) = (runs(&usual), runs(&format!("{usual}{flood}")));
    let rate = |runs, name| mean(runs, name, |flow| flow.goodput_wire_mbps);
    let share = rate(&flooded, "u") / rate(&flooded, "d");
    assert!((0.9..1.1).contains(&share), "{share}");
    // The two delays and a full queue of one and a half of them.
    let echo = mean(&flooded, "p", |flow| flow.rtt.p99);
    assert!(echo > 60.0 && echo < 2.5 * 60.0 + 10.0, "{echo}");
    let [before, after] = [&before, &flooded].map(|runs| rate(runs, "tcp"));
    assert!(after > 0.8 * before, "{before} {after}");
}

/// Five hundred connections that open at the same instant: what opens them takes turns. In one burst
/// most of it would be lost, and come again at the same second, each time.
#[test]
fn a_crowd_opens_its_connections() {
    let flows = flow("f", "count = 500\namount = \"8kB\"");
    let result = run(&two_paths([(8, 29), (4, 29)], 40, "", &flows), 1);
    let completed = result.flows.iter().filter(|flow| flow.completed).count();
    let half = result.flows.iter().filter(|flow| flow.completed && flow.end_s < 6.0).count();
    assert!(completed == 500 && half > 250, "{completed} of 500, {half} within twice what the links need");
}

/// What is marked on the way is marked for the TCP inside (RFC 6040).
#[test]
fn marks_reach_the_tcp_inside() {
    let text = two_paths([(8, 20), (4, 20)], 8, "", &flow("f", "ecn = true"))
        .replace("\"1.5bdp\"", "{ kind = \"codel\", ecn = true }");
    let result = run(&text, 1);
    assert!(result.links.iter().any(|link| link.marked > 0));
    assert!(result.flows[0].marked > 0, "{:?}", result.flows[0]);
}

#[test]
fn what_does_not_fit_is_told_with_its_place() {
    let told = |flows: &str, settings: &[&str]| {
        let mut document = Document::parse(&two_paths([(8, 20), (4, 20)], 8, "", flows), "x.toml").unwrap();
        settings.iter().for_each(|setting| document.set(setting).unwrap());
        let scenario = document.scenario().unwrap_or_else(|error| panic!("{error}"));
        simulator::plan(&scenario, 1).map(drop).unwrap_err().to_string()
    };
    let two = flow("f", "") + &flow("g", "packet_size = 1400");
    for (error, sentence) in [
        (told(&two, &[]), "the same `packet_size`"),
        (told(&(flow("f", "") + &flow("g", "scheduler = \"ecf\"")), &[]), "the same `scheduler`"),
        (told(&(flow("f", "") + &flow("g", "path_congestion = \"lia\"")), &[]), "the same `path_congestion`"),
        (told(&(flow("f", "rates = \"configured\"") + &flow("g", "")), &[]), "the same `rates`"),
        (told(&flow("f", "packet_size = 150"), &[]), "leave no room"),
        (told(&flow("f", "inside = \"udp\"\nrate = \"1Mbit/s\"\npacket_size = 1490"), &[]), "does not fit"),
        (told(&flow("f", ""), &["flow.f.congestion=lia"]), "couples paths"),
        (told(&flow("f", ""), &["flow.f.scheduler=blets"]), "did you mean \"blest\"?"),
        (told(&flow("f", "rates = \"configured\""), &["flow.f.scheduler=blest"]), "\"blest\" needs windows"),
        (told(&flow("f", "rates = \"configured\""), &["flow.f.path_congestion=lia"]), "have no windows"),
        (told(&flow("f", ""), &["flow.f.path_congestion=reno-sp"]), "no congestion control of"),
    ] {
        assert!(error.contains(sentence), "{error}");
    }
    let scenario = scenario::parse(&two_paths([(8, 20), (4, 20)], 8, "", &flow("f", "")), "x.toml").unwrap();
    assert_eq!(scenario.check_for(Engine::Lab), Ok(()));
    assert_eq!(scenario.check_for(Engine::Sim), Ok(()));
}
