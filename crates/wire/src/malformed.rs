//! Why bytes from a network were not accepted as a packet.

/// What is wrong with a packet that was read, or asked to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// Fewer bytes than the fixed header needs, or than a length field promises.
    #[error("the packet is shorter than its headers say")]
    Truncated,
    /// A length field that contradicts its own header or the format's limits.
    #[error("a length field is impossible")]
    Length,
    /// Neither IPv4 nor IPv6, or not the version this function is for.
    #[error("not the expected IP version")]
    Version,
    /// A checksum that does not fit the content.
    #[error("the checksum is wrong")]
    Checksum,
    /// A fragment where only whole packets can be handled.
    #[error("the packet is a fragment")]
    Fragment,
    /// A kind of packet that has no counterpart or must not be answered.
    #[error("this kind of packet cannot be handled here")]
    Unsupported,
}
