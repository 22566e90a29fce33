//! The rules and their names. A new rule is its file, its module here, and a line in the list at the end.

mod balia;
mod bbr;
mod bbr3;
mod bounds;
mod cdg;
mod chd;
mod compound;
mod coupled;
mod cubic;
pub mod daimd;
mod ewtcp;
mod hd;
pub mod lia;
mod lia_byte;
mod mhip;
mod new_reno;
mod olia;
mod partial_bytes;
mod policer;
mod reno_sp;
mod rp1;
mod rp2;
mod semicoupled;
mod sinnet;
mod vegas;
mod wvegas;

pub use balia::Balia;
pub use bbr::Bbr;
pub use bbr3::Bbr3;
pub use cdg::Cdg;
pub use compound::Compound;
pub use coupled::Coupled;
pub use cubic::Cubic;
pub use daimd::{Daimd, DaimdConfig};
pub use ewtcp::Ewtcp;
pub use hd::Hd;
pub use lia::Lia;
pub use lia_byte::LiaByte;
pub use mhip::{Growth, Mhip};
pub use new_reno::NewReno;
pub use olia::{Olia, Ranking};
pub use reno_sp::RenoSp;
pub use rp1::Rp1;
pub use rp2::Rp2;
pub use semicoupled::Semicoupled;
pub use sinnet::Sinnet;
pub use vegas::{Divisor, Vegas};
pub use wvegas::Wvegas;

use std::str::FromStr;

use clock::Rng;

use crate::custom::{Custom, CustomRule};
use crate::delivery::{LostPacket, RateDecision, RateSample};
use crate::engine::Acked;
use crate::group::Group;
use crate::reference::Reference;
use crate::rule::{Backoff, Cause, Kind, Round, RoundDecision, WindowRule};
use crate::tunable::BadTunable;

/// One line a rule: its name in scenario files, its variant and type, what it is, and where its file has it in formulas.
macro_rules! registry {
    ($($name:literal => $rule:ident($type:ty), $about:literal, $reference:path;)*) => {
        /// What each rule's file tells of it, in the order of [`Rule::NAMES`].
        pub(crate) const REFERENCE: &[Reference] = &[$($reference),*];

        /// Any rule. An enumeration rather than a trait object: the choice costs a predictable jump, and rules stay
        /// plain values inside their controllers.
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub enum Rule {
            $(#[doc = $about] $rule($type),)*
            /// From outside of this crate.
            Custom(Custom),
        }

        impl Rule {
            /// The names of all rules, as scenario files write them.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// The rule's name.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$rule(_) => $name,)* Self::Custom(rule) => rule.name() }
            }

            /// What the rule is, in a line.
            pub fn about(&self) -> &'static str {
                match self { $(Self::$rule(_) => $about,)* Self::Custom(_) => "From outside." }
            }

            /// A rule from outside of this crate, for whoever takes a [`Rule`]. No text names it.
            pub fn custom(name: &'static str, rule: impl CustomRule + 'static) -> Self {
                Self::Custom(Custom::new(name, rule))
            }

            fn by_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$rule(<$type>::default())),)*
                    _ => None,
                }
            }
        }

        impl WindowRule for Rule {
            fn kind(&self) -> Kind {
                match self { $(Self::$rule(rule) => rule.kind(),)* Self::Custom(rule) => rule.kind() }
            }
            fn path_added(&mut self, path: usize) {
                match self { $(Self::$rule(rule) => rule.path_added(path),)* Self::Custom(rule) => rule.path_added(path) }
            }
            fn path_changed(&mut self, path: usize) {
                match self { $(Self::$rule(rule) => rule.path_changed(path),)* Self::Custom(rule) => rule.path_changed(path) }
            }
            fn unit_changed(&mut self, path: usize, ratio: f64) {
                match self { $(Self::$rule(rule) => rule.unit_changed(path, ratio),)* Self::Custom(rule) => rule.unit_changed(path, ratio) }
            }
            fn seed(&mut self, rng: Rng) {
                match self { $(Self::$rule(rule) => rule.seed(rng),)* Self::Custom(rule) => rule.seed(rng) }
            }
            fn tune(&mut self, name: &str, value: &str) -> Result<(), BadTunable> {
                match self { $(Self::$rule(rule) => rule.tune(name, value),)* Self::Custom(rule) => rule.tune(name, value) }
            }
            #[inline]
            fn acknowledged(&mut self, path: usize, group: Group<'_>, acked: &Acked) -> bool {
                match self { $(Self::$rule(rule) => rule.acknowledged(path, group, acked),)* Self::Custom(rule) => rule.acknowledged(path, group, acked) }
            }
            #[inline]
            fn slow_start(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
                match self { $(Self::$rule(rule) => rule.slow_start(path, group, acked),)* Self::Custom(rule) => rule.slow_start(path, group, acked) }
            }
            #[inline]
            fn increase(&mut self, path: usize, group: Group<'_>, acked: f64) -> f64 {
                match self { $(Self::$rule(rule) => rule.increase(path, group, acked),)* Self::Custom(rule) => rule.increase(path, group, acked) }
            }
            fn decrease(&mut self, path: usize, group: Group<'_>, cause: Cause) -> Backoff {
                match self { $(Self::$rule(rule) => rule.decrease(path, group, cause),)* Self::Custom(rule) => rule.decrease(path, group, cause) }
            }
            fn on_round(&mut self, path: usize, group: Group<'_>, round: &Round) -> RoundDecision {
                match self { $(Self::$rule(rule) => rule.on_round(path, group, round),)* Self::Custom(rule) => rule.on_round(path, group, round) }
            }
            fn limited(&mut self, path: usize, group: Group<'_>, acked: f64) {
                match self { $(Self::$rule(rule) => rule.limited(path, group, acked),)* Self::Custom(rule) => rule.limited(path, group, acked) }
            }
            fn borne(&mut self, path: usize, group: Group<'_>) {
                match self { $(Self::$rule(rule) => rule.borne(path, group),)* Self::Custom(rule) => rule.borne(path, group) }
            }
            fn undone(&mut self, path: usize, group: Group<'_>) {
                match self { $(Self::$rule(rule) => rule.undone(path, group),)* Self::Custom(rule) => rule.undone(path, group) }
            }
            fn sampled(&mut self, path: usize, group: Group<'_>, sample: &RateSample) -> RateDecision {
                match self { $(Self::$rule(rule) => rule.sampled(path, group, sample),)* Self::Custom(rule) => rule.sampled(path, group, sample) }
            }
            fn lost(&mut self, path: usize, group: Group<'_>, packet: &LostPacket) {
                match self { $(Self::$rule(rule) => rule.lost(path, group, packet),)* Self::Custom(rule) => rule.lost(path, group, packet) }
            }
            #[inline]
            fn pace(&self, path: usize) -> Option<u64> {
                match self { $(Self::$rule(rule) => rule.pace(path),)* Self::Custom(rule) => rule.pace(path) }
            }
        }
    };
}

impl FromStr for Rule {
    type Err = UnknownRule;

    /// A name, and tunables after a colon if wanted: `cubic`, `daimd:high=0.9,low=0.3`.
    fn from_str(text: &str) -> Result<Self, UnknownRule> {
        let (name, tunables) = text.split_once(':').unwrap_or((text, ""));
        let mut rule = Self::by_name(name).ok_or_else(|| UnknownRule::Name { name: name.to_owned() })?;
        for tunable in tunables.split(',').filter(|tunable| !tunable.is_empty()) {
            let (key, value) = tunable.split_once('=').unwrap_or((tunable, ""));
            rule.tune(key.trim(), value.trim()).map_err(|source| UnknownRule::Tunable {
                rule: rule.name(),
                tunable: tunable.to_owned(),
                source,
            })?;
        }
        Ok(rule)
    }
}

/// A name that no rule has, or a tunable that the rule has not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownRule {
    /// The name.
    #[error("no congestion control is called {name:?}; there are {}", Rule::NAMES.join(", "))]
    Name {
        /// The name asked for.
        name: String,
    },
    /// The tunable.
    #[error("the congestion control {rule:?} cannot be set to {tunable:?}: {source}")]
    Tunable {
        /// The rule's name.
        rule: &'static str,
        /// What was asked for.
        tunable: String,
        /// Why not.
        source: BadTunable,
    },
}

registry! {
    "newreno" => NewReno(NewReno), "RFC 5681: one packet more a round trip, half after a loss; uncoupled on several paths.", new_reno::REFERENCE;
    "cubic" => Cubic(Cubic), "RFC 9438: a cubic function of time.", cubic::REFERENCE;
    "bbr" => Bbr(Bbr), "BBR version 1: by the rate of delivery and the lowest round-trip time.", bbr::REFERENCE;
    "bbr3" => Bbr3(Bbr3), "BBR version 3: as version 1, within bounds that losses tell.", bbr3::REFERENCE;
    "vegas" => Vegas(Vegas), "Brakmo and Peterson 1995: by the round-trip time.", vegas::REFERENCE;
    "reno-sp" => RenoSp(RenoSp), "Reno as SCTP has it, RFC 9260.", reno_sp::REFERENCE;
    "reno-mp" => RenoMp(RenoSp), "Reno of SCTP on each path, uncoupled.", reno_sp::OF_EACH_PATH;
    "rp1" => Rp1(Rp1), "Resource pooling by thresholds (RP-MP-v1).", rp1::REFERENCE;
    "rp2" => Rp2(Rp2), "Resource pooling by bandwidths (RP-MP-v2).", rp2::REFERENCE;
    "lia-byte" => LiaByte(LiaByte), "LIA in whole bytes with coupled slow start, as for CMT-SCTP.", lia_byte::REFERENCE;
    "lia" => Lia(Lia), "RFC 6356: linked increases.", lia::REFERENCE;
    "olia" => Olia(Olia), "Khalili and others 2013: opportunistic linked increases.", olia::REFERENCE;
    "balia" => Balia(Balia), "Peng and others 2016: balanced linked adaptation.", balia::REFERENCE;
    "wvegas" => Wvegas(Wvegas), "Cao and others 2012: Vegas, weighted over the paths.", wvegas::REFERENCE;
    "daimd" => Daimd(Daimd<Lia>), "LIA with early reductions by delay.", daimd::OVER_LIA;
    "daimd-olia" => DaimdOlia(Daimd<Olia>), "OLIA with early reductions by delay.", daimd::OVER_OLIA;
    "daimd-balia" => DaimdBalia(Daimd<Balia>), "BALIA with early reductions by delay.", daimd::OVER_BALIA;
    "mhip" => Mhip(Mhip), "The two-level control of multipath HIP.", mhip::REFERENCE;
    "sinnet" => Sinnet(Sinnet), "CUBIC, or Reno where that has more, with losses that are not congestion's repaired only.", sinnet::REFERENCE;
    "cdg" => Cdg(Cdg), "Hayes and Armitage 2011: by the gradient of the delay.", cdg::REFERENCE;
    "chd" => Chd(chd::Chd), "Hayes and Armitage 2010: delay-based AIMD once a round, with a shadow window.", chd::REFERENCE;
    "hd" => Hd(Hd), "Budzisz and others 2009: delay-based AIMD.", hd::REFERENCE;
    "compound" => Compound(Compound), "Tan and others 2006: Reno and a second window by delay.", compound::REFERENCE;
    "ewtcp" => Ewtcp(Ewtcp), "Each of n paths grows by 1/√n packets a round.", ewtcp::REFERENCE;
    "coupled" => Coupled(Coupled), "All windows are one Reno: a point of reference.", coupled::REFERENCE;
    "semicoupled" => Semicoupled(Semicoupled), "Windows grow as one Reno, each is halved alone.", semicoupled::REFERENCE;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_what_its_text_says() {
        for name in Rule::NAMES {
            assert_eq!(name.parse::<Rule>().unwrap().name(), *name);
            assert!(!name.parse::<Rule>().unwrap().about().is_empty());
        }
        let Ok(Rule::Mhip(mhip)) = "mhip:growth=coupled".parse::<Rule>() else { panic!() };
        assert_eq!(mhip.growth, Growth::Coupled);
        for (text, sentence) in [
            ("rneo", "no congestion control is called \"rneo\"; there are newreno, "),
            (
                "lia:high=1",
                "the congestion control \"lia\" cannot be set to \"high=1\": there is no such tunable; this rule has none",
            ),
            ("olia:rank=1", "there is no such tunable; there are ranking"),
            ("rp2:blocking=maybe", "its value must be on or off"),
            ("daimd-olia:high=NaN", "its value must be a number from 0 to 1"),
            ("daimd-olia:low", "its value must be a number from 0 to 1"),
        ] {
            let error = text.parse::<Rule>().unwrap_err().to_string();
            assert!(error.contains(sentence), "{error}");
        }
        assert!("daimd-olia:ranking=l2/rtt,high=0.9".parse::<Rule>().is_ok(), "of the layer and of the rule below");
    }

    /// Every sender of a simulation of ten thousand flows has one.
    #[test]
    fn a_rule_is_small() {
        assert!(size_of::<Rule>() <= 96, "{}", size_of::<Rule>());
    }
}
