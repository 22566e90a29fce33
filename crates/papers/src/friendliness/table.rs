//! What the outcomes of all networks come to.

use std::fmt::Write as _;

use fairness::statistics::quantile;

use super::Outcome;

/// Factors within these are fair.
const FAIR: (f64, f64) = (0.67, 1.5);
/// Factors beyond these are far from it.
const FAR: (f64, f64) = (0.4, 2.5);
/// In whose place the tested one is.
const IN_PLACE: &str = "tcp:cubic";

/// How many of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Share {
    /// So many.
    pub count: usize,
    /// Of so many.
    pub of: usize,
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Line {
    /// Who competed.
    pub beside: String,
    /// Who was tested.
    pub tested: String,
    /// What travelled inside, if anything.
    pub inside: Option<String>,
    /// In what networks: "all", or of one queue, or with so much shared.
    pub networks: String,
    /// The median of the friendliness factor.
    pub median: f64,
    /// Factors within 0.67 to 1.5.
    pub fair: Share,
    /// Above 2.5.
    pub above: usize,
    /// Below 0.4.
    pub below: usize,
    /// The 90 % quantile over the 10 % quantile.
    pub spread: f64,
    /// The least Jain's index.
    pub jain: f64,
    /// Factors within 0.67 to 1.5, of networks where that of a CUBIC in its place is.
    pub fair_where_tcp: Option<Share>,
    /// Above 2.5 or below 0.4, of networks where a CUBIC in its place is neither.
    pub far_where_not_tcp: Option<Share>,
}

/// The lines of a table: who was tested beside whom, and where `each` is wanted, of each queue and of what is shared.
pub fn lines(outcomes: &[Outcome], each: bool) -> Vec<Line> {
    let mut parts: Vec<(String, Vec<&Outcome>)> = vec![("all".to_owned(), outcomes.iter().collect())];
    if each {
        for key in [|outcome: &Outcome| outcome.shared, |outcome: &Outcome| outcome.queue] {
            for name in distinct(outcomes.iter().map(key)) {
                parts.push((name.to_owned(), outcomes.iter().filter(|outcome| key(outcome) == name).collect()));
            }
        }
    }
    parts.iter().flat_map(|(name, outcomes)| lines_of(name, outcomes)).collect()
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut known = Vec::new();
    for name in names {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    known
}

fn lines_of(networks: &str, outcomes: &[&Outcome]) -> Vec<Line> {
    let mut lines = Vec::new();
    for beside in distinct(outcomes.iter().map(|outcome| outcome.beside.as_str())) {
        let beside: Vec<&Outcome> = outcomes.iter().copied().filter(|outcome| outcome.beside == beside).collect();
        let in_place: Vec<&Outcome> = beside.iter().copied().filter(|outcome| outcome.tested == IN_PLACE).collect();
        let mut known: Vec<(&str, Option<&str>)> = Vec::new();
        for outcome in &beside {
            let who = (outcome.tested.as_str(), outcome.inside.as_deref());
            if !known.contains(&who) {
                known.push(who);
                let of = |other: &&Outcome| (other.tested.as_str(), other.inside.as_deref()) == who;
                lines.extend(line(networks, &beside.iter().copied().filter(of).collect::<Vec<_>>(), &in_place));
            }
        }
    }
    lines
}

fn line(networks: &str, outcomes: &[&Outcome], in_place: &[&Outcome]) -> Option<Line> {
    let first = outcomes.first()?;
    let mut sorted: Vec<f64> = outcomes.iter().map(|outcome| outcome.factor).collect();
    sorted.sort_by(f64::total_cmp);
    let is_fair = |factor: f64| (FAIR.0..=FAIR.1).contains(&factor);
    let is_far = |factor: f64| !(FAR.0..=FAR.1).contains(&factor);
    let count = |what: &dyn Fn(f64) -> bool| sorted.iter().filter(|factor| what(**factor)).count();
    // Of the networks in which that of the TCP is so, in how many the tested one's is so.
    let given = |tcp: &dyn Fn(f64) -> bool, what: &dyn Fn(f64) -> bool| {
        let mut share = Share::default();
        for outcome in outcomes {
            let same = in_place.iter().find(|other| other.network == outcome.network);
            if same.is_some_and(|other| tcp(other.factor)) {
                share.of += 1;
                share.count += usize::from(what(outcome.factor));
            }
        }
        (first.tested != IN_PLACE && share.of > 0).then_some(share)
    };
    Some(Line {
        beside: first.beside.clone(),
        tested: first.tested.clone(),
        inside: first.inside.clone(),
        networks: networks.to_owned(),
        median: quantile(&sorted, 0.5)?,
        fair: Share { count: count(&is_fair), of: sorted.len() },
        above: count(&|factor| factor > FAR.1),
        below: count(&|factor| factor < FAR.0),
        spread: quantile(&sorted, 0.9)? / quantile(&sorted, 0.1)?,
        jain: outcomes.iter().map(|outcome| outcome.jain).fold(1.0, f64::min),
        fair_where_tcp: given(&is_fair, &is_fair),
        far_where_not_tcp: given(&|factor| !is_far(factor), &is_far),
    })
}

/// The lines for a terminal.
pub fn table(lines: &[Line]) -> String {
    let mut text = String::from(
        "beside          tested                    inside     networks        median  0.67-1.5      >2.5 <0.4  p90/p10  least Jain  of TCP's   far, TCP not\n",
    );
    for line in lines {
        let percent = |Share { count, of }: Share| format!("{:.0} % of {of}", 100.0 * count as f64 / of.max(1) as f64);
        let of = |share: Option<Share>, how: &dyn Fn(Share) -> String| share.map_or_else(|| "-".to_owned(), how);
        let _ = writeln!(
            text,
            "{:15} {:25} {:10} {:15} {:6.2}  {:13} {:4} {:4}  {:7.2}  {:10.3}  {:10} {}",
            line.beside,
            line.tested,
            line.inside.as_deref().unwrap_or("-"),
            line.networks,
            line.median,
            percent(line.fair),
            line.above,
            line.below,
            line.spread,
            line.jain,
            of(line.fair_where_tcp, &percent),
            of(line.far_where_not_tcp, &|Share { count, of }| format!("{count} of {of}")),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(network: u64, tested: &str, factor: f64) -> Outcome {
        Outcome {
            network,
            about: String::new(),
            shared: "all paths",
            queue: "drop-tail",
            tested: tested.to_owned(),
            inside: None,
            beside: "tcp:reno".to_owned(),
            factor,
            jain: 1.0 - factor / 10.0,
            sum: 10.0,
        }
    }

    #[test]
    fn lines_are_what_was_counted_by_hand() {
        let sinnet = [0.3, 0.7, 1.0, 1.4, 3.0];
        let tcp = [0.5, 0.9, 1.1, 2.6, 1.2];
        let all: Vec<Outcome> = (1..)
            .zip(sinnet)
            .map(|(number, factor)| outcome(number, "sinnet", factor))
            .chain((1..).zip(tcp).map(|(number, factor)| outcome(number, IN_PLACE, factor)))
            .collect();
        let lines = lines(&all, false);
        assert_eq!(lines.len(), 2);
        let ours = &lines[0];
        assert_eq!((ours.median, ours.fair, ours.above, ours.below), (1.0, Share { count: 3, of: 5 }, 1, 1));
        // The TCP is fair in networks 2, 3 and 5, of which 2 and 3 are; it is far in 4 alone, of the rest 1 and 5 are.
        assert_eq!(ours.fair_where_tcp, Some(Share { count: 2, of: 3 }));
        assert_eq!(ours.far_where_not_tcp, Some(Share { count: 2, of: 4 }));
        // Linear between ranks: 0.3 + 0.4·0.4 and 1.4 + 0.6·1.6.
        assert!((ours.spread - 2.36 / 0.46).abs() < 1e-9, "{}", ours.spread);
        assert!((ours.jain - 0.7).abs() < 1e-12);
        assert_eq!((lines[1].fair, lines[1].fair_where_tcp), (Share { count: 3, of: 5 }, None));
        assert_eq!(super::lines(&all, true).len(), 6, "and of each queue and of what is shared");
    }
}
