//! Access links that come and go while the wedge runs.

use crate::config::LocalPath;
use crate::wedge::{Wedge, WedgeError, room};
use clock::Instant;
use rand_core::CryptoRng;
use std::net::IpAddr;

impl Wedge {
    /// There is a further access link. Associations get paths on it; packets that are too long for it are refused from now
    /// on.
    ///
    /// # Errors
    /// [`WedgeError`] where a path has its address already, or it cannot carry packets.
    pub fn add_path(&mut self, now: Instant, rng: &mut dyn CryptoRng, path: LocalPath) -> Result<(), WedgeError> {
        if let Some(other) = self.config.paths.iter().find(|other| other.locator.ip() == path.locator.ip()) {
            return Err(WedgeError::SameAddress(other.name.clone(), path.name));
        }
        self.max_payload = self.max_payload.min(room(&self.config, &path)?);
        let (locator, backup) = (path.locator, path.backup);
        self.config.paths.push(path);
        self.host.add_locator(now, rng, locator, backup);
        self.drive_host(now, rng);
        self.settle(now, rng);
        Ok(())
    }

    /// The access link with this address takes packets of another size from now on, in bytes. What its paths carry is looked for
    /// again; the TUN device stays as it was, so that a larger one is of use up to [`Wedge::tun_mtu`].
    ///
    /// # Errors
    /// [`WedgeError::NoRoom`] where it cannot carry packets; then all stays as it was.
    pub fn set_path_mtu(
        &mut self,
        now: Instant,
        rng: &mut dyn CryptoRng,
        address: IpAddr,
        mtu: u16,
    ) -> Result<(), WedgeError> {
        let Some(at) = self.config.paths.iter().position(|path| path.locator.ip() == address) else { return Ok(()) };
        let Some(known) = self.config.paths.get(at) else { return Ok(()) };
        let changed = LocalPath { mtu, ..known.clone() };
        room(&self.config, &changed)?;
        if let Some(known) = self.config.paths.get_mut(at) {
            *known = changed;
        }
        for index in 0..self.peers.len() {
            let Some(peer) = self.peers.get_mut(index) else { break };
            let mut all = peer.paths.iter_mut().chain(&mut peer.successors).collect::<Vec<_>>();
            let ours = all.iter_mut().filter(|path| path.route.local.ip() == address);
            let mut is_concerned = false;
            for path in ours {
                path.parameters.mtu = mtu;
                path.mtu.set_most(now, mtu);
                is_concerned = true;
            }
            if is_concerned {
                self.touch(index);
            }
        }
        self.settle(now, rng);
        Ok(())
    }

    /// An access link is gone, or its address is. Packets that waited for its paths go on the others.
    pub fn remove_path(&mut self, now: Instant, rng: &mut dyn CryptoRng, address: IpAddr) {
        self.config.paths.retain(|path| path.locator.ip() != address);
        self.host.remove_locator(now, rng, address);
        self.drive_host(now, rng);
        self.settle(now, rng);
    }
}
