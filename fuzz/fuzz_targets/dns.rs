//! Any bytes as a DNS query, whole or built from parts: an answer is well-formed, answers the question, and is no longer
//! than a datagram may be.
#![no_main]

use daemon::dns::{MAX_MESSAGE, Names};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;
use wire::{Hit, Lsi};

fn names() -> &'static Names {
    static NAMES: OnceLock<Names> = OnceLock::new();
    NAMES.get_or_init(|| {
        let mut names = Names::default();
        let hit = Hit([0x20, 1, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        names.add("b.hip", hit, Some(Lsi([1, 2, 3, 4]))).expect("a name");
        names
    })
}

fuzz_target!(|input: (Option<(u16, u8, Vec<(Option<Vec<u8>>, u16, u16)>)>, &[u8])| {
    let (built, tail) = input;
    let mut query = Vec::new();
    if let Some((id, flags, questions)) = built {
        query.extend(id.to_be_bytes());
        query.extend([flags & 0x7f, 0]);
        query.extend((questions.len() as u16).to_be_bytes());
        query.extend([0; 6]);
        for (name, kind, class) in questions {
            match name {
                Some(label) => {
                    let label = &label[..label.len().min(63)];
                    query.push(label.len() as u8);
                    query.extend(label);
                    query.push(0);
                }
                None => query.extend(b"\x01b\x03hip\x00"),
            }
            query.extend(kind.to_be_bytes());
            query.extend(if class % 2 == 0 { 1 } else { class }.to_be_bytes());
        }
    }
    query.extend_from_slice(tail);
    // What a datagram brings, and more than the longest over TCP.
    query.truncate(4096);
    if let Some(answer) = names().answer(&query) {
        assert_eq!(answer[..2], query[..2], "the answer to another question");
        assert_eq!(answer[2] & 0x80, 0x80, "a question is answered by a question");
        assert!(answer.len() <= MAX_MESSAGE, "{} bytes for {}", answer.len(), query.len());
    }
});
