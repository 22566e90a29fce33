use super::*;
use hickory_proto::op::Message;
use hickory_proto::rr::{Name, RecordType};
use proptest::prelude::*;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng as _;

fn server(last: u8) -> SocketAddr {
    SocketAddr::new([192, 0, 2, last].into(), 53)
}

fn question(name: &str) -> Vec<u8> {
    let mut message = Message::query();
    message.add_query(Query::query(Name::from_ascii(name).expect("a name"), RecordType::A));
    message.to_vec().expect("a question")
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// The answer to a question, with what is to be different about it.
fn answer(ask: &Ask, change: impl FnOnce(&mut Message)) -> Vec<u8> {
    let mut message = Message::from_vec(&ask.message).expect("a question");
    message.metadata.message_type = MessageType::Response;
    change(&mut message);
    message.to_vec().expect("an answer")
}

struct Net {
    upstreams: Upstreams,
    random: ChaCha20Rng,
}

impl Net {
    fn of(servers: &[u8]) -> Self {
        let servers = servers.iter().map(|last| server(*last)).collect();
        Self { upstreams: Upstreams::new(servers), random: ChaCha20Rng::seed_from_u64(1) }
    }

    fn ask(&mut self, now: Instant, name: &str, whole: bool) -> Option<u64> {
        self.upstreams.ask(now, &mut self.random, question(name), Transport::Udp, whole)
    }

    fn one(&mut self) -> Ask {
        let ask = self.upstreams.poll_ask().expect("a question");
        assert_eq!(self.upstreams.poll_ask(), None);
        ask
    }

    fn hear(&mut self, now: Instant, ask: &Ask, from: SocketAddr, message: &[u8]) {
        self.upstreams.handle_message(now, &mut self.random, ask.attempt, from, message);
    }

    fn wait(&mut self) -> Instant {
        let due = self.upstreams.poll_timeout().expect("something is due");
        self.upstreams.handle_timeout(due, &mut self.random);
        assert!(self.upstreams.poll_timeout().is_none_or(|next| next > due), "a deadline stays");
        due
    }
}

#[test]
fn an_answer_counts_from_whom_was_asked_with_the_same_number_and_question() {
    let mut net = Net::of(&[1, 2]);
    let exchange = net.ask(at(0), "b.example.", false);
    let ask = net.one();
    assert_eq!((ask.server, ask.transport), (server(1), Transport::Udp));
    let right = answer(&ask, |_| ());
    let wrong = [
        (server(2), right.clone()),
        (SocketAddr::new(server(1).ip(), 54), right.clone()),
        (server(1), answer(&ask, |message| message.metadata.id ^= 1)),
        (server(1), answer(&ask, |message| message.metadata.message_type = MessageType::Query)),
        (server(1), answer(&ask, |message| message.queries.clear())),
        (server(1), answer(&ask, |message| message.queries = vec![message.queries[0].clone(); 2])),
        (server(1), right[..right.len() - 1].to_vec()),
    ];
    for (from, message) in &wrong {
        net.hear(at(1), &ask, *from, message);
        assert_eq!(net.upstreams.poll_outcome(), None);
    }
    assert_eq!(net.upstreams.counters().unmatched, wrong.len() as u64);
    net.hear(at(1), &ask, server(1), &right);
    let outcome = Outcome { exchange: exchange.expect("asked"), answer: Some((server(1), right)) };
    assert_eq!(net.upstreams.poll_outcome(), Some(outcome));
    assert!(!net.upstreams.is_open(ask.attempt) && net.upstreams.poll_timeout().is_none());
}

#[test]
fn another_question_in_the_answer_is_none_of_ours_but_its_case_is_no_matter() {
    let mut net = Net::of(&[1]);
    net.ask(at(0), "b.example.", false);
    let ask = net.one();
    let other = |name: &str, kind| Query::query(Name::from_ascii(name).expect("a name"), kind);
    for other in [other("c.example.", RecordType::A), other("b.example.", RecordType::AAAA)] {
        net.hear(at(1), &ask, server(1), &answer(&ask, |message| message.queries = vec![other]));
        assert_eq!(net.upstreams.poll_outcome(), None);
    }
    let name = Name::from_ascii("B.eXample.").expect("a name");
    net.hear(
        at(1),
        &ask,
        server(1),
        &answer(&ask, |message| message.queries = vec![Query::query(name, RecordType::A)]),
    );
    assert!(net.upstreams.poll_outcome().is_some());
}

#[test]
fn who_guesses_numbers_is_met_over_tcp() {
    let mut net = Net::of(&[1]);
    net.ask(at(0), "b.example.", false);
    let ask = net.one();
    for guess in 1..=u16::try_from(MOST_WRONG).expect("small") {
        assert_eq!(net.upstreams.poll_ask(), None);
        net.hear(at(1), &ask, server(1), &answer(&ask, |message| message.metadata.id ^= guess));
    }
    let again = net.one();
    assert_eq!((again.server, again.transport), (server(1), Transport::Tcp));
    net.hear(at(2), &again, server(1), &answer(&again, |_| ()));
    assert!(net.upstreams.poll_outcome().expect("an end").answer.is_some());
}

#[test]
fn an_answer_that_was_cut_off_is_asked_for_over_tcp_or_passed_on() {
    for whole in [true, false] {
        let mut net = Net::of(&[1]);
        net.ask(at(0), "b.example.", whole);
        let ask = net.one();
        net.hear(at(1), &ask, server(1), &answer(&ask, |message| message.metadata.truncation = true));
        if !whole {
            let (_, passed) = net.upstreams.poll_outcome().expect("an end").answer.expect("an answer");
            assert!(Message::from_vec(&passed).expect("whole").metadata.truncation);
            continue;
        }
        let again = net.one();
        assert_eq!((again.server, again.transport), (server(1), Transport::Tcp));
        let long = answer(&again, |_| ());
        net.hear(at(2), &again, server(1), &long);
        assert_eq!(net.upstreams.poll_outcome().expect("an end").answer, Some((server(1), long)));
    }
}

#[test]
fn servers_that_fail_or_are_silent_make_room_for_the_next() {
    let mut net = Net::of(&[1, 2, 3]);
    net.ask(at(0), "b.example.", false);
    let first = net.one();
    net.hear(
        at(1),
        &first,
        server(1),
        &answer(&first, |message| {
            message.metadata.response_code = ResponseCode::ServFail;
        }),
    );
    let second = net.one();
    assert_eq!(second.server, server(2));
    let now = net.wait();
    assert_eq!(now, at(1) + UDP_PATIENCE);
    let third = net.one();
    assert_eq!(third.server, server(3));
    assert_ne!((first.message[0], first.message[1]), (third.message[0], third.message[1]));
    // Who was slow may still answer.
    net.hear(now, &second, server(2), &answer(&second, |_| ()));
    assert_eq!(net.upstreams.poll_outcome().expect("an end").answer.expect("an answer").0, server(2));
    // And is asked first the next time.
    net.ask(now, "c.example.", false);
    assert_eq!(net.one().server, server(2));
}

#[test]
fn all_are_silent_and_it_ends_before_the_program_asks_again() {
    let mut net = Net::of(&[1]);
    net.ask(at(0), "b.example.", false);
    let mut now = at(0);
    while net.upstreams.poll_timeout().is_some() {
        now = net.wait();
    }
    assert_eq!(net.upstreams.poll_outcome().expect("an end").answer, None);
    assert!(now <= at(5_000), "{now}");
    let asked = std::iter::from_fn(|| net.upstreams.poll_ask()).count();
    assert_eq!(asked, 0, "nothing is left to be sent for a question that has ended");
    assert_eq!(net.upstreams.counters().asked, 2);
}

#[test]
fn where_all_servers_fail_their_answer_is_passed_on() {
    let mut net = Net::of(&[1]);
    net.ask(at(0), "b.example.", false);
    for _ in 0..2 {
        let ask = net.one();
        net.hear(
            at(1),
            &ask,
            server(1),
            &answer(&ask, |message| {
                message.metadata.response_code = ResponseCode::Refused;
            }),
        );
    }
    let (_, told) = net.upstreams.poll_outcome().expect("an end").answer.expect("an answer");
    assert_eq!(Message::from_vec(&told).expect("whole").metadata.response_code, ResponseCode::Refused);
}

#[test]
fn a_server_that_cannot_be_reached_is_not_waited_for() {
    let mut net = Net::of(&[1, 2]);
    net.ask(at(0), "b.example.", false);
    let ask = net.one();
    net.upstreams.fail(at(0), &mut net.random, ask.attempt);
    assert_eq!(net.one().server, server(2));
}

#[test]
fn no_crowd_of_questions_opens_more_sockets_than_there_may_be() {
    let mut net = Net::of(&[1, 2, 3]);
    let asked = (0..10_000).filter(|number| net.ask(at(0), &format!("{number}.example."), true).is_some()).count();
    assert_eq!(asked, MOST_SOCKETS);
    for _ in 0..20 {
        if net.upstreams.poll_timeout().is_some() {
            net.wait();
        }
        assert!(net.upstreams.attempts.len() <= MOST_SOCKETS);
    }
    assert_eq!(std::iter::from_fn(|| net.upstreams.poll_outcome()).count(), asked, "each has an end");
    assert!(net.upstreams.attempts.is_empty() && net.upstreams.exchanges.is_empty());
}

proptest! {
    /// Whatever comes from wherever, each question ends once, in time, and its answer is one that its server gave.
    #[test]
    fn any_messages_and_any_silence_end_a_question_once(
        steps in proptest::collection::vec((0..6_u8, any::<u8>(), any::<u8>(), proptest::collection::vec(any::<u8>(), 0..40)), 0..60),
        whole in any::<bool>(),
    ) {
        let mut net = Net::of(&[1, 2]);
        let exchange = net.ask(at(0), "b.example.", whole).expect("asked");
        let (mut asks, mut given, mut now) = (Vec::new(), Vec::new(), at(0));
        for (kind, which, bits, bytes) in steps {
            asks.extend(std::iter::from_fn(|| net.upstreams.poll_ask()));
            let ask: &Ask = &asks[usize::from(which) % asks.len()];
            let ask = ask.clone();
            let message = match kind {
                0 => bytes,
                1 => answer(&ask, |message| message.metadata.id ^= u16::from(bits)),
                2 => answer(&ask, |message| message.metadata.truncation = true),
                3 => answer(&ask, |message| message.metadata.response_code = ResponseCode::from(0, bits % 16)),
                4 => { net.upstreams.fail(now, &mut net.random, ask.attempt); continue }
                _ => { if net.upstreams.poll_timeout().is_some() { now = net.wait(); } continue }
            };
            given.push((ask.server, message.clone()));
            net.hear(now, &ask, ask.server, &message);
        }
        while net.upstreams.poll_timeout().is_some() {
            now = net.wait();
        }
        prop_assert!(now <= at(5_000));
        let outcome = net.upstreams.poll_outcome().expect("an end");
        prop_assert_eq!(outcome.exchange, exchange);
        prop_assert!(outcome.answer.is_none_or(|answer| given.contains(&answer)));
        prop_assert_eq!(net.upstreams.poll_outcome(), None);
        prop_assert!(net.upstreams.attempts.is_empty());
    }
}
