//! The rules of CMT that are arithmetic: who is missing, and whose share of a buffer is used up.

use super::config::Splitting;

/// What one SACK newly acknowledged of the chunks last sent on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct News {
    /// The lowest TSN.
    pub lowest: u64,
    /// The highest.
    pub highest: u64,
}

/// How many missing reports a chunk gets by one SACK, given the `news` of the chunk's path, if there are any.
///
/// SFR (split fast retransmit, Iyengar, Amer, Stewart 2006): one, if something later on its path has arrived. With `dac`,
/// delayed acknowledgments for CMT, the number of `packets` that the SACK is for, if all it newly acknowledges is on that
/// path alone (`only_path`) and above the chunk; the reports would be too few otherwise.
pub fn missing_reports(tsn: u64, news: Option<News>, only_path: bool, dac: bool, packets: u8) -> u32 {
    match news {
        Some(news) if news.highest > tsn => {
            if dac && only_path && news.lowest > tsn {
                u32::from(packets.max(1))
            } else {
                1
            }
        }
        _ => 0,
    }
}

/// What is in the buffers, in bytes, when a new chunk is to be sent on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Size of the sender's buffer.
    pub send: u64,
    /// The receiver's window as last advertised.
    pub advertised: u64,
    /// Of the sender's buffer, chunks last sent on this path.
    pub queued: u64,
    /// Outstanding on this path.
    pub outstanding: u64,
    /// Outstanding on all paths.
    pub outstanding_all: u64,
    /// A full packet on the wire.
    pub mtu: u64,
    /// How many paths share the buffers, at least 1.
    pub paths: u64,
}

impl Buffers {
    /// The path has used less than its part of the sender's buffer.
    pub fn sender_allows(&self) -> bool {
        self.queued.saturating_add(self.mtu) <= self.send / self.paths.max(1)
    }

    /// The path has used less than its part of the receiver's buffer, one packet more for rounding.
    pub fn receiver_allows(&self) -> bool {
        let all = self.advertised.saturating_add(self.outstanding_all);
        self.outstanding.saturating_add(self.mtu) <= (all / self.paths.max(1)).saturating_add(self.mtu)
    }

    /// Both, as far as `splitting` asks.
    pub fn allow(&self, splitting: Splitting) -> bool {
        (!splitting.sender() || self.sender_allows()) && (!splitting.receiver() || self.receiver_allows())
    }
}
