//! Access links that come and go while the wedge runs.

use crate::config::LocalPath;
use crate::wedge::{Wedge, WedgeError, room};
use clock::Instant;
use rand_core::CryptoRng;
use std::net::IpAddr;

impl Wedge {
    /// There is a further access link. Associations get paths on it; packets that are too long for it are refused from now
    /// on ([`Wedge::tun_mtu`]).
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

    /// An access link is gone, or its address is. Packets that waited for its paths go on the others.
    pub fn remove_path(&mut self, now: Instant, rng: &mut dyn CryptoRng, address: IpAddr) {
        self.config.paths.retain(|path| path.locator.ip() != address);
        self.host.remove_locator(now, rng, address);
        self.drive_host(now, rng);
        self.settle(now, rng);
    }
}
