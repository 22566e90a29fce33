//! The subcommands, one a file: arguments, a call into the room that does the work, and the result for people or scripts.

pub(crate) mod check;
pub(crate) mod clean;
mod cluster;
pub(crate) mod compare;
pub(crate) mod demo;
pub(crate) mod down;
pub(crate) mod fairness;
pub(crate) mod friendliness;
pub(crate) mod help;
pub(crate) mod hosts;
pub(crate) mod keygen;
pub(crate) mod lab;
pub(crate) mod manual;
pub(crate) mod papers;
mod reference;
pub(crate) mod relay;
pub(crate) mod sim;
pub(crate) mod status;
pub(crate) mod store;
pub(crate) mod up;

/// Why a command ended without its result: a sentence with a remedy, and the exit status.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The sentence.
    pub(crate) message: String,
    /// 2 for what the person can put right in the input, 1 for everything else.
    pub(crate) exit: u8,
}

impl Failure {
    /// The input is wrong.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self { message: message.into(), exit: 2 }
    }

    /// Something else went wrong.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { message: message.into(), exit: 1 }
    }
}
