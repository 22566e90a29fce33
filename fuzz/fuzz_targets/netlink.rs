//! Any bytes as the kernel's answers: the reader of rtnetlink is a third party's, and a panic in it would end the daemon.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netlink_packet_core::NetlinkMessage;
use netlink_packet_route::RouteNetlinkMessage;

fuzz_target!(|input: (u16, u16, &[u8])| {
    let (kind, flags, body) = input;
    // Messages of links, addresses, neighbours and routes have the numbers 16 to 27.
    let mut message = (body.len() as u32 + 16).to_ne_bytes().to_vec();
    message.extend((16 + kind % 24).to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend([0; 8]);
    message.extend_from_slice(body);
    for bytes in [&message[..], body] {
        let _ = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes);
    }
});
