//! Byte streams at the address of the metrics: no panic, memory is bounded whoever does not read, and the next one is
//! answered.
#![no_main]

use clock::Instant;
use daemon::metrics::Metrics;
use libfuzzer_sys::fuzz_target;
use sinnet_fuzz::visitors::{ANSWER, Action, play};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// An address of the loopback network that is this process's.
fn address() -> SocketAddr {
    let [_, a, b, c] = std::process::id().to_be_bytes();
    let port = TcpListener::bind(SocketAddr::from(([127, a | 1, b, c], 0))).and_then(|listener| listener.local_addr());
    port.expect("a port")
}

fuzz_target!(|actions: Vec<Action>| {
    let address = address();
    let mut metrics = Metrics::listen(address).expect("a port of our own");
    let connect = || {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_nonblocking(true).ok()?;
        // A reset at the end, so that millions of runs leave no connections behind that wait.
        socket2::SockRef::from(&stream).set_linger(Some(std::time::Duration::ZERO)).ok()?;
        Some(stream)
    };
    let questions: [&[u8]; 4] = [
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"HEAD /metrics HTTP/1.0\r\n\r\n",
        b"GET /other HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"POST ",
    ];
    play(actions, &questions, connect, |now: Instant| metrics.turn(now, || "x".repeat(ANSWER)));
});
