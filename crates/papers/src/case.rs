//! Cases: what is simulated. An experiment evaluates one or several of them; several experiments share a case.

use scenario::schema::{Engine, Table, Variant};
use scenario::{Document, Point, Protocol};

use crate::PapersError;
use crate::experiments::{random, rules};

/// One campaign.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name, also the directory of its results.
    pub id: &'static str,
    /// Name and text of the scenario file.
    file: (&'static str, &'static str),
}

macro_rules! cases {
    ($($id:literal,)*) => {
        &[$(Case {
            id: $id,
            file: (concat!($id, ".toml"), include_str!(concat!("../scenarios/", $id, ".toml"))),
        }),*]
    };
}

/// Every scenario file of `scenarios/papers`, part of the program so that it runs anywhere.
const FILES: &[Case] = cases![
    "beyond-addr",
    "beyond-beside-mptcp",
    "beyond-beside-sctp",
    "beyond-cubic",
    "beyond-cubic-buffer",
    "beyond-cubic-shared",
    "beyond-cubic-steady",
    "beyond-daimd-twice",
    "beyond-dupthresh",
    "beyond-extreme",
    "beyond-growth",
    "beyond-harm",
    "beyond-in-place",
    "beyond-matrix",
    "beyond-queues",
    "beyond-receiver-window",
    "beyond-scenario-3",
    "beyond-scenario-3-mhip",
    "beyond-shared-red",
    "cross-network",
    "cross-traffic",
    "cross-traffic-avoided",
    "cross-traffic-signalling",
    "daimd-capacity",
    "daimd-delay",
    "daimd-equal",
    "daimd-idle-a",
    "daimd-idle-b",
    "fairness-2",
    "fairness-2-delay",
    "fairness-2-network",
    "fairness-2-single",
    "fairness-3",
    "fairness-3-network",
    "fairness-3-single",
    "friendliness-network",
    "one-network",
    "one-path",
    "one-path-mhip",
    "printed-share",
    "random-1",
    "random-2",
    "random-3",
    "random-3-sack",
    "random-network",
    "random-sack",
    "random-tcp",
    "receive-buffer",
    "reference",
    "shared-bottleneck",
    "shared-network",
    "simple",
    "six-connections",
    "steady-state",
    "steady-state-tcp",
    "three-network",
    "three-paths",
    "two-level",
    "two-level-final",
    "two-network",
    "two-paths",
    "udp-interval",
    "udp-interval-8",
];

/// The case called `id`.
///
/// # Errors
/// None, unless an experiment names a case that does not exist.
pub fn case(id: &str) -> Result<Case, PapersError> {
    FILES
        .iter()
        .find(|case| case.id == id)
        .copied()
        .ok_or_else(|| PapersError::Asset(format!("no case is called {id}")))
}

impl Case {
    /// The text of its scenario file.
    pub fn text(&self) -> &'static str {
        self.file.1
    }

    /// Whether its file is a pattern, from which networks are drawn by `random`.
    pub fn is_random(&self) -> bool {
        self.id.starts_with("random-")
    }

    /// The same with Sinnet as it ships in place of mHIP, with what both understand of the rest: sizes, windows, times. Points that
    /// differ only in settings of mHIP are the same scenario then. Each flow is between hosts of its own, and the TCP inside is the
    /// kernel's.
    ///
    /// # Errors
    /// Anything in the scenario file that makes no sense.
    pub(crate) fn shipped(&self) -> Result<Vec<Point>, PapersError> {
        let mut points = self.points()?;
        let understood = |key: &str| {
            let key = Table::Flow.key(key).filter(|key| key.name != "congestion");
            key.is_some_and(|key| key.honoured_by(Some(Engine::Sim)).has(Variant::SinnetTcp))
        };
        for Point { document, .. } in &mut points {
            for flow in document.replace_protocol(Protocol::Mhip, Protocol::Sinnet, understood) {
                document.set(&format!("flow.{flow}.association=own"))?;
            }
            // So that scenarios are the same if they differ in nothing else.
            document.set("name=what ships")?;
        }
        Ok(points)
    }

    /// The scenarios of its sweep, or the random ones.
    ///
    /// # Errors
    /// Anything in the scenario file that makes no sense.
    pub fn points(&self) -> Result<Vec<Point>, PapersError> {
        let document = Document::load(self.text(), self.file.0, &mut |base, _| {
            let found = FILES.iter().find(|case| case.file.0 == base);
            found
                .map(|case| (base.to_owned(), case.text().to_owned()))
                .ok_or_else(|| "there is no such file".to_owned())
        })?;
        match self.id {
            _ if self.is_random() => random::points(&document),
            "beyond-matrix" => Ok(rules::each_pair_once(document.points()?)),
            _ => Ok(document.points()?),
        }
    }
}
