//! Names for ordinary programs: a DNS responder (RFC 1035, RFC 3596) that knows the configured peers and this host. `A` is the
//! LSI, `AAAA` the HIT, `PTR` leads back. Where other name servers are configured, all else is asked of them, and hosts with a
//! HIP record are peers ([`resolver`]). Otherwise other names are REFUSED, which makes a resolver ask its next server, so the
//! responder can stand first in any list.

mod chain;
mod lookup;
pub mod record;
pub mod resolver;
pub mod upstream;

use std::collections::BTreeMap;
use std::net::IpAddr;

use hickory_proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, PTR};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use wire::{Hit, Lsi};

/// How long an answer may be kept, in seconds. The mapping changes only with the configuration, but a person who edits it
/// does not want to wait.
const TTL: u32 = 60;

/// The largest answer over UDP without EDNS (RFC 1035 §4.2.1). An answer has one record, so none gets near it.
pub const MAX_MESSAGE: usize = 512;

/// The names that are answered for.
#[derive(Debug, Default)]
pub struct Names {
    forward: BTreeMap<Name, (Hit, Option<Lsi>)>,
    reverse: BTreeMap<IpAddr, Name>,
}

impl Names {
    /// Adds a host, with its LSI if programs can reach that. The first host to claim an address keeps it for the way back.
    ///
    /// # Errors
    /// A sentence that says why `name` is no DNS name.
    pub fn add(&mut self, name: &str, hit: Hit, lsi: Option<Lsi>) -> Result<(), String> {
        let name = parse_name(name)?;
        self.reverse.entry(IpAddr::V6(hit.0.into())).or_insert_with(|| name.clone());
        if let Some(lsi) = lsi {
            self.reverse.entry(IpAddr::V4(lsi.0.into())).or_insert_with(|| name.clone());
        }
        self.forward.entry(name).or_insert((hit, lsi));
        Ok(())
    }

    /// Whether it answers for this name.
    pub fn has(&self, name: &Name) -> bool {
        self.forward.contains_key(name) || self.reverse_of(name).is_some()
    }

    /// The answer to a query, or nothing where the bytes are no query at all.
    pub fn answer(&self, query: &[u8]) -> Option<Vec<u8>> {
        let query = match Message::from_vec(query) {
            Ok(message) if message.metadata.message_type == MessageType::Query => message,
            // An answer to an answer could go round forever.
            Ok(_) => return None,
            Err(_) => {
                // RFC 1035 §4.1.1: what can be told of the query is its identifier, if it is that long.
                let id = u16::from_be_bytes([*query.first()?, *query.get(1)?]);
                let is_response = query.get(2)? & 0x80 != 0;
                if is_response {
                    return None;
                }
                return Message::error_msg(id, OpCode::Query, ResponseCode::FormErr).to_vec().ok();
            }
        };
        let mut answer = Message::response(query.metadata.id, query.metadata.op_code);
        answer.metadata.recursion_desired = query.metadata.recursion_desired;
        // Compressed names of many questions would grow to a multiple of the query.
        if let [question] = query.queries.as_slice() {
            answer.add_query(question.clone());
        }
        answer.metadata.response_code = self.fill(&query, &mut answer);
        answer.to_vec().ok()
    }

    fn fill(&self, query: &Message, answer: &mut Message) -> ResponseCode {
        if query.metadata.op_code != OpCode::Query {
            return ResponseCode::NotImp;
        }
        // One question a message is what every resolver asks (RFC 9619).
        let [question] = query.queries.as_slice() else {
            return ResponseCode::FormErr;
        };
        if question.query_class() != DNSClass::IN {
            return ResponseCode::Refused;
        }
        let asked = question.name();
        let record = |data| Record::from_rdata(asked.clone(), TTL, data);
        if let Some((hit, lsi)) = self.forward.get(&asked.to_lowercase()) {
            answer.metadata.authoritative = true;
            match question.query_type() {
                RecordType::A => {
                    answer.add_answers(lsi.map(|lsi| record(RData::A(A(lsi.0.into())))));
                }
                RecordType::AAAA => {
                    answer.add_answer(record(RData::AAAA(AAAA(hit.0.into()))));
                }
                // The name exists and has no such record: an empty answer (RFC 2308 §2.2).
                _ => {}
            }
            return ResponseCode::NoError;
        }
        if let Some(name) = self.reverse_of(asked) {
            answer.metadata.authoritative = true;
            if question.query_type() == RecordType::PTR {
                answer.add_answer(record(RData::PTR(PTR(name.clone()))));
            }
            return ResponseCode::NoError;
        }
        ResponseCode::Refused
    }

    fn reverse_of(&self, asked: &Name) -> Option<&Name> {
        let network = asked.parse_arpa_name().ok()?;
        // A shorter name is a network, not a host.
        if network.prefix_len() != network.max_prefix_len() {
            return None;
        }
        self.reverse.get(&network.addr())
    }
}

/// `name` as the DNS has it: lower case and fully qualified.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn parse_name(name: &str) -> Result<Name, String> {
    let mut parsed =
        Name::from_ascii(name).map_err(|error| format!("\"{name}\" is no DNS name: {error}"))?.to_lowercase();
    if parsed.is_root() {
        return Err("a peer needs a name".to_owned());
    }
    parsed.set_fqdn(true);
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_proto::op::Query;
    use proptest::prelude::*;

    fn names() -> Names {
        let mut names = Names::default();
        names.add("b.hip", hit(), Some(Lsi([1, 2, 3, 4]))).expect("a name");
        names
    }

    fn hit() -> Hit {
        Hit("2001:20::b".parse::<std::net::Ipv6Addr>().expect("an address").octets())
    }

    fn ask(names: &Names, name: &str, kind: RecordType) -> Message {
        let mut query = Message::query();
        query.add_query(Query::query(Name::from_ascii(name).expect("a name"), kind));
        let answer = names.answer(&query.to_vec().expect("a query")).expect("an answer");
        let answer = Message::from_vec(&answer).expect("well-formed");
        assert_eq!(answer.metadata.id, query.metadata.id);
        assert_eq!(answer.metadata.message_type, MessageType::Response);
        assert_eq!(answer.queries, query.queries);
        answer
    }

    #[test]
    fn a_peer_has_both_addresses_whatever_the_case_of_its_name() {
        for name in ["b.hip.", "B.HIP."] {
            let answer = ask(&names(), name, RecordType::AAAA);
            assert_eq!(answer.answers[0].data, RData::AAAA(AAAA("2001:20::b".parse().expect("an address"))));
            let answer = ask(&names(), name, RecordType::A);
            assert_eq!(answer.answers[0].data, RData::A(A::new(1, 2, 3, 4)));
            assert_eq!(answer.metadata.response_code, ResponseCode::NoError);
        }
    }

    #[test]
    fn a_known_name_without_such_a_record_is_an_empty_answer() {
        let answer = ask(&names(), "b.hip.", RecordType::MX);
        assert_eq!((answer.metadata.response_code, answer.answers.len()), (ResponseCode::NoError, 0));
    }

    #[test]
    fn addresses_lead_back_to_the_name() {
        for address in ["4.3.2.1.in-addr.arpa.".to_owned(), Name::from(std::net::Ipv6Addr::from(hit().0)).to_ascii()] {
            let answer = ask(&names(), &address, RecordType::PTR);
            assert_eq!(
                answer.answers[0].data,
                RData::PTR(PTR(Name::from_ascii("b.hip.").expect("a name"))),
                "{address}"
            );
        }
    }

    #[test]
    fn other_names_are_refused_so_that_the_next_server_is_asked() {
        for name in ["example.org.", "c.hip.", "4.3.2.9.in-addr.arpa.", "in-addr.arpa."] {
            let answer = ask(&names(), name, RecordType::A);
            assert_eq!((answer.metadata.response_code, answer.answers.len()), (ResponseCode::Refused, 0), "{name}");
        }
    }

    #[test]
    fn many_questions_are_not_repeated() {
        let mut query = Message::new(7, MessageType::Query, OpCode::Query);
        let name = Name::from_ascii(["a".repeat(63), "b".repeat(63), "c".repeat(63)].join(".")).expect("a name");
        for _ in 0..300 {
            query.add_query(Query::query(name.clone(), RecordType::A));
        }
        let query = query.to_vec().expect("a message");
        let answer = names().answer(&query).expect("an answer");
        assert!(answer.len() <= MAX_MESSAGE, "{} bytes for {}", answer.len(), query.len());
        let answer = Message::from_vec(&answer).expect("well-formed");
        assert_eq!(answer.metadata.response_code, ResponseCode::FormErr);
    }

    #[test]
    fn an_answer_is_not_answered() {
        let answer = Message::error_msg(7, OpCode::Query, ResponseCode::NoError).to_vec().expect("a message");
        assert_eq!(names().answer(&answer), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered_or_not_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            if let Some(answer) = names().answer(&bytes) {
                let answer = Message::from_vec(&answer).expect("well-formed");
                prop_assert_eq!(&bytes[..2], &answer.metadata.id.to_be_bytes()[..]);
            }
        }
    }
}
