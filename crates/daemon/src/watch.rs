//! Whether what we have set up still stands: the device, its addresses, and the routes to identities. The daemon has no
//! privileges to put anything back. A device that was down and is up again is put right by the kernel itself; where that does
//! not happen the daemon ends with a sentence, and packets to identities go nowhere (packet filter, unreachable routes) until
//! it is started again.

use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

use clock::{Duration, Instant};

use crate::netlink::{self, Monitor};

/// A router's routes may change all the time.
const PAUSE: Duration = Duration::from_millis(500);
/// So long may addresses or routes be missing while the device is up.
const PATIENCE: Duration = Duration::from_secs(3);

/// What must be there.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) monitor: Monitor,
    /// The device's name.
    pub(crate) device: String,
    /// Our own addresses, on the device.
    pub(crate) own: Vec<IpAddr>,
    /// Addresses of peers, to which routes must lead over the device.
    pub(crate) peers: Vec<IpAddr>,
    /// Peers of our other identities, to whose HITs a route of their own must lead: it says from which HIT programs send.
    pub(crate) exact: Vec<IpAddr>,
    /// When to look next, if there is a reason.
    pub(crate) next: Option<Instant>,
    pub(crate) state: State,
}

/// What was seen last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Right,
    Down,
    Missing { since: Instant },
}

/// What is seen now.
#[derive(Debug)]
enum Seen {
    Right,
    Down,
    Missing(String),
}

impl Watch {
    /// When [`Watch::turn`] has something to do without news.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    /// Looks, if there is a reason to.
    ///
    /// # Errors
    /// A sentence where something is gone for good.
    pub(crate) fn turn(&mut self, now: Instant, news: bool) -> Result<(), String> {
        if news && self.monitor.turn() && self.next.is_none() {
            self.next = Some(now + PAUSE);
        }
        if self.next.is_none_or(|next| next > now) {
            return Ok(());
        }
        self.next = None;
        let device = &self.device;
        match self.look()? {
            Seen::Right => {
                if self.state != State::Right {
                    tracing::info!("{device} is up, with its addresses and routes");
                }
                self.state = State::Right;
            }
            Seen::Down => {
                if self.state != State::Down {
                    tracing::warn!("{device} is down: nothing reaches identities, also not in clear, until it is up");
                }
                self.state = State::Down;
            }
            Seen::Missing(what) => {
                let since = if let State::Missing { since } = self.state { since } else { now };
                if now.saturating_since(since) >= PATIENCE {
                    return Err(format!(
                        "{what} is gone, and there are no privileges left to put it back: `sinnet up` does, and until then \
                         packets to identities go nowhere"
                    ));
                }
                self.state = State::Missing { since };
                self.next = Some(now + PAUSE);
            }
        }
        Ok(())
    }

    fn look(&self) -> Result<Seen, String> {
        let Self { device, own, peers, exact, .. } = self;
        // The next change is another chance.
        let Ok(interfaces) = netlink::interfaces() else { return Ok(Seen::Right) };
        let Some(interface) = interfaces.iter().find(|interface| interface.name == *device) else {
            return Err(format!("the device {device} is gone"));
        };
        if !interface.up {
            return Ok(Seen::Down);
        }
        if let Some(address) = own.iter().find(|address| !interface.addresses.contains(address)) {
            return Ok(Seen::Missing(format!("the address {address} of {device}")));
        }
        let elsewhere = |address: &&IpAddr| match netlink::route_to(**address) {
            Ok(route) => route.is_none_or(|route| {
                route.interface != Some(interface.index) || route.prefix < 128 && exact.contains(*address)
            }),
            Err(_) => false,
        };
        match peers.iter().find(elsewhere) {
            Some(address) => Ok(Seen::Missing(format!("the route to {address} over {device}"))),
            None => Ok(Seen::Right),
        }
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.monitor.as_fd()
    }
}
