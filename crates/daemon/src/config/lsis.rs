//! Local Scope Identifiers: from which range they come, and who gets which.

use std::net::Ipv4Addr;

use wire::{Hit, Lsi};

/// The addresses that stand for identities on this machine, for programs that know no IPv6.
///
/// RFC 5338 §3.2 leaves the choice to the host; HIPL took 1.0.0.0/8, which was nobody's then and is the Internet's now
/// (1.1.1.1 among them). The default, 198.18.0.0/15, is for tests of network devices and never routed on the Internet (RFC 2544
/// appendix C.2.2). 100.64.0.0/10 is what providers and other overlays give to their customers (RFC 6598), 240.0.0.0/4 is refused
/// by many programs and some kernels, and the private ranges (RFC 1918) are what hosts really have. Some proxies use 198.18/16
/// for pretended addresses: the daemon refuses to start where an LSI in use has a route or an address already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LsiRange {
    network: u32,
    prefix: u8,
}

impl LsiRange {
    /// 198.18.0.0/15
    pub const DEFAULT: Self = Self { network: 0xc612_0000, prefix: 15 };

    fn hosts(self) -> u32 {
        // The prefix is 8 to 24.
        1 << (32 - self.prefix)
    }

    /// Whether it is the address of a host in the range, not that of the network nor its broadcast address.
    pub fn has(self, lsi: Lsi) -> bool {
        let host = u32::from(lsi.address()).wrapping_sub(self.network);
        host > 0 && host < self.hosts() - 1
    }

    /// The address that follows from the last bits of the HIT, or the next that is free.
    pub(crate) fn free(self, hit: &Hit, taken: &[Lsi]) -> Lsi {
        let hosts = self.hosts();
        let [.., w, x, y, z] = hit.0;
        let start = u32::from_be_bytes([w, x, y, z]) % hosts;
        let address = |host: u32| Lsi(Ipv4Addr::from(self.network + host).octets());
        (0..hosts)
            .map(|step| address((start + step) % hosts))
            .find(|lsi| self.has(*lsi) && !taken.contains(lsi))
            // A configuration with so many peers does not fit into the smallest range.
            .unwrap_or(address(1))
    }
}

impl std::fmt::Display for LsiRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.network), self.prefix)
    }
}

impl std::str::FromStr for LsiRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is no range of IPv4 addresses");
        let (network, prefix) = text.split_once('/').ok_or_else(wrong)?;
        let network: Ipv4Addr = network.parse().map_err(|_| wrong())?;
        let prefix: u8 = prefix.parse().map_err(|_| wrong())?;
        if !(8..=24).contains(&prefix) {
            return Err(format!("/{prefix} is too small or too large a range"));
        }
        let range = Self { network: u32::from(network), prefix };
        if range.network & (range.hosts() - 1) != 0 {
            return Err(format!("{network} does not begin a range of /{prefix}"));
        }
        if network.is_loopback() || network.is_multicast() || network.is_link_local() || network.octets()[0] == 0 {
            return Err(format!("{text} has another meaning"));
        }
        Ok(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_the_range_for_tests_of_devices() {
        assert_eq!(LsiRange::DEFAULT, "198.18.0.0/15".parse().expect("a range"));
        assert_eq!(LsiRange::DEFAULT.to_string(), "198.18.0.0/15");
        for (lsi, has) in [([198, 18, 0, 0], false), ([198, 18, 0, 1], true), ([198, 19, 255, 254], true)] {
            assert_eq!(LsiRange::DEFAULT.has(Lsi(lsi)), has);
        }
        for lsi in [[198, 19, 255, 255], [198, 20, 0, 1], [198, 17, 255, 255], [1, 1, 1, 1]] {
            assert!(!LsiRange::DEFAULT.has(Lsi(lsi)));
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["198.18.0.0", "198.18.0.0/7", "10.0.0.0/25", "10.0.0.1/8", "127.0.0.0/8", "224.0.0.0/8", "x/8"] {
            assert!(text.parse::<LsiRange>().is_err(), "{text}");
        }
        assert!("1.0.0.0/8".parse::<LsiRange>().is_ok_and(|range| range.has(Lsi([1, 0, 0, 1]))));
    }
}
