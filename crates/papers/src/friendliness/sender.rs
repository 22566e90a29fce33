//! Who sends: a TCP, an MPTCP, an SCTP of several paths, or Sinnet as it ships.

use std::fmt;
use std::str::FromStr;

/// A sender and its congestion control, as `tcp:cubic`, `mptcp:lia`, `cmt-sctp`, `sinnet` or `sinnet:mhip`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    protocol: Protocol,
    congestion: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Tcp,
    Mptcp,
    CmtSctp,
    Sinnet,
}

const PROTOCOLS: [(&str, Protocol); 4] =
    [("tcp", Protocol::Tcp), ("mptcp", Protocol::Mptcp), ("cmt-sctp", Protocol::CmtSctp), ("sinnet", Protocol::Sinnet)];

/// A protocol that is none of those that are measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no sender is called \"{0}\": write tcp, mptcp, cmt-sctp or sinnet, with a congestion control after a colon if wanted, as tcp:cubic"
)]
pub struct UnknownSender(String);

impl FromStr for Sender {
    type Err = UnknownSender;

    fn from_str(text: &str) -> Result<Self, UnknownSender> {
        let (name, congestion) = text.split_once(':').map_or((text, None), |(name, rule)| (name, Some(rule)));
        let known = PROTOCOLS.iter().find(|(known, _)| *known == name);
        let (_, protocol) = known.ok_or_else(|| UnknownSender(text.to_owned()))?;
        Ok(Self { protocol: *protocol, congestion: congestion.filter(|rule| !rule.is_empty()).map(str::to_owned) })
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        self.congestion.iter().try_for_each(|rule| write!(f, ":{rule}"))
    }
}

impl Sender {
    /// Whether it uses all paths.
    pub(super) fn is_multipath(&self) -> bool {
        self.protocol != Protocol::Tcp
    }

    /// Whether programs' own TCPs travel inside.
    pub(super) fn carries(&self) -> bool {
        self.protocol == Protocol::Sinnet
    }

    /// What a flow of the laboratory says of it, where the program inside is none of a scenario's.
    pub(super) fn laboratory_keys(&self) -> String {
        let rule = if self.carries() { "path_congestion" } else { "congestion" };
        format!("protocol = \"{}\"\n{}", self.name(), named(rule, self.congestion.as_deref()))
    }

    /// What a flow of the simulator says of it.
    pub(super) fn keys(&self, inside: Option<&str>) -> String {
        self.laboratory_keys()
            + &match self.protocol {
                // Hosts as in the field, and what they have to repair losses.
                Protocol::Tcp => "profile = \"linux\"\n".to_owned(),
                Protocol::Mptcp | Protocol::CmtSctp => String::new(),
                Protocol::Sinnet => format!("association = \"own\"\n{}", named("congestion", inside)),
            }
    }

    fn name(&self) -> &'static str {
        PROTOCOLS.iter().find(|(_, known)| *known == self.protocol).map_or("", |(name, _)| name)
    }
}

/// The line that names a rule, if there is one. Whatever is not the name of a rule is refused with a sentence by the scenario.
fn named(key: &str, rule: Option<&str>) -> String {
    rule.map(|rule| format!("{key} = \"{}\"\n", rule.replace(['"', '\\', '\n'], "?"))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_are_read_as_they_are_written() {
        for text in ["tcp:cubic", "mptcp:lia", "cmt-sctp", "sinnet", "sinnet:mhip:growth=coupled"] {
            assert_eq!(text.parse::<Sender>().unwrap().to_string(), text);
        }
        let error = "quic".parse::<Sender>().unwrap_err().to_string();
        assert!(error.starts_with("no sender is called \"quic\": write tcp, "), "{error}");
    }
}
