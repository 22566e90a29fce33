//! The search over models of paths.

use super::*;
use proptest::prelude::*;

const RTT: Duration = Duration::from_millis(40);

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A path whose MTU is what `mtu` says at a time, and which loses packets of a round where `loses` says so.
struct Model<'a> {
    search: PathMtu,
    mtu: &'a dyn Fn(Instant) -> u16,
    loses: &'a mut dyn FnMut() -> bool,
    /// When an answer comes, to which probe, and whether that is a control, with the path's MTU when it left.
    under_way: VecDeque<(Instant, u64, Option<u16>)>,
    nonce: u64,
    now: Instant,
    probes: usize,
    largest: u16,
    /// Controls that were answered since the MTU was another: only they say that larger probes should have come.
    heard: (u16, u8),
    /// The largest MTU so far.
    widest: u16,
}

impl<'a> Model<'a> {
    fn new(search: PathMtu, mtu: &'a dyn Fn(Instant) -> u16, loses: &'a mut dyn FnMut() -> bool) -> Self {
        let (under_way, now) = (VecDeque::new(), Instant::ZERO);
        Self { search, mtu, loses, under_way, nonce: 0, now, probes: 0, largest: 0, heard: (0, 0), widest: 0 }
    }

    /// Runs until `end`.
    fn run(&mut self, end: Instant) {
        while self.now < end {
            let next = self.search.poll_timeout().min(self.under_way.front().map_or(end, |(due, ..)| *due)).min(end);
            self.now = self.now.max(next);
            while let Some((_, nonce, control)) = self.under_way.pop_front_if(|(due, ..)| *due <= self.now) {
                self.search.answered(self.now, nonce);
                if let Some(mtu) = control {
                    let before = if self.heard.0 == mtu { self.heard.1 } else { 0 };
                    self.heard = (mtu, before.saturating_add(1));
                }
            }
            let mtu = (self.mtu)(self.now);
            self.widest = self.widest.max(mtu);
            let probes = self.search.handle_timeout(self.now, Some(RTT));
            if !probes.is_empty() {
                self.check(mtu);
            }
            for Probe { size } in probes {
                self.nonce += 1;
                self.probes += usize::from(size > 0);
                self.largest = self.largest.max(size);
                self.search.sent(self.nonce, size);
                if size <= mtu && !(self.loses)() {
                    self.under_way.push_back((self.now + RTT, self.nonce, (size == 0).then_some(mtu)));
                }
            }
            assert!(self.search.poll_timeout() > self.now, "{:?}", self.search);
            assert!(self.search.plpmtu().is_none_or(|found| found <= self.widest), "{:?}", self.search);
        }
    }

    /// What is said to pass passes, once as many rounds were answered as a doubt needs.
    fn check(&self, mtu: u16) {
        let is_known = self.heard.0 == mtu && self.heard.1 >= MAX_PROBES;
        let found = self.search.plpmtu().filter(|_| is_known);
        assert!(found.is_none_or(|found| found <= mtu), "{found:?} of {mtu} at {:?}", self.now);
    }
}

fn begun(most: u16, overhead: Overhead) -> PathMtu {
    let mut search = PathMtu::new(most, overhead);
    assert_eq!((search.phase(), search.plpmtu(), search.limit()), (MtuPhase::Disabled, None, search.most()));
    search.begin(Instant::ZERO);
    search
}

proptest! {
    /// RFC 8899 §5.3.2: the search ends, never above the path's MTU, and below by no more than the granularity, or what
    /// padding makes of it; with fewer probes than a division into halves with MAX_PROBES tries each would take.
    #[test]
    fn the_search_ends_right_below_the_mtu(
        mtu in MIN_PLPMTU..=1600,
        most in MIN_PLPMTU..=1600,
        overhead in prop::sample::select(vec![Overhead::default(), Overhead::AES_GCM_IN_UDP, Overhead::AES_CBC_IN_UDP]),
    ) {
        let true_mtu = |_| mtu;
        let mut never = || false;
        let mut model = Model::new(begun(most, overhead), &true_mtu, &mut never);
        model.run(at(2_000));
        let found = model.search.plpmtu();
        let granularity = GRANULARITY.max(overhead.alignment as u16);
        if fit(overhead, mtu.min(most)) > fit(overhead, MIN_PLPMTU) + granularity {
            let found = found.unwrap();
            prop_assert!(found <= mtu.min(most) && found + granularity + overhead.alignment as u16 > mtu.min(most), "{found}");
            prop_assert_eq!(model.search.phase(), MtuPhase::Complete);
        }
        prop_assert!(model.probes <= 40, "{} probes", model.probes);
        prop_assert!(model.largest <= most);
    }

    /// The MTU changes in the middle, to anything: a path that carries less is found out once large packets are lost, one
    /// that carries more when it is looked for again. Lost probes alone never make more of it than it is. A minute is ten
    /// rounds even when the control of each is lost.
    #[test]
    fn a_change_is_found(before in 700u16..=1500, after in 700u16..=1500, seed: u64, loss in 0u64..20) {
        let (change, end) = (at(60_000), at(120_000));
        let mtu = |now: Instant| if now < change { before } else { after };
        let mut rng = clock::Rng::from_seed(seed);
        let mut loses = || rng.below(100) < loss;
        let mut model = Model::new(begun(1500, Overhead::default()), &mtu, &mut loses);
        model.run(change);
        let found = model.search.plpmtu().unwrap();
        prop_assert!(found <= before);
        // RFC 8899 §4.3: packets of the size in use are lost, smaller ones arrive.
        model.search.suspect(model.now);
        model.run(end);
        prop_assert!(model.search.plpmtu().is_none_or(|now| now <= after), "{:?}", model.search);
        if loss == 0 {
            prop_assert_eq!(model.search.counts().black_holes, u64::from(found > after));
            if found > after {
                let now = model.search.plpmtu().unwrap();
                prop_assert!(now + GRANULARITY >= after, "{now} of {after}");
            } else {
                prop_assert_eq!(model.search.plpmtu(), Some(found));
            }
            model.run(end + RAISE_AFTER + RTT * 20);
            let raised = model.search.plpmtu().unwrap();
            prop_assert!(raised <= after && raised + GRANULARITY >= after, "{raised} of {after}");
        }
    }
}

/// A link as Ethernet has it is known after one round trip, one of a usual tunnel after two.
#[test]
fn usual_links_are_found_at_once() {
    for (mtu, exact_after, settled_after) in [(1500, 60, 60), (1492, 210, 400), (1400, 110, 400), (1280, 110, 400)] {
        let true_mtu = |_| mtu;
        let mut never = || false;
        let mut model = Model::new(begun(1500, Overhead::default()), &true_mtu, &mut never);
        model.run(at(exact_after));
        assert_eq!(model.search.plpmtu(), Some(mtu));
        model.run(at(settled_after));
        assert_eq!((model.search.plpmtu(), model.search.phase()), (Some(mtu), MtuPhase::Complete), "{mtu}");
    }
}

/// RFC 8899 §5.2: the states, and what brings one into the next.
#[test]
fn the_states_follow_each_other() {
    let small = |_| 1000;
    let mut never = || false;
    let mut model = Model::new(begun(1500, Overhead::default()), &small, &mut never);
    assert_eq!(model.search.phase(), MtuPhase::Base);
    // BASE_PLPMTU fails MAX_PROBES times: Error, and a smaller one is looked for meanwhile.
    model.run(at(160));
    assert!(model.search.plpmtu().is_some_and(|found| (900..=1000).contains(&found)), "{:?}", model.search);
    model.run(at(1_000));
    assert_eq!(model.search.phase(), MtuPhase::Complete);
    assert!((993..=1000).contains(&model.search.plpmtu().unwrap()));
    // The interface is said to take less, and more again.
    model.search.set_most(model.now, 800);
    assert_eq!(model.search.plpmtu(), Some(800));
    model.run(at(1_500));
    assert_eq!((model.search.phase(), model.search.upper()), (MtuPhase::Complete, 800));
    model.search.set_most(model.now, 1500);
    assert_eq!(model.search.phase(), MtuPhase::Search);
    model.run(at(3_000));
    assert!((993..=1000).contains(&model.search.plpmtu().unwrap()));
    // Another way: nothing is known of it.
    model.search.restart(model.now);
    assert_eq!((model.search.phase(), model.search.plpmtu(), model.search.limit()), (MtuPhase::Base, None, 1500));
}

/// An outage is no sign of a size: nothing is concluded while small packets are lost, too.
#[test]
fn a_dead_path_is_not_a_narrow_one() {
    let outage = |now: Instant| if (at(30)..at(20_000)).contains(&now) { 0_u16 } else { 1500 };
    let lost = |now: Instant| if now < at(20_000) { 0_u16 } else { 1500 };
    for mtu in [&outage as &dyn Fn(Instant) -> u16, &lost] {
        let mut search = begun(1500, Overhead::default());
        let (mut now, mut nonce, mut replies) = (Instant::ZERO, 0, VecDeque::new());
        while now < at(40_000) {
            now =
                search.poll_timeout().min(replies.front().map_or(Instant::FAR_FUTURE, |(due, _)| *due)).min(at(40_000));
            while let Some((_, nonce)) = replies.pop_front_if(|(due, _)| *due <= now) {
                search.answered(now, nonce);
            }
            for Probe { size } in search.handle_timeout(now, None) {
                nonce += 1;
                search.sent(nonce, size);
                if size.max(64) <= mtu(now) {
                    replies.push_back((now + RTT, nonce));
                }
            }
        }
        assert_eq!((search.plpmtu(), search.phase(), search.counts().black_holes), (Some(1500), MtuPhase::Complete, 0));
    }
}

/// A peer that answers small heartbeats and no padded ones is sent to as if there were no probes, and is asked seldom.
#[test]
fn who_does_not_answer_probes_is_left_alone() {
    let none = |_| 0;
    let mut search = begun(1500, Overhead::default());
    let (mut now, mut nonce) = (Instant::ZERO, 0);
    while now < at(600_000) {
        now = search.poll_timeout();
        let probes = search.handle_timeout(now, Some(RTT));
        for Probe { size } in probes {
            nonce += 1;
            search.sent(nonce, size);
            if size <= none(now) {
                search.answered(now + RTT, nonce);
            }
        }
    }
    assert_eq!((search.plpmtu(), search.limit(), search.phase() == MtuPhase::Complete), (None, 1500, false));
    assert!(search.counts().probes < 500, "{}", search.counts().probes);
}

fn report(highest: u32, ranges: &[(u32, u32)]) -> Report {
    Report { highest, ranges: ranges.to_vec(), ..Report::default() }
}

/// RFC 8899 §4.3: large packets lost in a row while small ones arrive are a suspicion, single losses are none, and a probe
/// that is answered ends it without a change.
#[test]
fn large_packets_lost_in_a_row_are_a_suspicion() {
    let wide = |_| 1500;
    let mut never = || false;
    let mut model = Model::new(begun(1500, Overhead::default()), &wide, &mut never);
    model.run(at(1_000));
    let before = model.search.counts().probes;
    // Every other is lost.
    for number in 1..=40 {
        model.search.on_sent(number, 1450);
    }
    let odd: Vec<_> = (1..=40).rev().filter(|number| number % 2 == 1).map(|number| (number, number)).collect();
    model.search.on_report(model.now, &report(39, &odd));
    model.run(at(1_100));
    assert_eq!(model.search.counts().probes, before);
    // None arrives, and small ones do.
    for number in 41..=60 {
        model.search.on_sent(number, if number % 10 == 0 { 100 } else { 1450 });
    }
    model.search.on_report(model.now, &report(60, &[(60, 60), (50, 50), (39, 39)]));
    model.run(at(3_000));
    assert!(model.search.counts().probes > before);
    let counts = model.search.counts();
    assert_eq!((model.search.plpmtu(), counts.black_holes, model.search.phase()), (Some(1500), 0, MtuPhase::Complete));
}

/// Reports are another host's: whatever they say, nothing is made of it but a question.
#[test]
fn no_report_changes_a_size() {
    let wide = |_| 1500;
    let mut never = || false;
    let mut model = Model::new(begun(1500, Overhead::default()), &wide, &mut never);
    model.run(at(1_000));
    for number in 1..2_000 {
        model.search.on_sent(number, 1500);
        model.search.on_report(model.now, &report(u32::MAX, &[(u32::MAX, u32::MAX), (number % 7, number % 5)]));
        model.run(model.now + Duration::from_millis(10));
        assert_eq!(model.search.plpmtu(), Some(1500));
    }
    assert_eq!(model.search.counts().black_holes, 0);
}
