//! The disciplines and their names. A new one is its file, its module and its configuration here, and a line in the list.

pub mod codel;
mod drop_tail;
mod dualpi2;
mod fq_codel;
mod pie;
mod red;

pub use codel::CoDelConfig;
pub use drop_tail::DropTail;
pub use dualpi2::DualPi2Config;
pub use fq_codel::FqCoDelConfig;
pub use pie::PieConfig;
pub use red::RedConfig;

use clock::{Instant, Rng};

use crate::{Config, Dropped, Key, QueueDiscipline, Queued, Reference, Setting, Transmitter};

macro_rules! registry {
    ($($name:ident($config:ident): $queue:ty = $new:expr, $reference:path;)*) => {
        /// What each discipline's file tells of it; drop-tail is the first.
        pub(crate) const REFERENCE: &[Reference] = &[drop_tail::REFERENCE, $($reference),*];

        /// The queue before a transmitter. Limits count what waits, not the packet that is being sent.
        ///
        /// ns-2's drop-tail with `queue-limit` q refuses a packet when q - 1 wait (`length() + 1 >= qlim_` in `drop-tail.cc`):
        /// it is `Packets(q - 1)` here.
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub enum QueueConfig {
            /// Drop-tail without a limit.
            #[default]
            Unlimited,
            /// Drop-tail: at most so many packets wait.
            Packets(u32),
            /// Drop-tail: the waiting packets have at most so many bytes in sum.
            Bytes(u64),
            $(
                #[doc = concat!("See [`", stringify!($config), "`].")]
                $name($config),
            )*
        }

        impl QueueConfig {
            /// The names of the disciplines that manage their queues, as files spell them.
            pub const NAMES: &'static [&'static str] = &[$($config::NAME),*];

            /// A discipline by its name in files, with its defaults.
            pub fn named(name: &str) -> Option<Self> {
                $(if name == $config::NAME {
                    return Some(Self::$name($config::default()));
                })*
                None
            }

            /// The parameters that it has in files.
            pub fn keys(&self) -> &'static [Key] {
                match self {
                    Self::Unlimited | Self::Packets(_) | Self::Bytes(_) => &[],
                    $(Self::$name(_) => $config::KEYS,)*
                }
            }

            /// Where the parameter of this name stands; none for what is no parameter.
            pub fn setting(&mut self, name: &str) -> Option<Setting<'_>> {
                match self {
                    Self::Unlimited | Self::Packets(_) | Self::Bytes(_) => None,
                    $(Self::$name(config) => config.setting(name),)*
                }
            }

            /// Most packets have so many bytes on the wire.
            pub fn set_packet_bytes(&mut self, bytes: u32) {
                match self {
                    Self::Unlimited | Self::Packets(_) | Self::Bytes(_) => {}
                    $(Self::$name(config) => config.set_packet_bytes(bytes),)*
                }
            }
        }

        /// One of the disciplines of this crate, with its packets.
        #[derive(Clone, Debug)]
        pub enum Discipline<P> {
            /// Drop-tail.
            DropTail(DropTail<P>),
            $(
                #[doc = concat!("Configured by [`", stringify!($config), "`].")]
                $name(Box<$queue>),
            )*
        }

        impl<P> Discipline<P> {
            /// An empty queue. What it leaves to chance is drawn from a generator of its own, taken out of `rng`.
            pub fn new(config: QueueConfig, rng: &mut Rng) -> Self {
                match config {
                    QueueConfig::Unlimited => Self::DropTail(DropTail::new(u32::MAX, u64::MAX)),
                    QueueConfig::Packets(packets) => Self::DropTail(DropTail::new(packets, u64::MAX)),
                    QueueConfig::Bytes(bytes) => Self::DropTail(DropTail::new(u32::MAX, bytes)),
                    $(QueueConfig::$name(config) => {
                        let new: fn($config, &mut Rng) -> $queue = $new;
                        Self::$name(Box::new(new(config, rng)))
                    })*
                }
            }
        }

        macro_rules! each {
            ($self:ident, $of:ident => $what:expr) => {
                match $self {
                    Self::DropTail($of) => $what,
                    $(Self::$name($of) => $what,)*
                }
            };
        }
    };
}

// Name of the variant, its configuration, the queue, how that is made, and where its file says what it does.
registry! {
    Red(RedConfig): red::Red<P> = red::Red::new, red::REFERENCE;
    CoDel(CoDelConfig): codel::Queue<P> = |config, _| codel::Queue::new(config), codel::REFERENCE;
    FqCoDel(FqCoDelConfig): fq_codel::FqCoDel<P> = fq_codel::FqCoDel::new, fq_codel::REFERENCE;
    Pie(PieConfig): pie::Pie<P> = pie::Pie::new, pie::REFERENCE;
    DualPi2(DualPi2Config): dualpi2::DualPi2<P> = |config, _| dualpi2::DualPi2::new(config), dualpi2::REFERENCE;
}

// Most queues are drop-tail: that way is short enough to be inlined, and the others are not to make it longer.
impl<P> QueueDiscipline<P> for Discipline<P> {
    #[inline]
    fn enqueue(
        &mut self,
        packet: Queued<P>,
        flow: u64,
        transmitter: Transmitter,
        drop: &mut impl FnMut(Dropped<P>),
    ) -> Result<(), Dropped<P>> {
        match self {
            Self::DropTail(queue) => queue.enqueue(packet, flow, transmitter, drop),
            _ => self.enqueue_managed(packet, flow, transmitter, drop),
        }
    }

    #[inline]
    fn ignores_idle(&self) -> bool {
        matches!(self, Self::DropTail(queue) if queue.ignores_idle())
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, drop: &mut impl FnMut(Dropped<P>)) -> Option<Queued<P>> {
        match self {
            Self::DropTail(queue) => queue.dequeue(now, drop),
            _ => self.dequeue_managed(now, drop),
        }
    }

    #[inline]
    fn packets(&self) -> usize {
        match self {
            Self::DropTail(queue) => queue.packets(),
            _ => self.packets_managed(),
        }
    }

    #[inline]
    fn bytes(&self) -> u64 {
        each!(self, queue => queue.bytes())
    }

    fn clear(&mut self, now: Instant, drop: &mut impl FnMut(Queued<P>)) {
        each!(self, queue => queue.clear(now, drop));
    }
}

impl<P> Discipline<P> {
    #[inline(never)]
    fn packets_managed(&self) -> usize {
        each!(self, queue => queue.packets())
    }

    #[inline(never)]
    fn enqueue_managed(
        &mut self,
        packet: Queued<P>,
        flow: u64,
        transmitter: Transmitter,
        drop: &mut impl FnMut(Dropped<P>),
    ) -> Result<(), Dropped<P>> {
        each!(self, queue => queue.enqueue(packet, flow, transmitter, drop))
    }

    #[inline(never)]
    fn dequeue_managed(&mut self, now: Instant, drop: &mut impl FnMut(Dropped<P>)) -> Option<Queued<P>> {
        each!(self, queue => queue.dequeue(now, drop))
    }
}
