//! Experiments: which cases each needs, what is computed from them, and what is drawn.

use crate::PapersError;
use crate::experiments as groups;
use crate::figure::Figure;
use crate::results::Results;
use crate::row::Evaluation;

/// One experiment: of a paper, or one that the papers leave open.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// As in `published.toml`; "beyond/…" for those that no paper shows.
    pub id: &'static str,
    /// Heading.
    pub title: &'static str,
    /// What is simulated, in a sentence or two.
    pub setup: &'static str,
    /// The cases that it evaluates; the first one's topology is drawn.
    pub cases: &'static [&'static str],
    /// Where what ships takes the place of mHIP.
    pub ships: Ships,
    /// Quantities and relations from the results.
    pub evaluate: fn(&Results, &mut Evaluation),
    /// What is drawn in the report.
    pub figures: fn(&Results) -> Vec<Figure>,
}

/// The third column: the product's core in place of the papers' mHIP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ships {
    /// In these cases. The others are what it is compared with, and stay as the paper has them.
    In(&'static [&'static str]),
    /// Nowhere, and why.
    Not(&'static str),
}

/// All experiments, in the order of the report.
pub fn all() -> impl Iterator<Item = &'static Experiment> {
    groups::ALL.iter().copied().flatten()
}

/// The experiments that `names` ask for: an id, or the part before the slash for all of it; all without names.
///
/// # Errors
/// A name that fits none.
pub fn find(names: &[String]) -> Result<Vec<&'static Experiment>, PapersError> {
    if names.is_empty() {
        return Ok(all().collect());
    }
    let mut found: Vec<&'static Experiment> = Vec::new();
    for name in names {
        let matching: Vec<_> = all().filter(|experiment| fits(experiment.id, name)).collect();
        if matching.is_empty() {
            let groups = all().filter_map(|experiment| experiment.id.split_once('/').map(|(group, _)| group));
            let ids = all().map(|experiment| experiment.id).chain(groups);
            let help = match text::nearest(name, ids) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => "`sinnet papers list` shows all".to_owned(),
            };
            return Err(PapersError::Unknown { id: name.clone(), help });
        }
        found.extend(
            matching.into_iter().filter(|new| found.iter().all(|known| known.id != new.id)).collect::<Vec<_>>(),
        );
    }
    Ok(found)
}

fn fits(id: &str, name: &str) -> bool {
    id == name || id.split_once('/').is_some_and(|(group, _)| group == name.trim_end_matches('/'))
}
