//! What every discipline is given, does, and is configured with.

use clock::{Duration, Instant};

/// Explicit congestion notification of a packet: the two bits of its traffic class (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ecn {
    /// The flow does not understand marks: it has to be dropped from.
    #[default]
    NotEct = 0b00,
    /// It does, and its rate is inversely proportional to the share of its packets that are marked (L4S, RFC 9331).
    Ect1 = 0b01,
    /// It does, and takes a mark for a loss.
    Ect0 = 0b10,
    /// It was marked before.
    Ce = 0b11,
}

impl Ecn {
    /// The codepoint in a traffic class, or in any byte that ends with it.
    pub fn of(byte: u8) -> Self {
        match byte & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// The two bits.
    pub fn bits(self) -> u8 {
        self as u8
    }
}

/// A packet in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued<P> {
    /// The packet.
    pub packet: P,
    /// When it came.
    pub since: Instant,
    /// Bytes on the wire.
    pub bytes: u32,
    /// What it says about congestion.
    pub ecn: Ecn,
    /// Whether this queue has marked it.
    pub is_marked: bool,
}

impl<P> Queued<P> {
    /// A packet of `bytes` bytes that comes at `since` and understands no marks.
    #[inline]
    pub fn new(packet: P, bytes: u32, since: Instant) -> Self {
        Self { packet, since, bytes, ecn: Ecn::NotEct, is_marked: false }
    }

    /// The same packet, with what it says about congestion.
    #[inline]
    #[must_use]
    pub fn with_ecn(self, ecn: Ecn) -> Self {
        Self { ecn, ..self }
    }

    /// Marks it, if it understands that; says whether it does.
    pub(crate) fn mark(&mut self) -> bool {
        self.is_marked = self.ecn != Ecn::NotEct;
        self.is_marked
    }
}

/// Why a queue drops a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// There is no room.
    Full,
    /// There is, but senders are to hear of congestion.
    Early,
}

/// A packet that a queue drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped<P> {
    /// The packet.
    pub packet: Queued<P>,
    /// Why.
    pub cause: Cause,
}

/// Whoever sends what leaves the queue.
#[derive(Clone, Copy, Debug)]
pub struct Transmitter {
    /// Nothing is being sent: then nothing waits either.
    pub is_idle: bool,
    /// Bits per second; `None` is infinitely fast.
    pub rate: Option<u64>,
}

/// A queue with its packets. Times never go back from call to call.
pub trait QueueDiscipline<P> {
    /// Takes in a packet of `flow`, at its [`Queued::since`]. Limits count what waits, not what is being sent, so a packet that
    /// finds the transmitter idle has room. Others that have to go for it, go to `drop`.
    ///
    /// # Errors
    /// The packet itself has to go.
    fn enqueue(
        &mut self,
        packet: Queued<P>,
        flow: u64,
        transmitter: Transmitter,
        drop: &mut impl FnMut(Dropped<P>),
    ) -> Result<(), Dropped<P>>;

    /// The packet that is sent from `now` on; none says that the transmitter becomes idle. What has to go instead goes to `drop`.
    fn dequeue(&mut self, now: Instant, drop: &mut impl FnMut(Dropped<P>)) -> Option<Queued<P>>;

    /// Whether the queue has nothing to say to a packet that finds the transmitter idle, and nothing to learn from it: then it may
    /// be sent without coming here.
    #[inline]
    fn ignores_idle(&self) -> bool {
        false
    }

    /// Packets that wait.
    fn packets(&self) -> usize;

    /// Bytes of the packets that wait.
    fn bytes(&self) -> u64;

    /// Empties the queue, whose transmitter is idle from `now` on.
    fn clear(&mut self, now: Instant, drop: &mut impl FnMut(Queued<P>));
}

/// A parameter of a discipline, by its name in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The name.
    pub name: &'static str,
    /// What it says, in a sentence.
    pub doc: &'static str,
    /// There is no default.
    pub is_required: bool,
    /// It has to be less than the parameter of this name.
    pub below: Option<&'static str>,
}

impl Key {
    /// A parameter that has a default.
    pub(crate) const fn new(name: &'static str, doc: &'static str) -> Self {
        Self { name, doc, is_required: false, below: None }
    }

    /// It has to be there.
    pub(crate) const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }

    /// It has to be less than the parameter called `upper`.
    pub(crate) const fn below(self, upper: &'static str) -> Self {
        Self { below: Some(upper), ..self }
    }
}

/// The place of a parameter in a configuration, and what fits there.
#[derive(Debug, PartialEq)]
pub enum Setting<'a> {
    /// A time above 0.
    Time(&'a mut Duration),
    /// 0 to 1.
    Probability(&'a mut f64),
    /// Above 0.
    Number(&'a mut f64),
    /// So many packets at most.
    Limit(&'a mut u32),
    /// A number of packets on average.
    Average(&'a mut f64),
    /// A count, at least 1.
    Count(&'a mut u32),
    /// Yes or no.
    Switch(&'a mut bool),
}

/// The configuration of a discipline; its defaults are those of its source.
pub trait Config: Default {
    /// Its name in files.
    const NAME: &'static str;
    /// Its parameters.
    const KEYS: &'static [Key];

    /// Where the parameter of this name stands; none for what is no parameter.
    fn setting(&mut self, name: &str) -> Option<Setting<'_>>;

    /// Most packets have so many bytes on the wire.
    fn set_packet_bytes(&mut self, _bytes: u32) {}
}

/// What parameters say that several disciplines have.
pub(crate) const TARGET: &str = "Waiting time that is aimed at, or fine.";
pub(crate) const INTERVAL: &str = "For so long the waiting time may stay above the target.";
pub(crate) const LIMIT: &str = "The most that may wait, whatever the discipline decides.";
pub(crate) const ECN: &str = "Marks packets that understand marks instead of dropping them early.";

/// Implements [`Config`]: each parameter is the field of its name, with what fits there and what it says.
macro_rules! parameters {
    ($config:ident = $discipline:literal {
        $($field:ident: $kind:ident, $doc:expr $(, $property:ident($($upper:literal)?))*;)+
    } $($method:tt)*) => {
        impl $crate::Config for $config {
            const NAME: &'static str = $discipline;
            const KEYS: &'static [$crate::Key] =
                &[$($crate::Key::new(stringify!($field), $doc)$(.$property($($upper)?))*),+];

            fn setting(&mut self, name: &str) -> Option<$crate::Setting<'_>> {
                match name {
                    $(stringify!($field) => Some($crate::Setting::$kind(&mut self.$field)),)+
                    _ => None,
                }
            }

            $($method)*
        }
    };
}
pub(crate) use parameters;
