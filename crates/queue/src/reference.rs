//! What the reference tells of each discipline: when it drops or marks, and where that comes from.

/// A discipline in formulas. `q` is what waits, `t` the time that a packet has waited; parameters are called as in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reference {
    /// The name in files; "drop-tail" of a queue that is only a length.
    pub name: &'static str,
    /// What it does.
    pub rule: &'static str,
    /// Paper or RFC, with the section.
    pub source: &'static str,
}

/// Drop-tail, and the others in the order of [`QueueConfig::NAMES`](crate::QueueConfig::NAMES).
pub const REFERENCE: &[Reference] = crate::disciplines::REFERENCE;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QueueConfig;

    #[test]
    fn every_discipline_is_in_the_reference() {
        let names: Vec<&str> = REFERENCE.iter().map(|reference| reference.name).collect();
        assert_eq!((names[0], &names[1..]), ("drop-tail", QueueConfig::NAMES));
    }
}
