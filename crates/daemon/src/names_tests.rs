use super::*;
use crate::config::{HipRecords, LsiRange};
use crate::dns::Names;
use crate::dns::resolver::Settings;
use hickory_proto::op::{Message, Query};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{Name, RData, RecordType};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;
use wire::Hit;

fn random() -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(1)
}

fn responder() -> (Responder, SocketAddr) {
    asking(Vec::new())
}

fn asking(servers: Vec<SocketAddr>) -> (Responder, SocketAddr) {
    let mut names = Names::default();
    names.add("b.hip", Hit::default(), Some(Lsi([1, 2, 3, 4]))).expect("a name");
    let settings = Settings { servers, hip_records: HipRecords::Off, trusted: false, lsi_range: LsiRange::DEFAULT };
    let resolver = Resolver::new(names, settings);
    let responder = Responder::listen_on("127.0.0.1:0".parse().expect("an address"), resolver).expect("binds");
    let address = responder.datagrams.local_addr().expect("bound");
    (responder, address)
}

fn query() -> Vec<u8> {
    let mut query = Message::query();
    query.add_query(Query::query(Name::from_ascii("b.hip.").expect("a name"), RecordType::A));
    query.to_vec().expect("a query")
}

fn assert_answer(answer: &[u8]) {
    let answer = Message::from_vec(answer).expect("well-formed");
    assert_eq!(answer.answers[0].data, RData::A(A::new(1, 2, 3, 4)));
}

#[test]
fn a_program_of_this_machine_is_answered() {
    let (mut responder, address) = responder();
    let program = UdpSocket::bind("127.0.0.1:0").expect("binds");
    program.send_to(&query(), address).expect("sends");
    responder.turn(Instant::ZERO, &mut random());
    let mut answer = [0; 512];
    program.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
    let length = program.recv(&mut answer).expect("an answer");
    assert_answer(&answer[..length]);
}

#[test]
fn over_tcp_too_also_where_a_question_comes_in_pieces_and_the_next_at_once() {
    let (mut responder, address) = responder();
    let mut program = TcpStream::connect(address).expect("connects");
    program.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
    let query = query();
    let length = u16::try_from(query.len()).expect("short").to_be_bytes();
    let twice = [&length[..], &query, &length, &query].concat();
    let (first, second) = twice.split_at(7);
    program.write_all(first).expect("writes");
    responder.turn(Instant::ZERO, &mut random());
    program.write_all(second).expect("writes");
    for _ in 0..2 {
        // On loopback what is written is there.
        responder.turn(Instant::ZERO, &mut random());
        let mut length = [0; 2];
        program.read_exact(&mut length).expect("an answer");
        let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
        program.read_exact(&mut answer).expect("an answer");
        assert_answer(&answer);
    }
    drop(program);
    responder.turn(Instant::ZERO, &mut random());
    assert!(responder.visitors.len() == 0);
}

#[test]
fn connections_that_say_nothing_do_not_add_up() {
    let (mut responder, address) = responder();
    let idle: Vec<_> = (0..3 * LIMITS.ordinary).map(|_| TcpStream::connect(address).expect("connects")).collect();
    responder.turn(Instant::ZERO, &mut random());
    responder.turn(Instant::ZERO, &mut random());
    assert_eq!(responder.visitors.len(), LIMITS.ordinary);
    drop(idle);
}

/// A server of another name, over UDP and TCP, in a thread: it answers with the address 192.0.2.9, and one octet more than fits.
fn server(questions: usize) -> (SocketAddr, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
    let address = listener.local_addr().expect("bound");
    let datagrams = UdpSocket::bind(address).expect("binds");
    let answer = |query: &[u8], cut: bool| {
        let query = Message::from_vec(query).expect("a question");
        let mut answer = Message::response(query.metadata.id, query.metadata.op_code);
        answer.metadata.truncation = cut;
        answer.add_queries(query.queries.iter().cloned());
        if !cut {
            let name = query.queries[0].name().clone();
            answer.add_answer(hickory_proto::rr::Record::from_rdata(name, 60, RData::A(A::new(192, 0, 2, 9))));
        }
        answer.to_vec().expect("an answer")
    };
    let thread = std::thread::spawn(move || {
        for _ in 0..questions {
            let mut query = [0; 512];
            let (length, asker) = datagrams.recv_from(&mut query).expect("a question");
            datagrams.send_to(&answer(&query[..length], true), asker).expect("sends");
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut length = [0; 2];
            stream.read_exact(&mut length).expect("a length");
            let mut query = vec![0; u16::from_be_bytes(length).into()];
            stream.read_exact(&mut query).expect("a question");
            let answer = answer(&query, false);
            let length = u16::try_from(answer.len()).expect("short").to_be_bytes();
            stream.write_all(&[&length[..], &answer].concat()).expect("writes");
        }
    });
    (address, thread)
}

/// A datagram is answered by what is cut off, as a resolver does (RFC 2181 §9); then the program asks over TCP, and so do we.
#[test]
fn other_names_are_passed_on_and_what_is_cut_off_is_asked_for_over_tcp() {
    let (server, thread) = server(1);
    let (mut responder, address) = asking(vec![server]);
    let mut query = Message::query();
    query.add_query(Query::query(Name::from_ascii("c.example.").expect("a name"), RecordType::A));
    let query = query.to_vec().expect("a query");
    let program = UdpSocket::bind("127.0.0.1:0").expect("binds");
    program.set_read_timeout(Some(Duration::from_millis(5))).expect("a time");
    program.send_to(&query, address).expect("sends");
    let mut random = random();
    let mut answer = [0; 512];
    let length = std::iter::repeat_with(|| {
        responder.turn(Instant::ZERO, &mut random);
        program.recv(&mut answer)
    });
    let length = length.take(1000).find_map(Result::ok).expect("an answer");
    let cut = Message::from_vec(&answer[..length]).expect("whole");
    assert_eq!((cut.metadata.truncation, cut.metadata.id.to_be_bytes()), (true, [query[0], query[1]]));

    let mut program = TcpStream::connect(address).expect("connects");
    program.set_read_timeout(Some(Duration::from_millis(5))).expect("a time");
    let length = u16::try_from(query.len()).expect("short").to_be_bytes();
    program.write_all(&[&length[..], &query].concat()).expect("writes");
    let count = std::iter::repeat_with(|| {
        responder.turn(Instant::ZERO, &mut random);
        program.read(&mut answer)
    });
    let count = count.take(1000).find_map(Result::ok).expect("an answer");
    let whole = Message::from_vec(&answer[2..count]).expect("whole");
    assert_eq!(whole.answers[0].data, RData::A(A::new(192, 0, 2, 9)));
    assert_eq!(whole.metadata.id.to_be_bytes(), [query[0], query[1]]);
    thread.join().expect("the server ends");
}
