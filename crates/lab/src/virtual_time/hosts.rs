//! Hosts with Sinnet in virtual time: the daemon's configuration, without a daemon.

use clock::Rng;
use hip::identity::{Algorithm, HostIdentity};
use hip::{Route, UDP_PORT};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use std::net::SocketAddr;
use wedge::{LocalPath, PeerConfig, PeerRoute, Wedge, WedgeConfig};
use wire::{Hit, Lsi};

use crate::LabError;
use crate::plan::Plan;
use crate::site::MTU;

const LSIS: [Lsi; 2] = [Lsi([198, 18, 0, 2]), Lsi([198, 18, 0, 1])];

/// The two hosts of the main flow, the server first, and the randomness of each. The same seed gives the same hosts, keys and all.
pub(crate) fn pair(
    plan: &Plan,
    paths: &[usize],
    mut rng: Rng,
    keylog: bool,
) -> Result<[(Wedge, ChaCha20Rng); 2], LabError> {
    let mut seed = || {
        let mut seed = [0; 32];
        rng.fill(&mut seed);
        ChaCha20Rng::from_seed(seed)
    };
    let mut rngs = [seed(), seed()];
    let [server, client] = &mut rngs;
    let identities = [identity(server)?, identity(client)?];
    let hits = [identities[0].hit(), identities[1].hit()];
    let [server, client] = identities;
    let [mut first, mut second] = rngs;
    let pair = [
        host(plan, paths, 0, server, hits, keylog, &mut first)?,
        // The keys are the same at both ends.
        host(plan, paths, 1, client, hits, false, &mut second)?,
    ];
    let [server, client] = pair;
    Ok([(server, first), (client, second)])
}

fn identity(rng: &mut ChaCha20Rng) -> Result<HostIdentity, LabError> {
    HostIdentity::generate(Algorithm::EcdsaP384, rng).map_err(|error| failure("making a host identity", error))
}

/// The host at one end: 0 is the server.
fn host(
    plan: &Plan,
    paths: &[usize],
    end: usize,
    identity: HostIdentity,
    hits: [Hit; 2],
    keylog: bool,
    rng: &mut ChaCha20Rng,
) -> Result<Wedge, LabError> {
    let locator = |attachment: usize| SocketAddr::new(plan.topology.address(attachment), UDP_PORT);
    let other = 1 - end;
    let mut local_paths: Vec<LocalPath> = Vec::new();
    let mut locators: Vec<SocketAddr> = Vec::new();
    let mut routes = Vec::new();
    for (number, path) in plan.paths().iter().enumerate().filter(|(number, _)| paths.contains(number)) {
        let [from, to] = path.ends;
        let [local, remote] = if end == 0 { [from, to] } else { [to, from] }.map(locator);
        let out = if end == 0 { &path.there } else { &path.back };
        let (rate, delay) = (plan.told_rate(out), plan.delay(out));
        if !local_paths.iter().any(|known| known.locator == local) {
            let mut path = LocalPath::new(format!("path{}", number + 1), local);
            (path.rate, path.delay, path.mtu) = (rate, delay, MTU);
            local_paths.push(path);
        }
        if !locators.contains(&remote) {
            locators.push(remote);
        }
        let mut known = PeerRoute::new(Route { local, remote });
        (known.rate, known.delay) = (rate, Some(delay));
        routes.push(known);
    }
    let mut config = WedgeConfig::new(lsi(end), local_paths);
    config.hip.feedback = !plan.flow().rates_configured;
    if let Some(rule) = plan.path_rule() {
        config.congestion = rule;
    }
    config.scheduler = plan.flow().scheduler.parse().unwrap_or_default();
    config.keylog = keylog;
    let mut wedge = Wedge::new(identity, config, rng).map_err(|error| failure("configuring a host", error))?;
    let hit = hits.get(other).copied().unwrap_or(hits[0]);
    let name = if other == 0 { "server" } else { "client" };
    let mut peer = PeerConfig::new(name, hit, lsi(other), locators);
    peer.routes = routes;
    wedge.add_peer(peer);
    Ok(wedge)
}

fn lsi(end: usize) -> Lsi {
    if end == 0 { LSIS[0] } else { LSIS[1] }
}

fn failure(program: &str, error: impl std::fmt::Display) -> LabError {
    LabError::Program { program: program.to_owned(), message: error.to_string() }
}
