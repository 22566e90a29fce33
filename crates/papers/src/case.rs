//! Cases: what is simulated. An experiment evaluates one or several of them; several experiments share a case.

use std::ffi::OsStr;

use include_dir::{Dir, File, include_dir};
use scenario::schema::{Engine, Table, Variant};
use scenario::{Document, Point, Protocol};

use crate::PapersError;
use crate::experiments::{random, rules};

/// Every scenario file, part of the program so that it runs anywhere.
static SCENARIOS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/scenarios");

/// One campaign.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name, also the directory of its results.
    pub id: &'static str,
    /// Its scenario file.
    text: &'static str,
}

/// The case called `id`.
///
/// # Errors
/// None, unless an experiment names a case that does not exist.
pub fn case(id: &str) -> Result<Case, PapersError> {
    let none = || PapersError::Asset(format!("no scenario file of the papers is called {id}.toml"));
    let file = SCENARIOS.get_file(format!("{id}.toml")).ok_or_else(none)?;
    let id = file.path().file_stem().and_then(OsStr::to_str).ok_or_else(none)?;
    Ok(Case { id, text: file.contents_utf8().ok_or_else(none)? })
}

impl Case {
    /// The text of its scenario file.
    pub fn text(&self) -> &'static str {
        self.text
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
        let document = Document::load(self.text(), &format!("{}.toml", self.id), &mut |base, _| {
            let found = SCENARIOS.get_file(base).and_then(File::contents_utf8);
            found.map(|text| (base.to_owned(), text.to_owned())).ok_or_else(|| "there is no such file".to_owned())
        })?;
        match self.id {
            _ if self.is_random() => random::points(&document),
            "beyond-matrix" => Ok(rules::each_pair_once(document.points()?)),
            _ => Ok(document.points()?),
        }
    }
}
