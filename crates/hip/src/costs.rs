//! What cryptography costs: operations counted by kind, so that a model of a machine can charge time for them.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many operations of each kind a host has done since it was made. They only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Costs {
    /// Hashes of something as long as a packet or shorter: puzzles that were tried or checked.
    pub hashes: u64,
    /// HMACs computed or checked.
    pub macs: u64,
    /// Diffie-Hellman: key pairs made, secrets agreed on.
    pub agreements: u64,
    /// Signatures made.
    pub signatures: u64,
    /// Signatures checked.
    pub verifications: u64,
}

impl Costs {
    /// The operations with public keys, the dear ones.
    pub fn public_key(&self) -> u64 {
        self.agreements.saturating_add(self.signatures).saturating_add(self.verifications)
    }

    /// What has come since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            hashes: self.hashes.saturating_sub(earlier.hashes),
            macs: self.macs.saturating_sub(earlier.macs),
            agreements: self.agreements.saturating_sub(earlier.agreements),
            signatures: self.signatures.saturating_sub(earlier.signatures),
            verifications: self.verifications.saturating_sub(earlier.verifications),
        }
    }

    pub(crate) fn add(&mut self, more: &Self) {
        self.hashes = self.hashes.saturating_add(more.hashes);
        self.macs = self.macs.saturating_add(more.macs);
        self.agreements = self.agreements.saturating_add(more.agreements);
        self.signatures = self.signatures.saturating_add(more.signatures);
        self.verifications = self.verifications.saturating_add(more.verifications);
    }
}

/// Counts where the operations are done. A host and its sessions share one.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    hashes: AtomicU64,
    macs: AtomicU64,
    agreements: AtomicU64,
    signatures: AtomicU64,
    verifications: AtomicU64,
}

impl Meter {
    pub(crate) fn hashes(&self, count: u64) {
        self.hashes.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn mac(&self) {
        self.macs.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn agreement(&self) {
        self.agreements.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn signature(&self) {
        self.signatures.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn verification(&self) {
        self.verifications.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Costs {
        Costs {
            hashes: self.hashes.load(Ordering::Relaxed),
            macs: self.macs.load(Ordering::Relaxed),
            agreements: self.agreements.load(Ordering::Relaxed),
            signatures: self.signatures.load(Ordering::Relaxed),
            verifications: self.verifications.load(Ordering::Relaxed),
        }
    }
}
