use super::*;
use crate::dns::record::HipRecord;
use crate::dns::upstream::Transport;
use hickory_proto::op::Query;
use hickory_proto::rr::rdata::{CNAME, NULL, SOA};
use hip::identity::HostIdentity;
use proptest::prelude::*;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng as _;

const PROGRAM: Asker = Asker::Datagram(SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 4000));
const HIP: RecordType = crate::dns::record::TYPE;

fn server() -> SocketAddr {
    "127.0.0.1:53".parse().expect("an address")
}

fn name(name: &str) -> Name {
    Name::from_ascii(name).expect("a name")
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn identity() -> HostIdentity {
    HostIdentity::from_pem(testkit::IDENTITIES[1]).expect("a key")
}

fn hip_data(change: impl FnOnce(&mut HipRecord)) -> RData {
    let mut record = HipRecord::of(identity().public(), Vec::new()).expect("a record");
    change(&mut record);
    octets(record.to_vec().expect("octets"))
}

fn octets(data: Vec<u8>) -> RData {
    RData::Unknown { code: HIP, rdata: NULL::with(data) }
}

fn address(last: u8) -> RData {
    RData::A(A::new(192, 0, 2, last))
}

/// A zone, as the name server of this test has it.
#[derive(Default)]
struct Zone {
    records: Vec<(Name, RData)>,
    signed: bool,
}

impl Zone {
    fn of(records: &[(&str, RData)], signed: bool) -> Self {
        Self { records: records.iter().map(|(of, data)| (name(of), data.clone())).collect(), signed }
    }

    fn answer(&self, ask: &Ask) -> Vec<u8> {
        let query = Message::from_vec(&ask.message).expect("a question");
        let mut answer = Message::response(query.metadata.id, OpCode::Query);
        answer.add_queries(query.queries.clone());
        answer.metadata.authentic_data = self.signed && query.metadata.authentic_data;
        let (mut wanted, kind) = (query.queries[0].name().clone(), query.queries[0].query_type());
        for _ in 0..30 {
            let of: Vec<_> = self.records.iter().filter(|(of, _)| *of == wanted).collect();
            let alias =
                of.iter().find_map(|(_, data)| if let RData::CNAME(to) = data { Some(to.0.clone()) } else { None });
            let found = of.iter().filter(|(_, data)| data.record_type() == kind || alias.is_some());
            answer.add_answers(found.map(|(of, data)| Record::from_rdata(of.clone(), 120, data.clone())));
            match alias {
                Some(alias) => wanted = alias,
                None => break,
            }
        }
        if answer.answers.is_empty() {
            let soa = SOA::new(name("ns.example."), name("root.example."), 1, 1, 1, 1, 60);
            answer.add_authority(Record::from_rdata(name("example."), 60, RData::SOA(soa)));
        }
        answer.to_vec().expect("an answer")
    }
}

struct Host {
    resolver: Resolver,
    random: ChaCha20Rng,
    asked: Vec<(Name, RecordType)>,
    news: Vec<News>,
}

impl Host {
    fn new(hip_records: HipRecords) -> Self {
        let mut names = Names::default();
        names.add("c.hip", Hit([7; 16]), Some(Lsi([198, 18, 0, 7]))).expect("a name");
        let settings = Settings { servers: vec![server()], hip_records, trusted: false, lsi_range: LsiRange::DEFAULT };
        let resolver = Resolver::new(names, settings);
        Self { resolver, random: ChaCha20Rng::seed_from_u64(1), asked: Vec::new(), news: Vec::new() }
    }

    fn question(kind: RecordType, of: &str) -> Vec<u8> {
        let mut query = Message::new(77, MessageType::Query, OpCode::Query);
        query.metadata.recursion_desired = true;
        query.add_query(Query::query(name(of), kind));
        query.to_vec().expect("a question")
    }

    /// Asks, and lets the zone answer as long as something is asked; who is found becomes a peer.
    fn ask(&mut self, now: Instant, zone: &Zone, kind: RecordType, of: &str) -> Message {
        self.resolver.handle_question(now, &mut self.random, PROGRAM, &Self::question(kind, of));
        self.serve(now, zone);
        let (asker, answer) = self.resolver.poll_answer().expect("an answer");
        assert_eq!((asker, self.resolver.poll_answer()), (PROGRAM, None));
        let answer = Message::from_vec(&answer).expect("whole");
        assert_eq!((answer.metadata.id, answer.metadata.message_type), (77, MessageType::Response));
        answer
    }

    fn serve(&mut self, now: Instant, zone: &Zone) {
        loop {
            if let Some(ask) = self.resolver.poll_ask() {
                let query = Message::from_vec(&ask.message).expect("a question").queries[0].clone();
                self.asked.push((query.name().clone(), query.query_type()));
                self.resolver.handle_message(now, &mut self.random, ask.attempt, ask.server, &zone.answer(&ask));
                continue;
            }
            let Some(news) = self.resolver.poll_news() else { return };
            if let News::Found(found) = &news {
                self.resolver.accept(now, found, Some(Lsi([198, 18, 1, 1])));
            }
            self.news.push(news);
        }
    }
}

fn data(answer: &Message) -> Vec<RData> {
    answer.answers.iter().map(|record| record.data.clone()).collect()
}

/// RFC 8005 §4.2, and paper S1 §III: HIT and LSI in the place of addresses, which are where the peer is.
#[test]
fn a_signed_hip_record_makes_its_name_a_peer() {
    let with_server = hip_data(|record| record.servers = vec![name("rvs.example.")]);
    let zone = Zone::of(&[("b.example.", with_server), ("b.example.", address(2)), ("rvs.example.", address(9))], true);
    let mut host = Host::new(HipRecords::Signed);
    let hit = identity().hit();
    let answer = host.ask(at(0), &zone, RecordType::AAAA, "B.example.");
    assert_eq!(data(&answer), [RData::AAAA(AAAA(hit.address()))]);
    assert!(!answer.metadata.authentic_data, "nobody has signed what we say");
    let [News::Found(found)] = host.news.as_slice() else { panic!("{:?}", host.news) };
    let place = |last| vec![IpAddr::from([192, 0, 2, last])];
    assert_eq!((found.hit, found.signed, &found.locators, &found.via), (hit, true, &place(2), &place(9)));
    assert_eq!(found.ttl, Duration::from_secs(120));
    // Known from now on: nobody is asked again, for as long as the record holds.
    let asked = host.asked.len();
    assert_eq!(data(&host.ask(at(1), &zone, RecordType::A, "b.example.")), [RData::A(A::new(198, 18, 1, 1))]);
    assert_eq!(data(&host.ask(at(1), &zone, RecordType::HTTPS, "b.example.")), []);
    let reverse = Name::from(hit.address()).to_ascii();
    assert_eq!(data(&host.ask(at(1), &zone, RecordType::PTR, &reverse)), [RData::PTR(PTR(name("b.example.")))]);
    assert_eq!(host.asked.len(), asked);
    host.ask(at(120_001), &zone, RecordType::A, "b.example.");
    assert!(host.asked.len() > asked);
}

#[test]
fn other_names_and_types_pass_through_and_a_name_without_a_record_is_asked_for_it_once() {
    let mx = RData::TXT(hickory_proto::rr::rdata::TXT::new(vec!["text".to_owned()]));
    let zone = Zone::of(&[("a.example.", address(1)), ("a.example.", mx.clone())], true);
    let mut host = Host::new(HipRecords::Signed);
    assert_eq!(data(&host.ask(at(0), &zone, RecordType::TXT, "a.example.")), [mx]);
    assert_eq!(host.asked, [(name("a.example."), RecordType::TXT)]);
    host.asked.clear();
    for _ in 0..3 {
        assert_eq!(data(&host.ask(at(1), &zone, RecordType::A, "a.example.")), [address(1)]);
    }
    let hip = host.asked.iter().filter(|(_, kind)| *kind == HIP).count();
    assert_eq!((hip, host.asked.len()), (1, 4));
    // RFC 2308 §5: for as long as the SOA says.
    host.ask(at(60_002), &zone, RecordType::A, "a.example.");
    assert_eq!(host.asked.iter().filter(|(_, kind)| *kind == HIP).count(), 2);
    // Configured names, and identities, are nobody else's business.
    host.asked.clear();
    assert_eq!(data(&host.ask(at(1), &zone, RecordType::A, "c.hip.")), [RData::A(A::new(198, 18, 0, 7))]);
    let refused = host.ask(at(1), &zone, RecordType::PTR, "9.0.18.198.in-addr.arpa.");
    assert_eq!((refused.metadata.response_code, host.asked.len()), (ResponseCode::Refused, 0));
}

#[test]
fn records_that_do_not_count_leave_the_name_as_it_was_and_are_counted() {
    let forged = || hip_data(|record| record.hit.0[9] ^= 1);
    let unknown = || hip_data(|record| record.algorithm = 1);
    let whole = || HipRecord::of(identity().public(), Vec::new()).expect("a record").to_vec().expect("octets");
    let cut = || octets(whole()[..60].to_vec());
    type Count = fn(&ResolverCounters) -> u64;
    let cases: [(Vec<RData>, bool, Count); 5] = [
        (vec![forged()], true, |counters| counters.forged),
        (vec![unknown()], true, |counters| counters.unknown_algorithm),
        (vec![cut()], true, |counters| counters.malformed),
        (vec![hip_data(|_| ())], false, |counters| counters.unsigned),
        (vec![octets(vec![16, 3, 0, 96])], true, |counters| counters.malformed),
    ];
    for (records, signed, count) in cases {
        let mut zone = Zone::of(&[("b.example.", address(2))], signed);
        zone.records.extend(records.into_iter().map(|data| (name("b.example."), data)));
        let mut host = Host::new(HipRecords::Signed);
        assert_eq!(data(&host.ask(at(0), &zone, RecordType::A, "b.example.")), [address(2)]);
        assert_eq!(count(&host.resolver.counters().0), 1);
        assert!(matches!(host.news.as_slice(), [News::Unused(..)]), "{:?}", host.news);
    }
    // A good one beside the others counts, and one that nobody has signed where that is enough.
    let zone = Zone::of(
        &[
            ("b.example.", forged()),
            ("b.example.", unknown()),
            ("b.example.", hip_data(|_| ())),
            ("b.example.", address(2)),
        ],
        false,
    );
    let mut host = Host::new(HipRecords::Any);
    assert_eq!(data(&host.ask(at(0), &zone, RecordType::A, "b.example.")), [RData::A(A::new(198, 18, 1, 1))]);
    assert!(matches!(host.news.as_slice(), [News::Found(Found { signed: false, .. })]));
    let mut host = Host::new(HipRecords::Off);
    assert_eq!(data(&host.ask(at(0), &zone, RecordType::A, "b.example.")), [address(2)]);
    assert_eq!(host.asked.len(), 1);
}

/// RFC 6840 §5.8: the word of a server on another host counts only where the way to it is safe.
#[test]
fn a_server_elsewhere_is_not_believed_unless_that_is_configured() {
    let zone = Zone::of(&[("b.example.", hip_data(|_| ())), ("b.example.", address(2))], true);
    for trusted in [false, true] {
        let mut host = Host::new(HipRecords::Signed);
        let elsewhere = vec!["192.0.2.53:53".parse().expect("an address")];
        (host.resolver.settings.trusted, host.resolver.upstreams) = (trusted, Upstreams::new(elsewhere));
        let answer = data(&host.ask(at(0), &zone, RecordType::A, "b.example."));
        assert_eq!(answer == [address(2)], !trusted);
    }
}

#[test]
fn aliases_lead_to_a_record_and_those_that_go_round_to_none() {
    let alias = |to: &str| RData::CNAME(CNAME(name(to)));
    let zone = Zone::of(
        &[("www.example.", alias("b.example.")), ("b.example.", hip_data(|_| ())), ("b.example.", address(2))],
        true,
    );
    let mut host = Host::new(HipRecords::Signed);
    let answer = host.ask(at(0), &zone, RecordType::AAAA, "www.example.");
    assert_eq!(data(&answer), [RData::AAAA(AAAA(identity().hit().address()))]);
    let zone = Zone::of(&[("x.example.", alias("y.example.")), ("y.example.", alias("x.example."))], true);
    host.ask(at(0), &zone, RecordType::AAAA, "x.example.");
    assert_eq!(host.resolver.counters().0.loops, 1);
}

/// A host's addresses are places to send to: none of a record's may be this host, everybody, or an identity.
#[test]
fn what_is_no_place_is_left_out_and_a_record_without_any_does_not_count() {
    let bad = [[127, 0, 0, 1], [0, 0, 0, 0], [224, 0, 0, 1], [255, 255, 255, 255], [198, 18, 0, 9]];
    let bad = bad.map(|bytes| RData::A(A(bytes.into())));
    let worse = ["::1", "::", "ff02::1", "fe80::1", "2001:20::1", "::ffff:127.0.0.1"];
    let worse = worse.map(|address| RData::AAAA(AAAA(address.parse().expect("an address"))));
    let mut zone = Zone::of(&[("b.example.", hip_data(|_| ()))], true);
    zone.records.extend(bad.into_iter().chain(worse).map(|data| (name("b.example."), data)));
    let mut host = Host::new(HipRecords::Signed);
    host.ask(at(0), &zone, RecordType::A, "b.example.");
    assert_eq!(host.resolver.counters().0.placeless, 1);
    // And of many there are some.
    zone.records.extend((0..200).map(|last| (name("b.example."), address(last))));
    let mut host = Host::new(HipRecords::Signed);
    host.ask(at(0), &zone, RecordType::A, "b.example.");
    let [News::Found(found)] = host.news.as_slice() else { panic!("{:?}", host.news) };
    assert_eq!(found.locators.len(), 8);
}

#[test]
fn a_server_that_says_nothing_about_hip_records_does_not_keep_the_internet_away() {
    let zone = Zone::of(&[("a.example.", address(1))], false);
    let mut host = Host::new(HipRecords::Any);
    host.resolver.handle_question(at(0), &mut host.random, PROGRAM, &Host::question(RecordType::A, "a.example."));
    let mut now = at(0);
    for _ in 0..20 {
        while let Some(ask) = host.resolver.poll_ask() {
            if Message::from_vec(&ask.message).expect("a question").queries[0].query_type() != HIP {
                host.resolver.handle_message(now, &mut host.random, ask.attempt, ask.server, &zone.answer(&ask));
            }
        }
        let Some(next) = host.resolver.poll_timeout() else { break };
        now = next;
        host.resolver.handle_timeout(now, &mut host.random);
        assert!(host.resolver.poll_timeout().is_none_or(|next| next > now));
    }
    let (_, answer) = host.resolver.poll_answer().expect("an answer");
    assert_eq!(data(&Message::from_vec(&answer).expect("whole")), [address(1)]);
    assert!(now <= at(1_500), "{now}");
}

/// A server that asks us what we ask it, as one does that was told to ask us: nothing multiplies, and all ends.
#[test]
fn a_server_that_is_ourselves_ends_with_a_failure() {
    let mut host = Host::new(HipRecords::Signed);
    host.resolver.handle_question(at(0), &mut host.random, PROGRAM, &Host::question(RecordType::A, "a.example."));
    let (mut now, mut asked) = (at(0), 0);
    loop {
        while let Some(ask) = host.resolver.poll_ask() {
            asked += 1;
            let port = u16::try_from(10_000 + asked).expect("few");
            let ours = Asker::Datagram(SocketAddr::new(server().ip(), port));
            host.resolver.handle_question(now, &mut host.random, ours, &ask.message);
        }
        let Some(next) = host.resolver.poll_timeout() else { break };
        now = next;
        host.resolver.handle_timeout(now, &mut host.random);
    }
    assert!(asked <= 12 && now <= at(10_000), "{asked} questions until {now}");
    let answers: Vec<_> = std::iter::from_fn(|| host.resolver.poll_answer()).collect();
    let own = answers.iter().find(|(asker, _)| *asker == PROGRAM).expect("an answer");
    assert_eq!(Message::from_vec(&own.1).expect("whole").metadata.response_code, ResponseCode::ServFail);
}

#[test]
fn many_questions_at_once_are_bounded_and_each_is_answered() {
    let mut host = Host::new(HipRecords::Signed);
    for number in 0..5_000 {
        let question = Host::question(RecordType::A, &format!("{number}.example."));
        host.resolver.handle_question(at(0), &mut host.random, PROGRAM, &question);
    }
    assert!(host.resolver.passes.len() <= 256 && host.resolver.lookups.len() <= 64);
    while let Some(next) = host.resolver.poll_timeout() {
        host.resolver.handle_timeout(next, &mut host.random);
    }
    assert_eq!(std::iter::from_fn(|| host.resolver.poll_answer()).count(), 5_000);
    assert!(host.resolver.passes.is_empty() && host.resolver.lookups.is_empty() && host.resolver.purposes.is_empty());
}

#[test]
fn programs_over_tcp_are_asked_for_over_tcp() {
    let mut host = Host::new(HipRecords::Off);
    let program = Asker::Stream(SocketAddr::new(server().ip(), 4001));
    host.resolver.handle_question(at(0), &mut host.random, program, &Host::question(RecordType::A, "a.example."));
    assert_eq!(host.resolver.poll_ask().expect("a question").transport, Transport::Tcp);
}

proptest! {
    /// Whatever servers say, cut off, changed or other's, each question has one answer, and a peer is only who has the key.
    #[test]
    fn no_answer_of_a_server_harms(
        steps in proptest::collection::vec((0..5_u8, any::<u16>(), any::<u8>(), proptest::collection::vec(any::<u8>(), 0..80)), 0..40),
    ) {
        let zone = Zone::of(&[("b.example.", hip_data(|_| ())), ("b.example.", address(2))], true);
        let mut host = Host::new(HipRecords::Signed);
        host.resolver.handle_question(at(0), &mut host.random, PROGRAM, &Host::question(RecordType::A, "b.example."));
        let (mut now, mut asks) = (at(0), Vec::new());
        for (kind, place, bits, bytes) in steps {
            asks.extend(std::iter::from_fn(|| host.resolver.poll_ask()));
            let ask: Ask = asks[usize::from(place) % asks.len()].clone();
            let mut message = zone.answer(&ask);
            let index = usize::from(place) % message.len();
            match kind {
                0 => message.truncate(index),
                1 => message[index] ^= bits,
                2 => message.extend(bytes),
                3 => { message.truncate(12); message.extend(bytes) }
                _ => {
                    if let Some(next) = host.resolver.poll_timeout() {
                        now = next;
                        host.resolver.handle_timeout(now, &mut host.random);
                    }
                    message.clear();
                }
            }
            host.resolver.handle_message(now, &mut host.random, ask.attempt, ask.server, &message);
            while let Some(news) = host.resolver.poll_news() {
                if let News::Found(found) = &news {
                    prop_assert_eq!(found.hit, identity().hit());
                    host.resolver.accept(now, found, None);
                }
            }
        }
        while let Some(next) = host.resolver.poll_timeout() {
            now = next;
            host.resolver.handle_timeout(now, &mut host.random);
            while let Some(news) = host.resolver.poll_news() {
                if let News::Found(found) = &news {
                    host.resolver.accept(now, found, None);
                }
            }
        }
        let answers: Vec<_> = std::iter::from_fn(|| host.resolver.poll_answer()).collect();
        prop_assert_eq!(answers.len(), 1);
        prop_assert!(host.resolver.passes.is_empty() && host.resolver.lookups.is_empty());
    }
}
