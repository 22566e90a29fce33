//! Rows: published beside measured, with a verdict; as a table and as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use crate::estimate::Measured;
use crate::experiment::{Experiment, Ships};
use crate::published::{Printed, Published, Quantity};
use crate::results::Results;

/// One line of the result. Serialises to an element of `sinnet papers run --json`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// The experiment.
    pub id: String,
    /// The quantity, or the relation.
    pub quantity: String,
    /// Unit of all numbers of the row.
    pub unit: String,
    /// As printed in the paper; `None` for a relation and for what no paper shows.
    pub published: Option<Printed>,
    /// Reproduced means: in this range.
    pub accept: Option<[f64; 2]>,
    /// Mean over the runs; `None` where nothing was measured.
    pub mean: Option<f64>,
    /// Lower end of the 95 % interval, or the least of a spread.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval, or the greatest of a spread.
    pub high: Option<f64>,
    /// Independent runs.
    pub seeds: usize,
    /// The verdict: reproduced, or the relation holds; `None` where there is nothing to hold it against.
    pub ok: Option<bool>,
    /// The same of the product's core in place of the papers' mHIP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shipped: Option<Shipped>,
    /// True for a relation.
    pub relation: bool,
    /// True: `low` and `high` are those of a spread over settings.
    #[serde(skip)]
    pub spread: bool,
    /// The numbers behind a relation, or why there is no mean.
    pub detail: String,
    /// False where a run is missing that it needs.
    #[serde(skip)]
    pub(crate) is_measured: bool,
}

/// A row's quantity or relation with the product's core in place of the papers' mHIP.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Shipped {
    /// Mean over the runs; `None` for a relation, and where nothing was measured.
    pub mean: Option<f64>,
    /// Lower end of the 95 % interval, or the least of a spread.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval, or the greatest of a spread.
    pub high: Option<f64>,
    /// Not worse than the papers' generation: as near to what is accepted, and each relation holds that holds there. `None`
    /// where nothing is judged.
    pub ok: Option<bool>,
    /// The numbers behind a relation, or why there is nothing.
    pub detail: String,
}

/// Why a row has nothing of what ships, where other rows of its experiment have.
const NO_PART: &str = "mHIP has no part in it";

impl Shipped {
    /// Nothing, for a reason.
    fn nothing(why: &str) -> Self {
        Self { detail: why.to_owned(), ..Self::default() }
    }

    /// From the row of the papers' generation and the same row measured with what ships.
    fn beside(generation: &Row, shipped: &Row) -> Self {
        let ok = match generation.accept {
            Some(accept) => Some(shipped.off(accept) <= generation.off(accept)),
            None if generation.relation => Some(shipped.ok == Some(true) || generation.ok != Some(true)),
            None => None,
        };
        let detail = if shipped.mean.is_some() { String::new() } else { shipped.detail.clone() };
        Self { mean: shipped.mean, low: shipped.low, high: shipped.high, ok, detail }
    }
}

impl Row {
    /// How far what was measured is from `accept`: its mean, or of a spread its farther end; infinitely where nothing was.
    fn off(&self, accept: [f64; 2]) -> f64 {
        let (low, high) = if self.spread { (self.low, self.high) } else { (self.mean, self.mean) };
        match (low, high) {
            (Some(low), Some(high)) => (accept[0] - low).max(high - accept[1]).max(0.0),
            _ => f64::INFINITY,
        }
    }
}

/// A quantity with its unit and, where it is not the paper's, its range.
#[derive(Debug)]
struct Number {
    name: String,
    unit: String,
    accept: Option<[f64; 2]>,
    measured: Option<Measured>,
}

/// What an experiment computed from the results.
#[derive(Debug, Default)]
pub struct Evaluation {
    quantities: Vec<Number>,
    relations: Vec<(String, Option<bool>, String)>,
    /// What the reader should know beside the numbers, in sentences.
    pub notes: Vec<String>,
}

impl Evaluation {
    /// A quantity by its name in `published.toml`.
    pub fn quantity(&mut self, name: impl Into<String>, measured: Option<Measured>) {
        self.further(name, "", None, measured);
    }

    /// A quantity that no paper prints, with its unit and, where somebody demands one, its range.
    pub fn further(
        &mut self,
        name: impl Into<String>,
        unit: &str,
        accept: Option<[f64; 2]>,
        measured: Option<Measured>,
    ) {
        self.quantities.push(Number { name: name.into(), unit: unit.to_owned(), accept, measured });
    }

    /// A quantity of several printed numbers, such as "DAIMD A, B, total", each a row of its own.
    pub fn parts(&mut self, name: impl Into<String>, measured: &[Option<Measured>]) {
        let name = name.into();
        for (index, measured) in measured.iter().enumerate() {
            self.further(part(&name, index), "", None, *measured);
        }
    }

    /// A relation, whether it holds (`None`: not measured), and the numbers that show it.
    pub fn relation(&mut self, text: impl Into<String>, holds: Option<bool>, detail: impl Into<String>) {
        self.relations.push((text.into(), holds, detail.into()));
    }
}

/// The rows of one experiment: every printed quantity, measured or not, then further ones, then relations. Where `results` have
/// runs of what ships, each row has that beside it, or why there is nothing.
pub fn evaluate(experiment: &Experiment, published: Option<&Published>, results: &Results) -> (Vec<Row>, Vec<String>) {
    let (mut rows, notes) = of_generation(experiment, published, results);
    match experiment.ships {
        Ships::Not(why) => rows.iter_mut().for_each(|row| row.shipped = Some(Shipped::nothing(why))),
        Ships::In(cases) => {
            if let Some(shipped) = results.with_shipped_in(cases) {
                let (shipped, _) = of_generation(experiment, published, &shipped);
                // What is there without these cases has nothing to do with mHIP.
                let (others, _) = of_generation(experiment, published, &results.without(cases));
                let same = |rows: &[Row], name: &str| rows.iter().find(|row| row.quantity == name).cloned();
                for row in &mut rows {
                    row.shipped = match same(&others, &row.quantity).filter(|other| other.is_measured) {
                        Some(_) => Some(Shipped::nothing(NO_PART)),
                        None => same(&shipped, &row.quantity).map(|shipped| Shipped::beside(row, &shipped)),
                    };
                }
            }
        }
    }
    (rows, notes)
}

fn of_generation(experiment: &Experiment, published: Option<&Published>, results: &Results) -> (Vec<Row>, Vec<String>) {
    let mut evaluation = Evaluation::default();
    (experiment.evaluate)(results, &mut evaluation);
    let mut rows = Vec::new();
    let printed = split(published.map_or(&[][..], |published| &published.quantities));
    for quantity in &printed {
        let number = evaluation.quantities.iter().find(|number| number.name == quantity.name);
        rows.push(printed_row(experiment.id, quantity, number.and_then(|number| number.measured)));
    }
    for Number { name, unit, accept, measured } in &evaluation.quantities {
        if printed.iter().all(|quantity| quantity.name != *name) {
            let row = row(experiment.id, name, if unit.is_empty() { "Mbit/s" } else { unit });
            rows.push(with(row, *accept, *measured));
        }
    }
    for (text, holds, detail) in &evaluation.relations {
        let row = row(experiment.id, text, "");
        let (ok, is_measured) = (Some(holds.unwrap_or(false)), holds.is_some());
        rows.push(Row { ok, relation: true, detail: detail.clone(), is_measured, ..row });
    }
    (rows, evaluation.notes)
}

/// The name of one of the parts that the end of `name` lists: "equal: DAIMD A, B, total" is "equal: DAIMD A", "equal: DAIMD B"
/// and "equal: DAIMD total".
fn part(name: &str, index: usize) -> String {
    let (before, list) =
        name.rsplit_once(": ").map_or((String::new(), name), |(before, list)| (format!("{before}: "), list));
    let mut parts = list.split(", ");
    let first = parts.next().unwrap_or(list);
    let stem = first.rsplit_once(' ').map_or(String::new(), |(stem, _)| format!("{stem} "));
    match index.checked_sub(1) {
        None => format!("{before}{first}"),
        Some(index) => format!("{before}{stem}{}", parts.nth(index).unwrap_or("?")),
    }
}

/// Quantities with as many numbers as their names list parts become one for each.
fn split(quantities: &[Quantity]) -> Vec<Quantity> {
    let mut all = Vec::new();
    for quantity in quantities {
        let list = quantity.name.rsplit(": ").next().unwrap_or_default();
        match &quantity.value {
            Printed::Numbers(numbers) if quantity.accept.is_none() && numbers.len() == list.split(", ").count() => {
                all.extend(numbers.iter().enumerate().map(|(index, number)| Quantity {
                    name: part(&quantity.name, index),
                    value: Printed::Number(*number),
                    ..quantity.clone()
                }));
            }
            _ => all.push(quantity.clone()),
        }
    }
    all
}

fn row(id: &str, quantity: &str, unit: &str) -> Row {
    Row { id: id.to_owned(), quantity: quantity.to_owned(), unit: unit.to_owned(), ..Row::default() }
}

fn printed_row(id: &str, quantity: &Quantity, measured: Option<Measured>) -> Row {
    let row = Row { published: Some(quantity.value.clone()), ..row(id, &quantity.name, &quantity.unit) };
    with(row, quantity.accept, measured)
}

fn with(row: Row, accept: Option<[f64; 2]>, measured: Option<Measured>) -> Row {
    let Some(measured) = measured else {
        // Not measured is not reproduced.
        return Row { accept, ok: accept.map(|_| false), detail: "not measured".to_owned(), ..row };
    };
    Row {
        accept,
        mean: Some(measured.mean),
        low: Some(measured.low),
        high: Some(measured.high),
        seeds: measured.seeds,
        ok: accept.map(|accept| measured.accepted(accept)),
        spread: measured.spread,
        is_measured: true,
        detail: if measured.spread { "spread: least and greatest of all settings".to_owned() } else { String::new() },
        ..row
    }
}

/// Rows for people: an experiment's under its name, the verdict first.
pub fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    let mut last = "";
    for row in rows {
        if row.id != last {
            let _ = writeln!(text, "{}{}", if last.is_empty() { "" } else { "\n" }, row.id);
            if let Some(why) = nothing_ships(rows, &row.id) {
                let _ = writeln!(text, "       what ships: {why}");
            }
            if !row.relation {
                let _ = writeln!(
                    text,
                    "  {:4} {:64} {:>12} {:>22} {:>15}  {:>5}",
                    "", "quantity", "published", "measured, 95 %", "accepted", "seeds"
                );
            }
            last = &row.id;
        }
        let verdict = match row.ok {
            Some(true) => "ok",
            Some(false) => "RED",
            None => "",
        };
        if row.relation {
            let _ = writeln!(text, "  {verdict:4} {}", row.quantity);
            if !row.detail.is_empty() {
                let _ = writeln!(text, "       {}", row.detail);
            }
            text.push_str(&shipped_line(row));
            continue;
        }
        let measured = match (row.mean, row.low, row.high) {
            (Some(mean), Some(low), Some(high)) => format!("{} [{}, {}]", short(mean), short(low), short(high)),
            _ => "not measured".to_owned(),
        };
        let published = row.published.as_ref().map_or_else(String::new, ToString::to_string);
        let accept = row.accept.map_or_else(String::new, |[low, high]| format!("{low} to {high}"));
        let unit = if row.unit == "1" { String::new() } else { format!(", {}", row.unit) };
        let quantity = format!("{}{unit}", row.quantity);
        let _ =
            writeln!(text, "  {verdict:4} {quantity:64} {published:>12} {measured:>22} {accept:>15}  {:>5}", row.seeds);
        text.push_str(&shipped_line(row));
    }
    let judged = rows.iter().filter(|row| !row.relation && row.ok.is_some()).count();
    let inside = rows.iter().filter(|row| !row.relation && row.ok == Some(true)).count();
    let relations = rows.iter().filter(|row| row.relation).count();
    let hold = rows.iter().filter(|row| row.relation && row.ok == Some(true)).count();
    let _ = write!(
        text,
        "\n{inside} of {judged} quantities are inside the accepted range; {hold} of {relations} relations hold."
    );
    let compared = rows.iter().filter_map(|row| row.shipped.as_ref()?.ok).count();
    let worse = rows.iter().filter(|row| row.shipped.as_ref().is_some_and(|shipped| shipped.ok == Some(false))).count();
    if compared > 0 {
        let _ = write!(text, "\nWhat ships is worse than the papers' mHIP in {worse} of {compared}.");
    }
    text
}

/// Why nothing of what ships is in the experiment `id`, if that holds for all its rows.
pub(crate) fn nothing_ships<'a>(rows: &'a [Row], id: &str) -> Option<&'a str> {
    let mut reasons = rows.iter().filter(|row| row.id == id).map(|row| {
        let shipped = row.shipped.as_ref().filter(|shipped| shipped.mean.is_none() && shipped.ok.is_none());
        shipped.map(|shipped| shipped.detail.as_str())
    });
    let first = reasons.next()??;
    reasons.all(|reason| reason == Some(first)).then_some(first)
}

/// What ships under a row, where there is anything to say.
fn shipped_line(row: &Row) -> String {
    let Some(shipped) = &row.shipped else { return String::new() };
    let worse = if shipped.ok == Some(false) { "RED" } else { "" };
    match (shipped.mean, shipped.low, shipped.high, shipped.ok) {
        (Some(mean), Some(low), Some(high), _) => {
            let measured = format!("{} [{}, {}]", short(mean), short(low), short(high));
            format!("  {worse:4} {:64} {:>12} {measured:>22}\n", "  what ships", "")
        }
        (.., Some(_)) => format!("  {worse:4}   what ships: {}\n", shipped.detail),
        _ => String::new(),
    }
}

/// A number with three or four digits that matter.
pub(crate) fn short(value: f64) -> String {
    let digits = match value.abs() {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ships_is_red_where_it_is_worse() {
        let row = |mean: f64| Row { mean: Some(mean), accept: Some([0.9, 1.1]), ..Row::default() };
        let ok = |generation: &Row, shipped: &Row| Shipped::beside(generation, shipped).ok;
        assert_eq!(ok(&row(1.0), &row(1.1)), Some(true));
        assert_eq!(ok(&row(1.0), &row(1.2)), Some(false));
        // Nearer to the range than a red generation, from whatever side.
        assert_eq!((ok(&row(1.3), &row(0.8)), ok(&row(1.2), &row(0.7))), (Some(true), Some(false)));
        assert_eq!(ok(&row(5.0), &Row::default()), Some(false));
        // Of a spread the farther end counts.
        let spread = |low, high| Row { low: Some(low), high: Some(high), spread: true, ..row(1.0) };
        assert_eq!(ok(&spread(0.9, 1.2), &spread(0.7, 1.1)), Some(false));
        let relation = |holds| Row { relation: true, ok: Some(holds), ..Row::default() };
        let of = |generation, shipped| ok(&relation(generation), &relation(shipped));
        assert_eq!((of(true, false), of(true, true), of(false, false)), (Some(false), Some(true), Some(true)));
        assert_eq!(ok(&Row::default(), &row(1.0)), None);
    }

    #[test]
    fn a_quantity_of_parts_is_a_row_for_each() {
        let quantity = |name: &str, numbers: &[f64]| Quantity {
            name: name.to_owned(),
            value: Printed::Numbers(numbers.to_vec()),
            unit: "Mbit/s".to_owned(),
            accept: None,
        };
        let names = |quantity| split(&[quantity]).into_iter().map(|q| (q.name, q.value)).collect::<Vec<_>>();
        assert_eq!(
            names(quantity("equal: DAIMD A, B, total", &[1.0, 2.0, 3.0])),
            [
                ("equal: DAIMD A".to_owned(), Printed::Number(1.0)),
                ("equal: DAIMD B".to_owned(), Printed::Number(2.0)),
                ("equal: DAIMD total".to_owned(), Printed::Number(3.0)),
            ]
        );
        assert_eq!(names(quantity("scenario 3, beta = 4: B01, B10", &[0.0, 4.0]))[1].0, "scenario 3, beta = 4: B10");
        // An interval stays one.
        assert_eq!(names(quantity("the factor", &[0.9, 1.1])).len(), 1);
    }
}
