//! Certificates and configurations of both ends.

use std::sync::Arc;

use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{ClientConfig, EndpointConfig, ServerConfig, TransportConfig, congestion};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use crate::Congestion;

/// The name that the server's certificate has.
pub(crate) const NAME: &str = "server";

fn told(error: &dyn std::fmt::Display) -> String {
    format!("making a certificate: {error}")
}

/// A server, and its certificate. Ed25519, because its signatures are all of one length, so that the same seed gives packets of the
/// same sizes.
pub(crate) fn server(congestion: Congestion) -> Result<(ServerConfig, CertificateDer<'static>), String> {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).map_err(|error| told(&error))?;
    let mut parameters = rcgen::CertificateParams::new([NAME.to_owned()]).map_err(|error| told(&error))?;
    parameters.serial_number = Some(1.into());
    let certificate = parameters.self_signed(&key).map_err(|error| told(&error))?.der().clone();
    let server = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .and_then(|builder| {
            let key = PrivatePkcs8KeyDer::from(key.serialize_der());
            builder.with_no_client_auth().with_single_cert(vec![certificate.clone()], key.into())
        });
    let server = QuicServerConfig::try_from(server.map_err(|error| told(&error))?).map_err(|error| told(&error))?;
    let mut server = ServerConfig::with_crypto(Arc::new(server));
    server.transport_config(Arc::new(transport(congestion)));
    Ok((server, certificate))
}

/// A client of the server with this certificate.
pub(crate) fn client(congestion: Congestion, certificate: CertificateDer<'static>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).map_err(|error| told(&error))?;
    let client = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map(|builder| builder.with_root_certificates(roots).with_no_client_auth());
    let client = QuicClientConfig::try_from(client.map_err(|error| told(&error))?).map_err(|error| told(&error))?;
    let mut client = ClientConfig::new(Arc::new(client));
    client.transport_config(Arc::new(transport(congestion)));
    Ok(client)
}

/// An end's randomness.
pub(crate) fn endpoint(seed: u64, end: u8) -> Arc<EndpointConfig> {
    let mut config = EndpointConfig::default();
    let mut bytes = [end; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    config.rng_seed(Some(bytes));
    Arc::new(config)
}

fn transport(congestion: Congestion) -> TransportConfig {
    let mut config = TransportConfig::default();
    match congestion {
        Congestion::Cubic => config.congestion_controller_factory(Arc::new(congestion::CubicConfig::default())),
        Congestion::NewReno => config.congestion_controller_factory(Arc::new(congestion::NewRenoConfig::default())),
        Congestion::Bbr => config.congestion_controller_factory(Arc::new(congestion::BbrConfig::default())),
    };
    config
}
