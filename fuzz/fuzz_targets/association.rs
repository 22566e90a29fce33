//! Two hosts, and a network that the input drives: it delivers, loses, repeats, changes and invents packets and lets
//! time pass. Nothing panics, deadlines lie in the future, and two hosts that are established have the same keys.
#![no_main]

use std::collections::BTreeMap;
use std::sync::OnceLock;

use clock::{Duration, Instant};
use hip::esp::{InboundSa, OutboundSa};
use hip::identity::HostIdentity;
use hip::{Event, Host, HostConfig, PathId, Peer, Route};
use libfuzzer_sys::fuzz_target;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

struct Side {
    host: Host,
    rng: ChaCha20Rng,
    paths: BTreeMap<PathId, (Route, OutboundSa, InboundSa)>,
}

const PEMS: [&str; 2] = [
    include_str!("../../vectors/hip/capture-ecdsa-p384/a.pem"),
    include_str!("../../vectors/hip/capture-ecdsa-p384/b.pem"),
];

fn side(index: usize) -> Side {
    static HITS: OnceLock<[wire::Hit; 2]> = OnceLock::new();
    let hits = HITS.get_or_init(|| PEMS.map(|pem| HostIdentity::from_pem(pem).unwrap().hit()));
    let locators = |index: usize| [1, 2].map(|net| format!("10.{net}.0.{}:10500", index + 1).parse().unwrap()).to_vec();
    let mut rng = ChaCha20Rng::seed_from_u64(index as u64);
    let mut config = HostConfig::new(locators(index));
    (config.groups, config.puzzle_difficulty) = (vec![hip::dh::Group::P256], 0);
    let mut host = Host::new(HostIdentity::from_pem(PEMS[index]).unwrap(), config, &mut rng).unwrap();
    host.add_peer(Instant::ZERO, Peer::new(hits[1 - index], locators(1 - index)));
    Side { host, rng, paths: BTreeMap::new() }
}

fuzz_target!(|input: &[u8]| {
    let mut sides = [side(0), side(1)];
    let mut now = Instant::ZERO;
    let mut flying: Vec<(usize, Route, Vec<u8>)> = Vec::new();
    let mut input = input.iter().copied();
    let mut steps = 0;
    while let Some(action) = input.next() {
        steps += 1;
        if steps > 60 {
            break;
        }
        let to = usize::from(action >> 7);
        match action & 0x0f {
            0 | 1 => {
                let peer = sides[1 - to].host.hit();
                let Side { host, rng, .. } = &mut sides[to];
                host.connect(now, rng, peer).unwrap();
            }
            2 => {
                now += Duration::from_millis(u64::from(input.next().unwrap_or(0)) * 100);
                for Side { host, rng, .. } in &mut sides {
                    host.handle_timeout(now, rng);
                    assert!(host.poll_timeout().is_none_or(|(at, _)| at > now));
                }
            }
            3 => {
                let peer = sides[1 - to].host.hit();
                let Side { host, rng, .. } = &mut sides[to];
                host.close(now, rng, peer);
            }
            4 if !flying.is_empty() => drop(flying.remove(usize::from(action >> 4 & 7) % flying.len())),
            5 if !flying.is_empty() => flying.push(flying[usize::from(action >> 4 & 7) % flying.len()].clone()),
            6 if !flying.is_empty() => {
                let index = usize::from(action >> 4 & 7) % flying.len();
                let at = usize::from(u16::from_be_bytes([input.next().unwrap_or(0), input.next().unwrap_or(0)]));
                let bytes = &mut flying[index].2;
                let bit = input.next().unwrap_or(1);
                if let Some(byte) = at.checked_rem(bytes.len()).and_then(|at| bytes.get_mut(at)) {
                    *byte ^= bit;
                }
            }
            7 => {
                let invented: Vec<u8> = input.by_ref().take(usize::from(action >> 4 & 7) * 16).collect();
                let route =
                    Route { local: "10.1.0.1:10500".parse().unwrap(), remote: "10.1.0.2:10500".parse().unwrap() };
                flying.push((to, route, invented));
            }
            8 => {
                let peer = sides[1 - to].host.hit();
                let path = PathId(u16::from(action >> 4 & 7));
                let Side { host, rng, .. } = &mut sides[to];
                host.renew_path(now, rng, peer, path);
            }
            _ if !flying.is_empty() => {
                let (to, route, bytes) = flying.remove(usize::from(action >> 4 & 7) % flying.len());
                let Side { host, rng, .. } = &mut sides[to];
                host.handle_packet(now, rng, route, &bytes);
            }
            _ => {}
        }
        for index in 0..2 {
            let side = &mut sides[index];
            while let Some(control) = side.host.poll_transmit() {
                let route = Route { local: control.route.remote, remote: control.route.local };
                flying.push((1 - index, route, control.bytes));
            }
            while let Some(event) = side.host.poll_event() {
                match event {
                    Event::PathUp { path, route, outbound, inbound, .. } => {
                        let twice = side.paths.insert(path, (route, outbound, inbound));
                        assert!(twice.is_none(), "a path's number is used twice");
                    }
                    Event::PathDown { path, .. } => assert!(side.paths.remove(&path).is_some()),
                    Event::Closed { .. } => side.paths.clear(),
                    _ => {}
                }
            }
        }
        flying.truncate(64);
    }
    // Where the two ends of a path have each other's SPI, what one seals the other opens.
    let [a, b] = &mut sides;
    for (_, outbound, _) in a.paths.values_mut() {
        if let Some((_, _, inbound)) = b.paths.values_mut().find(|(_, _, inbound)| inbound.spi() == outbound.spi()) {
            let (mut sealed, mut opened) = (Vec::new(), Vec::new());
            outbound.seal(17, b"x", &mut a.rng, &mut sealed).unwrap();
            assert_eq!(inbound.open(&sealed, &mut opened), Ok(17));
        }
    }
});
