//! The figures that are known not to be reproduced, each with its reason: `assets/reasons.toml`. A run can be checked against the
//! list, so that a figure that gets worse is noticed, and one that gets better is taken off the list.

use serde::Deserialize;

use crate::PapersError;
use crate::row::{Row, short};

const TEXT: &str = include_str!("../assets/reasons.toml");

/// Why figures are not reproduced, as far as we know.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// The experiment.
    pub id: String,
    /// What of the rows it is about.
    #[serde(default)]
    pub column: Column,
    /// Its rows that are red, by their names.
    #[serde(default)]
    pub red: Vec<String>,
    /// Its rows that are so near to the edge of what is accepted that the number of seeds decides.
    #[serde(default)]
    pub edge: Vec<String>,
    /// The reason.
    pub why: String,
}

/// A verdict of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Column {
    /// Of the papers' mHIP: not reproduced.
    #[default]
    Measured,
    /// Of what ships: worse than the papers' mHIP.
    Shipped,
}

impl Column {
    const ALL: [Self; 2] = [Self::Measured, Self::Shipped];

    /// The verdict of `row`.
    fn verdict(self, row: &Row) -> Option<bool> {
        match self {
            Self::Measured => row.ok,
            Self::Shipped => row.shipped.as_ref().and_then(|shipped| shipped.ok),
        }
    }

    /// In sentences, where it is not the papers' mHIP.
    fn said(self) -> &'static str {
        match self {
            Self::Measured => "",
            Self::Shipped => "what ships: ",
        }
    }
}

impl Reason {
    /// The names of all rows that it is about.
    fn rows(&self) -> impl Iterator<Item = &String> {
        self.red.iter().chain(&self.edge)
    }
}

/// All reasons, in the order of the file.
///
/// # Errors
/// None, unless the file that is part of the program is broken.
pub fn reasons() -> Result<Vec<Reason>, PapersError> {
    #[derive(Deserialize)]
    struct File {
        reason: Vec<Reason>,
    }
    let file: File = toml::from_str(TEXT).map_err(|error| PapersError::Asset(error.to_string()))?;
    Ok(file.reason)
}

/// The reason why `row` is red in `column`, if one is known.
pub fn reason<'a>(row: &Row, column: Column, reasons: &'a [Reason]) -> Option<&'a Reason> {
    let fits = |reason: &&Reason| reason.id == row.id && reason.column == column;
    reasons.iter().filter(fits).find(|reason| reason.rows().any(|name| *name == row.quantity))
}

/// Where `rows`, all those of some experiments, differ from what `reasons` say, in a sentence each: a red row without a reason, a
/// reason for a row that is not red, or for one that does not exist. Rows at the edge may be either.
pub fn differences(rows: &[Row], reasons: &[Reason]) -> Vec<String> {
    let mut sentences = Vec::new();
    for column in Column::ALL {
        let red = rows.iter().filter(|row| column.verdict(row) == Some(false));
        let unknown = red.filter(|row| reason(row, column, reasons).is_none());
        sentences.extend(unknown.map(|row| {
            format!("{}{} is red and not known to be: {}", column.said(), name(row), measured(row, column))
        }));
    }
    for reason in reasons.iter().filter(|reason| rows.iter().any(|row| row.id == reason.id)) {
        let column = reason.column;
        for quantity in reason.rows() {
            match rows.iter().find(|row| row.id == reason.id && row.quantity == *quantity) {
                None => sentences.push(format!("{}, \"{quantity}\" is on the list and no row is called so", reason.id)),
                Some(row) if column.verdict(row) != Some(false) && reason.red.contains(quantity) => {
                    let row = name(row);
                    sentences.push(format!("{}{row} is on the list and not red any more: take it off", column.said()));
                }
                Some(_) => {}
            }
        }
    }
    sentences
}

fn name(row: &Row) -> String {
    format!("{}, \"{}\"", row.id, row.quantity)
}

fn measured(row: &Row, column: Column) -> String {
    let shipped = row.shipped.as_ref().filter(|_| column == Column::Shipped);
    let numbers = shipped.map_or((row.mean, row.low, row.high), |shipped| (shipped.mean, shipped.low, shipped.high));
    match (numbers, row.accept) {
        ((Some(mean), Some(low), Some(high)), Some([least, most])) => {
            format!("{} [{}, {}], where {least} to {most} is accepted", short(mean), short(low), short(high))
        }
        _ => shipped.map_or(&row.detail, |shipped| &shipped.detail).clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(quantity: &str, ok: Option<bool>) -> Row {
        Row { id: "a/b".to_owned(), quantity: quantity.to_owned(), detail: "1 and 2".to_owned(), ok, ..Row::default() }
    }

    fn of(red: &[&str]) -> Vec<Reason> {
        let red = red.iter().map(|name| (*name).to_owned()).collect();
        let (id, column) = ("a/b".to_owned(), Column::Measured);
        vec![Reason { id, column, red, edge: Vec::new(), why: "because".to_owned() }]
    }

    #[test]
    fn the_list_and_the_rows_have_to_agree() {
        let rows = [row("good", Some(true)), row("bad", Some(false)), row("unjudged", None)];
        assert_eq!(differences(&rows, &of(&["bad"])), [""; 0]);
        assert_eq!(differences(&rows, &of(&[])), ["a/b, \"bad\" is red and not known to be: 1 and 2"]);
        for (red, told) in [("good", "take it off"), ("unjudged", "take it off"), ("gone", "no row is called so")] {
            let found = differences(&rows, &of(&["bad", red]));
            assert!(matches!(&found[..], [one] if one.contains(red) && one.contains(told)), "{found:?}");
        }
        // At the edge a row may be red or not, but it has to be there.
        let edge = |name: &str| vec![Reason { edge: vec![name.to_owned()], ..of(&["bad"]).remove(0) }];
        assert_eq!(differences(&rows, &edge("good")), [""; 0]);
        assert_eq!(differences(&[row("good", Some(false)), row("bad", Some(false))], &edge("good")), [""; 0]);
        assert_eq!(differences(&rows, &edge("gone")).len(), 1);
        // What was not run is not compared.
        assert_eq!(differences(&[], &of(&["bad"])), [""; 0]);
    }

    /// What is known of one column says nothing of the other.
    #[test]
    fn what_ships_has_reds_of_its_own() {
        let shipped = |ok| Some(crate::Shipped { ok: Some(ok), detail: "3 and 4".to_owned(), ..Default::default() });
        let rows = [Row { shipped: shipped(false), ..row("bad", Some(false)) }];
        assert_eq!(differences(&rows, &of(&["bad"])), ["what ships: a/b, \"bad\" is red and not known to be: 3 and 4"]);
        let both =
            |red: &[&str]| [of(&["bad"]), vec![Reason { column: Column::Shipped, ..of(red).remove(0) }]].concat();
        assert_eq!(differences(&rows, &both(&["bad"])), [""; 0]);
        let rows = [Row { shipped: shipped(true), ..row("bad", Some(false)) }];
        let found = differences(&rows, &both(&["bad"]));
        assert!(
            matches!(&found[..], [one] if one.starts_with("what ships: ") && one.ends_with("take it off")),
            "{found:?}"
        );
    }

    #[test]
    fn a_number_is_told_with_its_range() {
        let number = Row {
            mean: Some(1.25),
            low: Some(1.2),
            high: Some(1.3),
            accept: Some([0.9, 1.1]),
            ..row("n", Some(false))
        };
        let found = differences(&[number], &[]);
        assert!(found[0].ends_with("1.250 [1.200, 1.300], where 0.9 to 1.1 is accepted"), "{found:?}");
    }

    #[test]
    fn every_reason_is_of_an_experiment_and_each_row_is_listed_once() {
        let mut seen = std::collections::BTreeSet::new();
        for reason in reasons().unwrap() {
            assert!(crate::experiment::all().any(|experiment| experiment.id == reason.id), "{}", reason.id);
            assert!(reason.rows().next().is_some() && !reason.why.is_empty(), "{}", reason.id);
            for row in reason.rows() {
                let new = seen.insert((reason.id.clone(), reason.column as u8, row.clone()));
                assert!(new, "{}, \"{row}\" is listed twice", reason.id);
            }
        }
    }
}
