//! Host identities against OpenSSL: it makes keys in every PEM form that we read, verifies our signatures, and we verify its.
//! Without openssl the tests say so and pass, unless SINNET_REQUIRE_TOOLS=1.

use hip::identity::{Algorithm, HostIdentity, IdentityError, PublicIdentity};
use hip::rhash::Rhash;
use p256::ecdsa::signature::SignatureEncoding;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use std::path::Path;
use std::process::{Command, Stdio};

const MESSAGE: &[u8] = b"what a HIP packet covers";

fn openssl_is_there() -> bool {
    testkit::has("openssl", &["version"])
}

fn openssl(directory: &Path, arguments: &str) -> Vec<u8> {
    let output = Command::new("openssl")
        .args(arguments.split_whitespace())
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn load(directory: &Path, name: &str) -> Result<HostIdentity, IdentityError> {
    HostIdentity::from_pem(&std::fs::read_to_string(directory.join(name)).unwrap())
}

fn load_public(directory: &Path, name: &str) -> Result<PublicIdentity, IdentityError> {
    PublicIdentity::from_pem(&std::fs::read_to_string(directory.join(name)).unwrap())
}

/// r | s as OpenSSL writes and reads it.
fn to_der(signature: &[u8]) -> Vec<u8> {
    match signature.len() {
        64 => p256::ecdsa::Signature::from_slice(signature).unwrap().to_der().to_vec(),
        96 => p384::ecdsa::Signature::from_slice(signature).unwrap().to_der().to_vec(),
        len => panic!("{len} bytes of r | s"),
    }
}

fn from_der(signature: &[u8], len: usize) -> Vec<u8> {
    match len {
        64 => p256::ecdsa::Signature::from_der(signature).unwrap().to_vec(),
        _ => p384::ecdsa::Signature::from_der(signature).unwrap().to_vec(),
    }
}

#[test]
fn rsa_agrees_with_openssl() {
    if !openssl_is_there() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    std::fs::write(directory.join("message"), MESSAGE).unwrap();
    openssl(directory, "genpkey -quiet -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out pkcs8.pem");
    openssl(directory, "rsa -traditional -in pkcs8.pem -out pkcs1.pem");
    openssl(directory, "pkey -in pkcs8.pem -pubout -out public.pem");
    let identity = load(directory, "pkcs8.pem").unwrap();
    assert_eq!(load(directory, "pkcs1.pem").unwrap().public(), identity.public());
    assert_eq!(load_public(directory, "public.pem").as_ref(), Ok(identity.public()));
    // Our own PEM is read by OpenSSL, as the same key.
    std::fs::write(directory.join("ours.pem"), identity.to_pem().as_bytes()).unwrap();
    assert_eq!(openssl(directory, "pkey -in ours.pem -pubout"), openssl(directory, "pkey -in pkcs8.pem -pubout"));

    // RFC 3110 §2 with e = 65537: 03 | 01 00 01 | modulus.
    let modulus = String::from_utf8(openssl(directory, "rsa -in pkcs8.pem -noout -modulus")).unwrap();
    let modulus = modulus.trim().strip_prefix("Modulus=").unwrap().to_lowercase();
    let encoded: String = identity.public().encoded().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(encoded, format!("03010001{modulus}"));
    assert_eq!(identity.public().algorithm_number(), 5);
    assert_eq!(identity.public().rhash(), Rhash::Sha256);

    // RFC 7343 §2: 2001:002 | 1 | the middle 96 of 256 bits.
    let context = [0xF0, 0xEF, 0xF0, 0x2F, 0xBF, 0xF4, 0x3D, 0x0F, 0xE7, 0x93, 0x0C, 0x3C, 0x6E, 0x61, 0x74, 0xEA];
    std::fs::write(directory.join("input"), [&context, identity.public().encoded()].concat()).unwrap();
    let digest = openssl(directory, "dgst -sha256 -binary input");
    assert_eq!(identity.hit().0[..], [&[0x20, 0x01, 0x00, 0x21], &digest[10..22]].concat());

    let pss = "-sha256 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:32 -sigopt rsa_mgf1_md:sha256";
    let signature = identity.sign(&mut rng, MESSAGE);
    assert_eq!(signature.len(), 256);
    std::fs::write(directory.join("signature"), &signature).unwrap();
    openssl(directory, &format!("dgst {pss} -verify public.pem -signature signature message"));
    let theirs = openssl(directory, &format!("dgst {pss} -sign pkcs8.pem message"));
    let public = PublicIdentity::from_wire(5, identity.public().encoded()).unwrap();
    assert_eq!(public.verify(MESSAGE, &theirs), Ok(()));
    assert!(public.verify(b"another message", &theirs).is_err());
    // Another salt length, or PKCS #1 v1.5, is not what RFC 7401 says.
    let short = openssl(directory, &format!("dgst {} -sign pkcs8.pem message", pss.replace(":32", ":20")));
    assert!(public.verify(MESSAGE, &short).is_err());
    assert!(public.verify(MESSAGE, &openssl(directory, "dgst -sha256 -sign pkcs8.pem message")).is_err());
}

#[test]
fn ecdsa_agrees_with_openssl() {
    if !openssl_is_there() {
        return;
    }
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    for (curve, number, len) in [("prime256v1", 1u8, 64), ("secp384r1", 2, 96)] {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        std::fs::write(directory.join("message"), MESSAGE).unwrap();
        // With the EC PARAMETERS block that this command puts first.
        openssl(directory, &format!("ecparam -name {curve} -genkey -out sec1.pem"));
        openssl(directory, "pkcs8 -topk8 -nocrypt -in sec1.pem -out pkcs8.pem");
        openssl(directory, "pkey -in pkcs8.pem -pubout -out public.pem");
        let identity = load(directory, "sec1.pem").unwrap();
        assert_eq!(load(directory, "pkcs8.pem").unwrap().public(), identity.public());
        assert_eq!(load_public(directory, "public.pem").as_ref(), Ok(identity.public()));
        std::fs::write(directory.join("ours.pem"), identity.to_pem().as_bytes()).unwrap();
        assert_eq!(openssl(directory, "pkey -in ours.pem -pubout"), openssl(directory, "pkey -in pkcs8.pem -pubout"));

        // The end of a SubjectPublicKeyInfo is the point.
        let spki = openssl(directory, "pkey -in pkcs8.pem -pubout -outform DER");
        let point = &spki[spki.len() - len - 1..];
        assert_eq!(identity.public().encoded(), [&[0, number], point].concat());
        assert_eq!((identity.public().algorithm_number(), identity.public().rhash()), (7, Rhash::Sha384));

        let signature = identity.sign(&mut rng, MESSAGE);
        assert_eq!(signature.len(), len);
        std::fs::write(directory.join("signature"), to_der(&signature)).unwrap();
        openssl(directory, "dgst -sha384 -verify public.pem -signature signature message");
        let theirs = from_der(&openssl(directory, "dgst -sha384 -sign pkcs8.pem message"), len);
        let public = PublicIdentity::from_wire(7, identity.public().encoded()).unwrap();
        assert_eq!(public.verify(MESSAGE, &theirs), Ok(()));
        assert!(public.verify(b"another message", &theirs).is_err());
        // RFC 4754's reading of P-256 is accepted, for P-384 SHA-256 is not.
        let sha256 = from_der(&openssl(directory, "dgst -sha256 -sign pkcs8.pem message"), len);
        assert_eq!(public.verify(MESSAGE, &sha256).is_ok(), len == 64);
    }
}

#[test]
fn unfit_keys_are_refused_with_their_reason() {
    if !openssl_is_there() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    openssl(directory, "genpkey -quiet -algorithm RSA -pkeyopt rsa_keygen_bits:1024 -out short.pem");
    assert_eq!(load(directory, "short.pem").unwrap_err(), IdentityError::RsaSize { bits: 1024 });
    openssl(directory, "genpkey -algorithm ED25519 -out other.pem");
    assert_eq!(load(directory, "other.pem").unwrap_err(), IdentityError::Malformed);
    openssl(directory, "ecparam -name secp521r1 -genkey -noout -out curve.pem");
    assert_eq!(load(directory, "curve.pem").unwrap_err(), IdentityError::Malformed);
    openssl(directory, "pkcs8 -topk8 -passout pass:secret -in curve.pem -out encrypted.pem");
    assert_eq!(load(directory, "encrypted.pem").unwrap_err(), IdentityError::Encrypted);
    openssl(directory, "pkey -in short.pem -pubout -out public.pem");
    assert_eq!(load(directory, "public.pem").unwrap_err(), IdentityError::NoPrivateKey);
    assert_eq!(load_public(directory, "public.pem"), Err(IdentityError::RsaSize { bits: 1024 }));
    for private in ["short.pem", "encrypted.pem", "curve.pem"] {
        assert_eq!(load_public(directory, private), Err(IdentityError::Private));
    }
    openssl(directory, "pkey -in other.pem -pubout -out public.pem");
    assert_eq!(load_public(directory, "public.pem"), Err(IdentityError::BadPublicKey));
    assert_eq!(PublicIdentity::from_pem("nothing"), Err(IdentityError::NoPublicKey));
}

#[test]
fn generated_identities_survive_their_pem() {
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    for algorithm in [Algorithm::EcdsaP256, Algorithm::EcdsaP384, Algorithm::Rsa] {
        let identity = HostIdentity::generate(algorithm, &mut rng).unwrap();
        let again = HostIdentity::from_pem(&identity.to_pem()).unwrap();
        assert_eq!(again.public(), identity.public());
        assert!(identity.hit().is_orchid());
        let public =
            PublicIdentity::from_wire(identity.public().algorithm_number(), identity.public().encoded()).unwrap();
        assert_eq!(public.verify(MESSAGE, &again.sign(&mut rng, MESSAGE)), Ok(()));
        let shown = format!("{identity:?}");
        assert_eq!(shown, format!("HostIdentity({})", identity.hit()));
    }
}
