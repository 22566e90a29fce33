//! Any text as a private key, and any bytes as a Host Identity: what is taken has one encoding, which is taken again.
#![no_main]

use hip::identity::{HostIdentity, PublicIdentity};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &[u8])| {
    let (kind, bytes) = input;
    if kind & 1 == 0 {
        let Ok(text) = str::from_utf8(bytes) else { return };
        if let Ok(identity) = HostIdentity::from_pem(text) {
            let again = HostIdentity::from_pem(&identity.to_pem()).expect("what is written can be read");
            assert_eq!(again.hit(), identity.hit());
        }
    } else {
        let algorithm = if kind & 2 == 0 { 7 } else { 5 };
        if let Ok(identity) = PublicIdentity::from_wire(algorithm, bytes) {
            assert_eq!(identity.encoded(), bytes, "an identity with two encodings has two HITs");
            assert!(identity.verify(b"x", &[0; 96]).is_err());
        }
    }
});
