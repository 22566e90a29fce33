//! Any bytes as a HIP packet: no panic, and whatever is accepted can be emitted and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::hip::{Builder, Packet, Parameter};

fuzz_target!(|bytes: &[u8]| {
    let Ok(packet) = Packet::parse(bytes) else { return };
    let mut parameters: Vec<&Parameter> = packet.parameters().collect();
    parameters.sort_by_key(|parameter| parameter.kind());
    let mut builder = Builder::new(packet.kind(), packet.sender(), packet.receiver());
    for parameter in &parameters {
        builder = builder.push(parameter);
    }
    // Padding and reserved fields are not kept, so it is no longer than it was.
    let again = builder.finish().expect("not longer than what was read");
    let again = Packet::parse(&again).expect("what was emitted can be read");
    assert!(again.parameters().eq(parameters.iter().copied()));
    let _ = packet.covered_by_mac();
    let _ = packet.covered_by_signature();
    let _ = packet.covered_by_signature_2();
    if let Some(host_id) = packet.host_id() {
        let _ = packet.covered_by_mac_2(host_id);
        let _ = hip::identity::PublicIdentity::from_wire(host_id.algorithm, &host_id.identity);
    }
});
