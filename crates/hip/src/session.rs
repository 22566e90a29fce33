//! What a base exchange agrees on: the keys that protect control packets, and how packets are signed and checked.

use std::sync::Arc;

use rand_core::CryptoRng;
use wire::Hit;
use wire::hip::{Builder, HostId, Packet, Parameter, Signature, TooLong};

use crate::costs::Meter;
use crate::dh::{Group, SharedSecret};
use crate::esp::EspSuite;
use crate::identity::{HostIdentity, PublicIdentity};
use crate::keymat::{EspKeyPair, HipKeys, Keymat};
use crate::rhash::Rhash;

/// The secrets and the peer's identity of one association.
pub(crate) struct Session {
    pub(crate) rhash: Rhash,
    pub(crate) keys: HipKeys,
    pub(crate) keymat: Keymat,
    /// Where unused KEYMAT begins, bytes. It never goes back: a key that is drawn twice breaks AES-GCM.
    pub(crate) keymat_next: u16,
    /// The group of all Diffie-Hellman exchanges of the association.
    pub(crate) group: Group,
    pub(crate) suite: EspSuite,
    pub(crate) peer: PublicIdentity,
    /// Counts what is computed here.
    pub(crate) meter: Arc<Meter>,
}

/// Why a packet of an association is not the peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forged {
    Mac,
    Signature,
}

impl Session {
    /// The keys of a pair of ESP security associations at `index` of the KEYMAT, and no less than the index after all
    /// that was drawn before. Nothing where the KEYMAT ends.
    pub(crate) fn draw_esp(&mut self, index: u16, local: Hit) -> Option<EspKeyPair> {
        if index < self.keymat_next {
            return None;
        }
        let (keys, next) = self.keymat.esp_keys(self.suite, index, &local, &self.peer.hit()).ok()?;
        self.keymat_next = next;
        Some(keys)
    }

    /// The keys of a pair of ESP security associations that have a Diffie-Hellman exchange of their own, and the KEYMAT
    /// that they begin (RFC 7402 §6.10: index 0).
    pub(crate) fn fresh_esp(&self, kij: &SharedSecret, local: Hit) -> Option<(EspKeyPair, Keymat, u16)> {
        let keymat = self.keymat.renewed(kij);
        let (keys, next) = keymat.esp_keys(self.suite, 0, &local, &self.peer.hit()).ok()?;
        Some((keys, keymat, next))
    }

    /// Bytes that a pair of ESP security associations takes of KEYMAT.
    pub(crate) fn pair_len(&self) -> u16 {
        // At most 2 · (32 + 32).
        (2 * (self.suite.encryption_key_len() + self.suite.authentication_key_len())) as u16
    }

    /// Checks HIP_MAC and HIP_SIGNATURE (RFC 7401 §6.4.1), the cheap one first.
    pub(crate) fn check(&self, packet: &Packet<'_>) -> Result<(), Forged> {
        self.check_mac(packet)?;
        self.check_signature(packet)
    }

    /// Checks HIP_MAC alone: whether a packet has come before is to be found out before the signature costs anything.
    pub(crate) fn check_mac(&self, packet: &Packet<'_>) -> Result<(), Forged> {
        check_mac(self.rhash, &self.keys, packet, &self.meter)
    }

    /// Checks HIP_MAC_2 and HIP_SIGNATURE of an R2 (RFC 7401 §6.4.2).
    pub(crate) fn check_r2(&self, packet: &Packet<'_>, host_id: &HostId) -> Result<(), Forged> {
        let mac = packet.hip_mac_2().ok_or(Forged::Mac)?;
        let covered = packet.covered_by_mac_2(host_id).ok_or(Forged::Mac)?;
        self.meter.mac();
        if !self.rhash.hmac_verify(&self.keys.theirs.integrity, &[&covered], mac) {
            return Err(Forged::Mac);
        }
        self.check_signature(packet)
    }

    /// Checks HIP_SIGNATURE.
    pub(crate) fn check_signature(&self, packet: &Packet<'_>) -> Result<(), Forged> {
        let signature = packet.hip_signature().ok_or(Forged::Signature)?;
        let covered = packet.covered_by_signature().ok_or(Forged::Signature)?;
        self.meter.verification();
        verify(&self.peer, &covered, signature)
    }

    /// Ends a packet with HIP_MAC and HIP_SIGNATURE.
    pub(crate) fn seal(
        &self,
        builder: Builder,
        identity: &HostIdentity,
        rng: &mut dyn CryptoRng,
    ) -> Result<Vec<u8>, TooLong> {
        self.meter.mac();
        self.meter.signature();
        let builder = builder.anonymous(identity.is_anonymous());
        let mac = self.rhash.hmac(&self.keys.ours.integrity, &[&builder.covered()]);
        sign(builder.push(&Parameter::HipMac(mac)), identity, rng).finish()
    }

    /// Ends an R2 with HIP_MAC_2 and HIP_SIGNATURE.
    pub(crate) fn seal_r2(
        &self,
        builder: Builder,
        identity: &HostIdentity,
        rng: &mut dyn CryptoRng,
    ) -> Result<Vec<u8>, TooLong> {
        let builder = builder.anonymous(identity.is_anonymous());
        let covered = builder.covered_with(&Parameter::HostId(host_id(identity.public())));
        self.meter.mac();
        self.meter.signature();
        let mac = self.rhash.hmac(&self.keys.ours.integrity, &[&covered]);
        sign(builder.push(&Parameter::HipMac2(mac)), identity, rng).finish()
    }
}

/// Checks HIP_MAC.
pub(crate) fn check_mac(rhash: Rhash, keys: &HipKeys, packet: &Packet<'_>, meter: &Meter) -> Result<(), Forged> {
    let mac = packet.hip_mac().ok_or(Forged::Mac)?;
    let covered = packet.covered_by_mac().ok_or(Forged::Mac)?;
    meter.mac();
    if rhash.hmac_verify(&keys.theirs.integrity, &[&covered], mac) { Ok(()) } else { Err(Forged::Mac) }
}

/// Appends HIP_SIGNATURE over what there is.
pub(crate) fn sign(builder: Builder, identity: &HostIdentity, rng: &mut dyn CryptoRng) -> Builder {
    let builder = builder.anonymous(identity.is_anonymous());
    let bytes = identity.sign(rng, &builder.covered());
    let algorithm = identity.public().signature_algorithm();
    builder.push(&Parameter::HipSignature(Signature { algorithm, bytes }))
}

/// Checks a signature with an identity, the algorithm's number included.
pub(crate) fn verify(identity: &PublicIdentity, covered: &[u8], signature: &Signature) -> Result<(), Forged> {
    if signature.algorithm != identity.signature_algorithm() {
        return Err(Forged::Signature);
    }
    identity.verify(covered, &signature.bytes).map_err(|_| Forged::Signature)
}

/// An identity as a HOST_ID without a name.
pub(crate) fn host_id(identity: &PublicIdentity) -> HostId {
    HostId {
        algorithm: identity.algorithm_number(),
        identity: identity.encoded().to_vec(),
        domain_type: 0,
        domain: Vec::new(),
    }
}
