//! Whether a path is alive, and its round-trip time: a question to the peer at intervals, which it answers on
//! the same path.

use clock::{Duration, Instant};
use recovery::RttEstimator;
use std::collections::VecDeque;

/// Between heartbeats while there is traffic.
const BUSY_INTERVAL: Duration = Duration::from_millis(150);
/// Between heartbeats without traffic, as long as they are answered.
const IDLE_INTERVAL: Duration = Duration::from_secs(2);
/// Between heartbeats that only keep NATs from forgetting the path, where it stands by or all are silent: the keepalive of ICE
/// (RFC 8445 §11, RFC 9028 §4.10).
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Between heartbeats on a dead path.
const DEAD_INTERVAL: Duration = Duration::from_millis(500);
/// Without a packet for so long, there is no traffic.
const IDLE_AFTER: Duration = Duration::from_secs(1);
/// And without one for so long nobody waits for any. What happens to the path then is found out once somebody does.
const QUIET_AFTER: Duration = Duration::from_secs(60);
/// A path is dead when so many heartbeats in a row are not answered...
const MISSED: usize = 4;
/// ... and the first of them is so old, or four round-trip times.
const PATIENCE: Duration = Duration::from_millis(600);

/// What became known about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It does not answer any more.
    Died,
    /// It answers again.
    Revived,
}

/// The heartbeats of one path. Its owner sends them, each with a nonce, and tells of answers.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    alive: bool,
    rtt: RttEstimator,
    next_at: Instant,
    last_traffic: Instant,
    /// The path carries nothing while others do, whatever the traffic.
    standby: bool,
    /// The peer may have forgotten the association; an answer shows that it has not.
    doubted: bool,
    dead_since: Option<Instant>,
    answered_at: Instant,
    /// When what the path carries was acknowledged last.
    delivered_at: Instant,
    /// When the heartbeat was sent that was answered last.
    asked_at: Option<Instant>,
    /// Sent since the last one that was answered, oldest first.
    unanswered: VecDeque<(u64, Instant)>,
}

impl Heartbeat {
    /// A path that has just been verified; the first heartbeat is due.
    pub fn new(now: Instant) -> Self {
        Self {
            alive: true,
            rtt: RttEstimator::default(),
            next_at: now,
            last_traffic: now,
            standby: false,
            doubted: false,
            dead_since: None,
            answered_at: Instant::ZERO,
            delivered_at: Instant::ZERO,
            asked_at: None,
            unanswered: VecDeque::new(),
        }
    }

    /// Whether the path answers.
    pub fn is_alive(&self) -> bool {
        self.alive
    }

    /// The path has been found dead by other signs: the next heartbeat is due at once.
    pub fn kill(&mut self, now: Instant) {
        self.alive = false;
        self.dead_since = Some(now);
        self.next_at = self.next_at.min(now);
    }

    /// A heartbeat is due at once: something may have got lost.
    pub fn hurry(&mut self, now: Instant) {
        self.next_at = self.next_at.min(now);
    }

    /// Whether there is a peer is to be known soon: heartbeats are as frequent as on a busy path until one is answered.
    pub fn doubt(&mut self, now: Instant) {
        self.doubted = true;
        self.hurry(now);
    }

    /// Whether the path stands by. Once it does not, it is asked at once.
    pub fn set_standby(&mut self, now: Instant, standby: bool) {
        if std::mem::replace(&mut self.standby, standby) && !standby {
            self.hurry(now);
        }
    }

    /// The clock has jumped: answers to what was sent before tell nothing, nor does their absence.
    pub fn slept(&mut self, now: Instant) {
        self.unanswered.clear();
        self.next_at = self.next_at.min(now);
    }

    /// Whether a heartbeat that was sent at this time or later was answered.
    pub fn has_answered_since(&self, at: Instant) -> bool {
        self.asked_at.is_some_and(|asked| asked >= at)
    }

    /// Since when the path has not answered, if it does not.
    pub fn dead_since(&self) -> Option<Instant> {
        self.dead_since.filter(|_| !self.alive)
    }

    /// The path leads to the same host in another way: what was sent before tells nothing, and it is alive.
    pub fn moved(&mut self, now: Instant) -> Option<Change> {
        self.slept(now);
        let revived = !self.alive;
        self.alive = true;
        revived.then_some(Change::Revived)
    }

    /// When the peer is known to have received something on the path last. While it does the path is not dead: heartbeats stand
    /// in the same queue, and are late when a rate falls.
    pub fn delivered(&mut self, at: Instant) {
        self.delivered_at = self.delivered_at.max(at);
    }

    /// When the last answer came.
    pub fn answered_at(&self) -> Instant {
        self.answered_at
    }

    /// The path's round-trip times.
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// A packet was sent or received on the association.
    pub fn traffic(&mut self, now: Instant) {
        if self.is_idle(now) && !self.standby {
            self.next_at = self.next_at.min(now);
        }
        self.last_traffic = now;
    }

    /// When the next heartbeat is due.
    pub fn poll_timeout(&self) -> Instant {
        self.next_at
    }

    /// If a heartbeat is due: whether the path has died by now. It has to carry `nonce`, which nobody can guess: who has
    /// not received a heartbeat cannot answer it.
    pub fn handle_timeout(&mut self, now: Instant, nonce: u64) -> Option<Option<Change>> {
        if self.next_at > now {
            return None;
        }
        let died = self.alive && self.is_silent(now);
        if died {
            self.alive = false;
            self.dead_since = Some(now);
        }
        if self.unanswered.len() > MISSED {
            // The first one stays: since then there has been silence.
            self.unanswered.remove(1);
        }
        self.unanswered.push_back((nonce, now));
        let interval = match (self.alive, self.is_idle(now)) {
            _ if self.doubted => BUSY_INTERVAL,
            (false, _) => DEAD_INTERVAL,
            // A peer that was killed is found out by heartbeats alone: only an answer makes them rare.
            (true, true) => BUSY_INTERVAL.max(self.rtt.srtt().unwrap_or_default() * 2),
            (true, false) => BUSY_INTERVAL,
        };
        self.next_at = now + interval;
        Some(died.then_some(Change::Died))
    }

    /// Whether this is the nonce of a heartbeat that may still be answered.
    pub fn is_asked(&self, nonce: u64) -> bool {
        self.unanswered.iter().any(|(sent, _)| *sent == nonce)
    }

    /// An answer came.
    pub fn answered(&mut self, now: Instant, nonce: u64) -> Option<Change> {
        let index = self.unanswered.iter().position(|(sent, _)| *sent == nonce)?;
        // Paths are FIFOs: what was sent before it and is not answered is lost.
        let (_, sent_at) = self.unanswered.drain(..=index).next_back()?;
        self.rtt.sample(now - sent_at);
        self.answered_at = now;
        self.asked_at = Some(sent_at);
        self.doubted = false;
        let revived = !self.alive;
        self.alive = true;
        if self.is_idle(now) && self.unanswered.is_empty() {
            let is_quiet = self.standby || now - self.last_traffic >= QUIET_AFTER;
            let interval = if is_quiet { KEEPALIVE_INTERVAL } else { IDLE_INTERVAL };
            self.next_at = self.next_at.max(sent_at + interval);
        }
        revived.then_some(Change::Revived)
    }

    /// For how long the path has given no sign of life since it was asked for one.
    pub fn silent_for(&self, now: Instant) -> Duration {
        let asked = self.unanswered.front().map(|(_, at)| now.saturating_since((*at).max(self.delivered_at)));
        asked.unwrap_or_default()
    }

    fn is_idle(&self, now: Instant) -> bool {
        self.standby || now - self.last_traffic >= IDLE_AFTER
    }

    fn is_silent(&self, now: Instant) -> bool {
        let patience = PATIENCE.max(self.rtt.srtt().unwrap_or_default() * 4);
        self.unanswered.len() >= MISSED && self.silent_for(now) >= patience
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Runs heartbeats with traffic until `end`, answering after `rtt` those for which `answers` says so; when the
    /// path died and revived.
    fn run(rtt: u64, end: u64, answers: impl Fn(u64) -> bool) -> Vec<(u64, Change)> {
        let mut heartbeat = Heartbeat::new(ms(0));
        let mut replies = VecDeque::new();
        let mut changes = Vec::new();
        for at in 0..end {
            heartbeat.traffic(ms(at));
            while let Some((nonce, _)) = replies.front().copied().filter(|(_, due)| *due <= at) {
                replies.pop_front();
                changes.extend(heartbeat.answered(ms(at), nonce).map(|change| (at, change)));
            }
            if let Some(change) = heartbeat.handle_timeout(ms(at), at) {
                changes.extend(change.map(|change| (at, change)));
                if answers(at) {
                    replies.push_back((at, at + rtt));
                }
            }
            assert!(heartbeat.poll_timeout() > ms(at));
        }
        changes
    }

    #[test]
    fn a_path_that_answers_lives() {
        assert_eq!(run(60, 5_000, |_| true), []);
        // An answer that takes longer than heartbeats are apart, and one in four lost.
        assert_eq!(run(700, 5_000, |_| true), [(600, Change::Died), (700, Change::Revived)]);
        assert_eq!(run(100, 5_000, |at| at / 150 % 4 != 0), []);
    }

    /// A rate falls to a tenth: answers come after ten times as long, those of what was sent before as well.
    #[test]
    fn a_path_whose_packets_arrive_is_alive_however_late_its_answers_are() {
        let (mut heartbeat, mut replies, mut died) = (Heartbeat::new(ms(0)), VecDeque::new(), None);
        for at in 0..8_000 {
            heartbeat.traffic(ms(at));
            if at < 5_000 {
                heartbeat.delivered(ms(at));
            }
            while let Some((nonce, _)) = replies.front().copied().filter(|(_, due)| *due <= at) {
                replies.pop_front();
                heartbeat.answered(ms(at), nonce);
            }
            if let Some(change) = heartbeat.handle_timeout(ms(at), at) {
                died = died.or(change.map(|_| at));
                let rtt = if at < 1_000 { 100 } else { 1_000 };
                if at + rtt < 5_000 {
                    replies.push_back((at, at + rtt));
                }
            }
        }
        // Four round trips after the last sign of life.
        assert!(died.is_some_and(|died| (5_500..9_200).contains(&died)), "{died:?}");
    }

    #[test]
    fn a_silent_path_dies_within_a_second_and_an_answer_revives_it() {
        let changes = run(60, 5_000, |at| !(1_000..3_000).contains(&at));
        assert!(
            matches!(changes[..], [(died, Change::Died), (revived, Change::Revived)]
            if (1_600..2_000).contains(&died) && (3_000..3_600).contains(&revived)),
            "{changes:?}"
        );
    }

    /// Traffic ends with the peer; nothing but heartbeats can find out.
    #[test]
    fn a_peer_that_falls_silent_is_asked_until_it_is_dead_however_idle_the_path() {
        for ended in (0..2_000).step_by(50) {
            let (mut heartbeat, mut died, mut asked) = (Heartbeat::new(ms(0)), None, Vec::new());
            for at in 0..8_000 {
                if at < 1_000 {
                    heartbeat.traffic(ms(at));
                }
                if let Some(change) = heartbeat.handle_timeout(ms(at), at) {
                    asked.push(at);
                    died = died.or(change.map(|_| at));
                    if at < ended {
                        heartbeat.answered(ms(at), at);
                    }
                }
            }
            let first = asked.iter().find(|at| **at >= ended).unwrap();
            assert!(died.is_some_and(|died| died < first + 1_000), "ended at {ended}, dead at {died:?}: {asked:?}");
        }
    }

    #[test]
    fn a_long_path_without_traffic_stays_quiet() {
        let mut heartbeat = Heartbeat::new(ms(0));
        let (mut replies, mut asked) = (VecDeque::new(), 0);
        for at in 0..60_000 {
            if at < 5_000 {
                heartbeat.traffic(ms(at));
            }
            while let Some((nonce, _)) = replies.front().copied().filter(|(_, due)| *due <= at) {
                replies.pop_front();
                heartbeat.answered(ms(at), nonce);
            }
            if heartbeat.handle_timeout(ms(at), at).is_some() {
                replies.push_back((at, at + 700));
                asked += u32::from(at >= 10_000);
            }
        }
        assert_eq!(asked, 25);
    }

    /// Four questions a minute, however busy the others are; and at once when it is needed, or silent.
    #[test]
    fn a_path_that_stands_by_is_asked_seldom_and_found_dead_all_the_same() {
        let (mut heartbeat, mut asked, mut died) = (Heartbeat::new(ms(0)), Vec::new(), None);
        heartbeat.set_standby(ms(0), true);
        for at in 0..200_000 {
            heartbeat.traffic(ms(at));
            if at == 70_000 || at == 70_001 {
                heartbeat.set_standby(ms(at), at != 70_000);
            }
            if let Some(change) = heartbeat.handle_timeout(ms(at), at) {
                asked.push(at);
                died = died.or(change.map(|_| at));
                if at < 120_000 {
                    heartbeat.answered(ms(at), at);
                }
            }
        }
        let early: Vec<_> = asked.iter().copied().take_while(|at| *at <= 120_000).collect();
        let seldom = [0, 15_000, 30_000, 45_000, 60_000, 70_000, 70_150, 85_150, 100_150, 115_150];
        assert_eq!(early, seldom);
        assert!(died.is_some_and(|died| (130_000..131_000).contains(&died)), "{died:?}");
    }

    /// After a minute four questions a minute; with the first packet as many as on any busy path.
    #[test]
    fn a_path_without_traffic_is_asked_seldom_and_at_once_when_there_is_some() {
        for (dies, begins) in [(300_000, 310_000), (299_000, 309_999), (400_000, 300_000)] {
            let (mut heartbeat, mut asked, mut died) = (Heartbeat::new(ms(0)), Vec::new(), None);
            for at in 0..begins + 5_000 {
                if at < 1_000 || at >= begins {
                    heartbeat.traffic(ms(at));
                }
                if let Some(change) = heartbeat.handle_timeout(ms(at), at) {
                    asked.push(at);
                    died = died.or(change.map(|_| at));
                    if at < dies {
                        heartbeat.answered(ms(at), at);
                    }
                }
            }
            let within = |from: u64, to: u64| asked.iter().filter(|at| (from..to).contains(at)).count();
            // RFC 8445 §11: at least every 15 seconds; and no more while all is well.
            assert_eq!([within(10_000, 60_000), within(120_000, 180_000), within(180_000, 240_000)], [25, 4, 4]);
            assert!(asked.contains(&begins), "{asked:?}");
            if dies < begins {
                assert!(died.is_some_and(|died| died < begins + 700), "{died:?}");
            } else {
                assert_eq!((died, within(begins, begins + 3_000)), (None, 20));
            }
        }
    }

    #[test]
    fn round_trip_times_are_those_of_the_answers() {
        let (mut heartbeat, nonce) = (Heartbeat::new(ms(0)), 0x7aa5_1234_5678_9abc);
        assert_eq!(heartbeat.handle_timeout(ms(0), nonce), Some(None));
        assert_eq!(heartbeat.answered(ms(1), nonce + 1), None);
        assert_eq!(heartbeat.rtt().srtt(), None);
        heartbeat.answered(ms(60), nonce);
        assert_eq!(heartbeat.rtt().srtt(), Some(Duration::from_millis(60)));
        heartbeat.answered(ms(90), nonce);
        assert_eq!(heartbeat.rtt().srtt(), Some(Duration::from_millis(60)));
    }
}
