//! Byte streams of local users at the control socket: no panic, memory is bounded whoever does not read, and the next one is
//! answered.
#![no_main]

use clock::Instant;
use daemon::control::{Access, Control, Request};
use libfuzzer_sys::fuzz_target;
use sinnet_fuzz::visitors::{ANSWER, Action, play};
use std::os::unix::net::UnixStream;

fuzz_target!(|actions: Vec<Action>| {
    let path = std::env::temp_dir().join(format!("sinnet-fuzz-{}/control.sock", std::process::id()));
    let mut control = Control::listen(&path, Access::own()).expect("a socket of our own");
    let connect = || {
        let stream = UnixStream::connect(&path).ok()?;
        stream.set_nonblocking(true).ok()?;
        Some(stream)
    };
    let questions: [&[u8]; 3] =
        [b"{\"command\":\"status\"}\n", b"{\"command\":\"down\"}\n", b"{\"command\":\"dance\"}\n"];
    let answer = |request: Request| match request {
        Request::Status => serde_json::json!({"long": "x".repeat(ANSWER)}),
        Request::Down => serde_json::json!({"ok": true}),
    };
    play(actions, &questions, connect, |now: Instant| control.turn(now, answer));
});
