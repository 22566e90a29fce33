//! Which rules a host can run, and what it calls them.

use std::fmt;

use crate::rule::{Family, WindowRule as _};
use crate::rules::{Rule, UnknownRule};

/// Who runs a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Host {
    /// One TCP, which has one path.
    Tcp,
    /// Multipath TCP.
    Mptcp {
        /// Subflows.
        paths: usize,
    },
    /// SCTP, which measures one round-trip time in each round trip (RFC 9260 §6.3.1).
    Sctp {
        /// Paths in use at once: one without concurrent multipath transfer.
        paths: usize,
    },
    /// Multipath HIP, whose paths come and go.
    Tunnel,
}

/// Other names of rules: those of TCPs with this rule, and those of M. Becke and others (ICC 2012, §III-B).
const ALIASES: [(&str, &str); 4] = [("reno", "newreno"), ("sack", "newreno"), ("rp-mp-v1", "rp1"), ("rp-mp-v2", "rp2")];

/// Why a host cannot run the rule of a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unfit {
    /// The host has none of that name.
    #[error("no congestion control of {host} is called {name:?}")]
    Unknown {
        /// The name.
        name: String,
        /// The host.
        host: Host,
    },
    /// It is written for another kind of host.
    #[error("no congestion control of {host} is called {name:?}, which is {family}")]
    Foreign {
        /// The rule's name.
        name: &'static str,
        /// The host.
        host: Host,
        /// What it is written for.
        family: Family,
    },
    /// It has no such tunable.
    #[error(transparent)]
    Tunable(UnknownRule),
    /// It couples paths, and the host uses one.
    #[error("{name:?} couples {}", .host.of_paths())]
    Couples {
        /// The rule's name.
        name: &'static str,
        /// The host.
        host: Host,
    },
    /// It needs samples of the rate of delivery and keeps a pace, neither of which the host has for rules.
    #[error("{name:?} sets window and pace from samples of the rate of delivery, which {host} does not take")]
    ReadsRate {
        /// The rule's name.
        name: &'static str,
        /// The host.
        host: Host,
    },
    /// It needs more round-trip times than the host measures.
    #[error("{name:?} needs the round-trip time of every packet, and {host} measures one in each round trip")]
    ReadsDelay {
        /// The rule's name.
        name: &'static str,
        /// The host.
        host: Host,
    },
}

impl Host {
    /// Whether rules of `family` have here what they are written for. Rules of SCTP count whole bytes and slow start includes
    /// their threshold, which a simulated MPTCP can do, too.
    fn runs(self, family: Family) -> bool {
        match family {
            Family::Tcp => true,
            Family::Sctp => matches!(self, Self::Sctp { .. } | Self::Mptcp { .. }),
            Family::Tunnel => self == Self::Tunnel,
        }
    }

    fn has_several_paths(self) -> bool {
        match self {
            Self::Tcp => false,
            Self::Mptcp { paths } | Self::Sctp { paths } => paths > 1,
            Self::Tunnel => true,
        }
    }

    fn of_paths(self) -> &'static str {
        match self {
            Self::Tcp => "paths, and TCP has one",
            Self::Sctp { .. } => "the paths that are in use at once, and here there is one",
            Self::Mptcp { .. } | Self::Tunnel => "the paths of a flow, and here there is one",
        }
    }

    /// Whether this host can run `rule`.
    ///
    /// # Errors
    /// Why not.
    pub fn check(self, rule: &Rule) -> Result<(), Unfit> {
        let (kind, name, host) = (rule.kind(), rule.name(), self);
        if !self.runs(kind.family) {
            return Err(Unfit::Foreign { name, host, family: kind.family });
        }
        if kind.reads_delay && matches!(self, Self::Sctp { .. }) {
            return Err(Unfit::ReadsDelay { name, host });
        }
        if kind.reads_rate && self != Self::Tcp {
            return Err(Unfit::ReadsRate { name, host });
        }
        if kind.couples && !self.has_several_paths() {
            return Err(Unfit::Couples { name, host });
        }
        Ok(())
    }

    /// The rule of a name with or without tunables, as in `cubic` or `rp-mp-v2:blocking=off`, if this host can run it.
    ///
    /// # Errors
    /// There is no such rule or tunable, or this host cannot run it.
    pub fn rule(self, text: &str) -> Result<Rule, Unfit> {
        let (name, tunables) = text.split_at(text.find(':').unwrap_or(text.len()));
        let ours = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, ours)| *ours);
        let rule = format!("{ours}{tunables}").parse::<Rule>().map_err(|error| match error {
            UnknownRule::Name { .. } => Unfit::Unknown { name: name.to_owned(), host: self },
            UnknownRule::Tunable { .. } => Unfit::Tunable(error),
        })?;
        self.check(&rule)?;
        Ok(rule)
    }

    /// The names of the rules that this host can run.
    pub fn rules(self) -> Vec<&'static str> {
        let names = Rule::NAMES.iter().copied().chain(ALIASES.map(|(alias, _)| alias));
        names.filter(|name| self.rule(name).is_ok()).collect()
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Mptcp { .. } => "MPTCP",
            Self::Sctp { .. } => "SCTP",
            Self::Tunnel => "multipath HIP",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTS: [Host; 6] = [
        Host::Tcp,
        Host::Mptcp { paths: 1 },
        Host::Mptcp { paths: 2 },
        Host::Sctp { paths: 1 },
        Host::Sctp { paths: 2 },
        Host::Tunnel,
    ];

    /// Which of [`HOSTS`] runs what.
    #[test]
    fn a_host_runs_what_fits_it() {
        for (name, hosts) in [
            ("newreno", [true; 6]),
            ("cubic", [true; 6]),
            // Delays are read where every packet tells of one.
            ("vegas", [true, true, true, false, false, true]),
            // Rates are sampled by TCP alone.
            ("bbr", [true, false, false, false, false, false]),
            // Coupling needs what is coupled.
            ("lia", [false, false, true, false, true, true]),
            ("wvegas", [false, false, true, false, false, true]),
            // SCTP's arithmetic.
            ("reno-sp", [false, true, true, true, true, false]),
            ("rp2", [false, false, true, false, true, false]),
            ("mhip", [false, false, false, false, false, true]),
        ] {
            for (host, fits) in HOSTS.into_iter().zip(hosts) {
                assert_eq!(host.rule(name).is_ok(), fits, "{name} {host:?}");
                assert_eq!(host.rules().contains(&name), fits, "{name} {host:?}");
            }
        }
    }

    #[test]
    fn a_rule_has_other_names() {
        for (alias, name) in ALIASES {
            assert_eq!(Host::Sctp { paths: 2 }.rule(alias).unwrap().name(), name);
            assert!(Host::Sctp { paths: 2 }.rules().contains(&alias));
        }
        let blocking = Host::Sctp { paths: 2 }.rule("rp-mp-v2:blocking=maybe").unwrap_err().to_string();
        assert!(blocking.contains("\"rp2\" cannot be set to \"blocking=maybe\""), "{blocking}");
    }

    #[test]
    fn what_does_not_fit_is_told() {
        for (host, text, sentence) in [
            (Host::Tunnel, "rp2", "no congestion control of multipath HIP is called \"rp2\", which is SCTP's"),
            (Host::Tcp, "mhip", "no congestion control of TCP is called \"mhip\", which is multipath HIP's"),
            (Host::Tcp, "rneo", "no congestion control of TCP is called \"rneo\""),
            (Host::Tcp, "lia", "\"lia\" couples paths, and TCP has one"),
            (
                Host::Tunnel,
                "bbr",
                "\"bbr\" sets window and pace from samples of the rate of delivery, which multipath HIP does not take",
            ),
            (
                Host::Sctp { paths: 1 },
                "lia",
                "\"lia\" couples the paths that are in use at once, and here there is one",
            ),
        ] {
            assert_eq!(host.rule(text).unwrap_err().to_string(), sentence);
        }
    }
}
