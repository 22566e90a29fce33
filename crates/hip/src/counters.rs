//! Sets of counters that say themselves what they count: a counter that is added needs no second place to be shown from.

/// Declares a set of counters, each a `pub …: u64` with its documentation, and with it `MEANINGS`: for each counter, in order,
/// its name and what it counts, as its documentation says.
///
/// ```
/// hip::counters! {
///     /// What happened.
///     #[derive(Default)]
///     pub struct Counters {
///         /// Doors that opened.
///         pub opened: u64,
///     }
/// }
/// assert_eq!(Counters::MEANINGS, [("opened", "Doors that opened.")]);
/// assert_eq!(Counters::default().opened, 0);
/// ```
#[macro_export]
macro_rules! counters {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[doc = $doc:literal])+ pub $counter:ident: u64,)+
        }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[doc = $doc])+ pub $counter: u64,)+
        }

        impl $name {
            /// Counts in what another has counted.
            pub fn add(&mut self, other: &Self) {
                $(self.$counter = self.$counter.saturating_add(other.$counter);)+
            }

            /// Each counter's name and what it counts.
            pub const MEANINGS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($counter), concat!($($doc),+).trim_ascii())),+];
        }
    };
}
