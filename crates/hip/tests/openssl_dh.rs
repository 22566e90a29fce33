//! Diffie-Hellman against OpenSSL: it and we come to the same secret in every group. Without openssl the test says so and
//! passes, unless SINNET_REQUIRE_TOOLS=1.

use hip::dh::{EphemeralSecret, Group};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use std::path::Path;
use std::process::{Command, Stdio};

fn openssl(directory: &Path, arguments: &str) -> Option<Vec<u8>> {
    let output = Command::new("openssl")
        .args(arguments.split_whitespace())
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    assert!(output.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    Some(output.stdout)
}

#[test]
fn openssl_comes_to_the_same_secret() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    if !testkit::has("openssl", &["version"]) {
        return;
    }
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    for (group, options, derive) in [
        (Group::Modp1536, "DH -pkeyopt group:modp_1536", "-pkeyopt dh_pad:1"),
        (Group::Modp2048, "DH -pkeyopt group:modp_2048", "-pkeyopt dh_pad:1"),
        (Group::Modp3072, "DH -pkeyopt group:modp_3072", "-pkeyopt dh_pad:1"),
        (Group::P256, "EC -pkeyopt ec_paramgen_curve:P-256", ""),
        (Group::P384, "EC -pkeyopt ec_paramgen_curve:P-384", ""),
        (Group::P521, "EC -pkeyopt ec_paramgen_curve:P-521", ""),
    ] {
        let run = |arguments: &str| openssl(directory, arguments).unwrap();
        let elliptic = matches!(group, Group::P256 | Group::P384 | Group::P521);
        // A SubjectPublicKeyInfo ends with the public value, a DER integer for MODP, whose length depends on its leading bits.
        // So that ours can take the place of theirs, both have the top bit set, and a zero byte before it.
        let (their_key, start) = (0..64)
            .map(|_| {
                run(&format!("genpkey -quiet -algorithm {options} -out theirs.pem"));
                let key = run("pkey -in theirs.pem -pubout -outform DER");
                let start = key.len() - group.public_value_len();
                (key, start)
            })
            .find(|(key, start)| elliptic || (key[start - 1] == 0 && key[*start] >= 0x80))
            .expect("every second key");
        let theirs = &their_key[start..];
        let (ours, public) = (0..64)
            .map(|_| EphemeralSecret::generate(group, &mut rng))
            .map(|secret| {
                let public = secret.public_value();
                (secret, public)
            })
            .find(|(_, public)| elliptic || public[0] >= 0x80)
            .expect("every second key");
        std::fs::write(directory.join("ours.der"), [&their_key[..start], &public].concat()).unwrap();
        let expected = run(&format!("pkeyutl -derive -inkey theirs.pem -peerkey ours.der -peerform DER {derive}"));
        assert_eq!(ours.agree(theirs).unwrap().as_bytes(), expected, "{group:?}");
    }
}
