//! What the papers print: `assets/published.toml`, read.

use serde::{Deserialize, Serialize};

use crate::PapersError;

const TEXT: &str = include_str!("../assets/published.toml");

/// One of the papers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paper {
    /// What stands in brackets, 1 to 5.
    pub number: u8,
    pub title: String,
    pub authors: Option<String>,
    pub year: Option<u16>,
    pub doi: Option<String>,
}

/// One experiment of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// "paper/experiment".
    pub id: String,
    /// Number of the paper, 1 to 5.
    pub paper: u8,
    /// Section, figures and tables.
    #[serde(rename = "where")]
    pub place: String,
    /// Topology, traffic and settings, as far as the paper tells.
    pub setup: String,
    /// The printed figures.
    #[serde(rename = "published")]
    pub quantities: Vec<Quantity>,
    /// What must hold whatever the absolute values.
    pub relation: Option<String>,
    /// What the paper leaves open.
    pub doubt: Option<String>,
}

/// One printed figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantity {
    /// What it is.
    #[serde(rename = "quantity")]
    pub name: String,
    /// As printed.
    pub value: Printed,
    /// Its unit; Mbit/s where the file gives none, "1" for a ratio.
    #[serde(default = "mbps")]
    pub unit: String,
    /// Reproduced means: the mean is in this range.
    pub accept: Option<[f64; 2]>,
}

/// A printed value.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Printed {
    /// One number.
    Number(f64),
    /// An interval, or several numbers of which the quantity names the parts.
    Numbers(Vec<f64>),
    /// In words.
    Words(String),
}

impl std::fmt::Display for Printed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Numbers(numbers) => {
                let texts: Vec<String> = numbers.iter().map(f64::to_string).collect();
                write!(f, "{}", texts.join(", "))
            }
            Self::Words(words) => f.write_str(words),
        }
    }
}

fn mbps() -> String {
    "Mbit/s".to_owned()
}

/// Every experiment of every paper, in the order of the file.
///
/// # Errors
/// None, unless the file that is part of the program is broken.
pub fn published() -> Result<Vec<Published>, PapersError> {
    file().map(|file| file.experiment)
}

/// The papers, by their numbers.
pub(crate) fn papers() -> Result<Vec<Paper>, PapersError> {
    file().map(|file| file.paper)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    paper: Vec<Paper>,
    experiment: Vec<Published>,
}

fn file() -> Result<File, PapersError> {
    toml::from_str(TEXT).map_err(|error| PapersError::Asset(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_printed_figure_is_read() {
        let all = published().unwrap();
        let ids: BTreeSet<&str> = all.iter().map(|experiment| experiment.id.as_str()).collect();
        assert_eq!(ids.len(), all.len());
        assert_eq!(all.len(), TEXT.matches("[[experiment]]").count());
        let quantities: usize = all.iter().map(|experiment| experiment.quantities.len()).sum();
        assert_eq!(quantities, TEXT.matches("{ quantity =").count());
        let two_path = all.iter().find(|experiment| experiment.id == "secure-multipath/ideal-two-path").unwrap();
        let first = two_path.quantities.first().unwrap();
        assert_eq!((first.value.clone(), first.accept), (Printed::Number(19.32), Some([18.9, 19.8])));
        let numbers: Vec<u8> = papers().unwrap().iter().map(|paper| paper.number).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
        assert!(all.iter().all(|experiment| numbers.contains(&experiment.paper)));
        for quantity in all.iter().flat_map(|experiment| &experiment.quantities) {
            assert!(quantity.accept.is_none_or(|[low, high]| low <= high), "{}", quantity.name);
        }
    }
}
