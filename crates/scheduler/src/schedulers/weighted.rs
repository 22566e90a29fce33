//! Smooth weighted round robin: each open path gains its weight, the richest sends and pays the sum of the weights. Paths
//! take their part in the finest mixture possible (as nginx mixes its upstream servers).

use crate::{Decision, PacketMeta, PathId, PathScheduler, PathView, Reference};
use clock::Instant;

pub(super) const REFERENCE: Reference = Reference {
    name: "weighted",
    choice: "each open path gains B; the richest sends and pays ΣB",
    source: "smooth weighted round robin, as nginx has it",
};

/// The scheduler. The weight of a path is its rate, or 1 where it is not known.
#[derive(Clone, Debug, Default)]
pub struct Weighted {
    credits: Vec<(PathId, i128)>,
}

impl PathScheduler for Weighted {
    fn select(&mut self, _packet: &PacketMeta, paths: &[PathView], _now: Instant) -> Decision {
        let mut total = 0;
        let mut best: Option<(PathId, i128)> = None;
        for path in paths.iter().filter(|path| path.open) {
            let weight = i128::from(path.rate.max(1));
            total += weight;
            let credit = match self.credits.iter_mut().find(|(id, _)| *id == path.id) {
                Some((_, credit)) => {
                    *credit += weight;
                    *credit
                }
                None => {
                    // Numbers of paths are not used again, so what is not among the paths any more is history.
                    self.credits.retain(|(id, _)| paths.iter().any(|path| path.id == *id));
                    self.credits.push((path.id, weight));
                    weight
                }
            };
            if best.is_none_or(|(_, most)| credit > most) {
                best = Some((path.id, credit));
            }
        }
        let Some((id, _)) = best else { return Decision::Blocked };
        for (_, credit) in self.credits.iter_mut().filter(|(path, _)| *path == id) {
            *credit -= total;
        }
        Decision::Send(id)
    }
}
