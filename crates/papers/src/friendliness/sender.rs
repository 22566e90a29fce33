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
        let name = PROTOCOLS.iter().find(|(_, known)| *known == self.protocol).map_or("", |(name, _)| name);
        f.write_str(name)?;
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
        let keys = self.keys(None);
        // Daemons have an association for each pair of hosts, and TCPs what a kernel's have.
        let honoured = |line: &&str| !line.starts_with("association") && !line.starts_with("profile");
        keys.lines().filter(honoured).map(|line| format!("{line}\n")).collect()
    }

    /// What a scenario's flow says of it.
    pub(super) fn keys(&self, inside: Option<&str>) -> String {
        // Whatever is not the name of a rule is refused with a sentence by the scenario.
        let named = |key: &str, rule: Option<&str>| match rule {
            Some(rule) => format!("{key} = \"{}\"\n", rule.replace(['"', '\\', '\n'], "?")),
            None => String::new(),
        };
        let rule = |key: &str| named(key, self.congestion.as_deref());
        match self.protocol {
            // Hosts as in the field, and what they have to repair losses.
            Protocol::Tcp => format!("protocol = \"tcp\"\nprofile = \"linux\"\n{}", rule("congestion")),
            Protocol::Mptcp => format!("protocol = \"mptcp\"\n{}", rule("congestion")),
            Protocol::CmtSctp => format!("protocol = \"cmt-sctp\"\n{}", rule("congestion")),
            Protocol::Sinnet => {
                let inside = named("congestion", inside);
                format!("protocol = \"sinnet\"\nassociation = \"own\"\n{inside}{}", rule("path_congestion"))
            }
        }
    }
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
