//! The report: one HTML file with everything in it.
//!
//! Charts are drawn by Apache ECharts 6.1.0, in its build of the common charts: it zooms, shows values under a finger as well
//! as under a mouse, and switches series on and off, all of which smaller libraries leave to be written. It comes from the
//! npm registry as it is, with its licence beside it in `assets`.

mod topology;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use scenario::Scenario;

use crate::PapersError;
use crate::experiment::Experiment;
use crate::published::{Published, papers, published};
use crate::reasons::{Column, Reason, reason, reasons};
use crate::results::Results;
use crate::row::{Row, Shipped, evaluate, nothing_ships, short};

const LIBRARY: &str = include_str!("../../assets/echarts.common.min.js");
const STYLE: &str = include_str!("../../assets/report.css");
const SCRIPT: &str = include_str!("../../assets/report.js");

/// The page over `experiments`, written by `version` of the program when it was started by `command`.
///
/// # Errors
/// None, unless a file inside the program is broken.
pub fn report(
    experiments: &[&Experiment],
    results: &Results,
    version: &str,
    command: &str,
) -> Result<String, PapersError> {
    let published: BTreeMap<String, Published> =
        published()?.into_iter().map(|published| (published.id.clone(), published)).collect();
    let reasons = reasons()?;
    let (mut sections, mut contents, mut all) = (String::new(), String::new(), Vec::new());
    for experiment in experiments {
        let printed = published.get(experiment.id);
        let (rows, notes) = evaluate(experiment, printed, results);
        contents.push_str(&entry(experiment, &rows));
        sections.push_str(&section(experiment, printed, &rows, &notes, &reasons, results));
        all.extend(rows);
    }
    let count = |relation: bool, ok: bool| {
        all.iter().filter(|row| row.relation == relation && row.ok.is_some_and(|is| is || !ok)).count()
    };
    let compared = |wanted: &dyn Fn(bool) -> bool| {
        all.iter().filter_map(|row| row.shipped.as_ref()?.ok).filter(|ok| wanted(*ok)).count()
    };
    let mut page = String::with_capacity(LIBRARY.len() + sections.len() + 20_000);
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <title>The papers, reproduced</title><style>{STYLE}</style></head><body>\
         <header><h1>The papers, reproduced</h1>\
         <p>Every figure and table of the papers on multipath HIP, simulated again and set beside what the papers print. \
         <strong>{} of {}</strong> quantities are inside the range in which we call them reproduced; \
         <strong>{} of {}</strong> relations hold. What is not reached is red, with what we know of the reason. \
         Where mHIP is in an experiment, it is run again with Sinnet as it ships in place of the papers' mHIP: \
         in <strong>{} of {}</strong> that is worse, and red.</p>\
         <p class=\"small\">Numbers are means over independent runs, each with its own seed and its own random starts within \
         the first second; brackets are 95 % intervals (Student's t; for ratios Fieller's). A quantity is reproduced when the \
         mean is in the accepted range; of a spread over settings, when the least and the greatest are. Each generation of mHIP \
         has one set of parameters, and the exceptions are told where they are made. Lines over time are the first seed's run.</p></header>\
         <nav><ol>{contents}</ol></nav><main>{sections}</main>",
        count(false, true),
        count(false, false),
        count(true, true),
        count(true, false),
        compared(&|ok| !ok),
        compared(&|_| true),
    );
    let _ = writeln!(
        page,
        "<footer>{}<p class=\"small\">Written by sinnet {}: <code>{}</code>. \
         Charts: Apache ECharts 6.1.0, Apache License 2.0.</p></footer>\
         <script>{LIBRARY}</script><script>{SCRIPT}</script></body></html>",
        bibliography()?,
        escaped(version),
        escaped(command)
    );
    Ok(page)
}

/// What the numbers in brackets stand for.
fn bibliography() -> Result<String, PapersError> {
    let mut html = "<h2>The papers</h2><ol>".to_owned();
    for paper in papers()? {
        let authors = paper.authors.map(|authors| format!("{}: ", escaped(&authors))).unwrap_or_default();
        let year = paper.year.map(|year| format!(", {year}")).unwrap_or_default();
        let doi = paper.doi.map(|doi| format!(", DOI {}", escaped(&doi))).unwrap_or_default();
        let _ =
            write!(html, "<li value=\"{}\">{authors}<em>{}</em>{year}{doi}</li>", paper.number, escaped(&paper.title));
    }
    html.push_str("</ol>");
    Ok(html)
}

fn entry(experiment: &Experiment, rows: &[Row]) -> String {
    let red = rows.iter().filter(|row| row.ok == Some(false)).count();
    let judged = rows.iter().filter(|row| row.ok.is_some()).count();
    let mark = match (red, judged) {
        (_, 0) => String::new(),
        (0, judged) => format!("<span class=\"ok\">{judged} of {judged}</span>"),
        (red, judged) => format!("<span class=\"red\">{} of {judged}</span>", judged - red),
    };
    format!("<li><a href=\"#{}\">{}</a> {mark}</li>", anchor(experiment.id), escaped(experiment.title))
}

fn section(
    experiment: &Experiment,
    printed: Option<&Published>,
    rows: &[Row],
    notes: &[String],
    reasons: &[Reason],
    results: &Results,
) -> String {
    let mut html = format!("<section id=\"{}\"><h2>{}</h2>", anchor(experiment.id), escaped(experiment.title));
    let place = printed.map_or_else(
        || "In no paper".to_owned(),
        |published| format!("Paper [{}], {}", published.paper, published.place),
    );
    let _ = write!(html, "<p class=\"small\"><code>{}</code> · {}</p>", experiment.id, escaped(&place));
    let _ = write!(html, "<p>{}</p>", escaped(experiment.setup));
    if let Some(published) = printed {
        let _ = write!(
            html,
            "<details><summary>as the paper has it</summary><p>{}</p></details>",
            escaped(&published.setup)
        );
    }
    if let Some(case) = experiment.cases.first() {
        let scenarios: Vec<Scenario> = results.points(case).filter_map(|point| point.scenario()).collect();
        html.push_str(&topology::drawing(&scenarios));
    }
    for figure in (experiment.figures)(results) {
        let data = serde_json::to_string(&figure).unwrap_or_default().replace("</", "<\\/");
        let _ = write!(
            html,
            "<figure><figcaption><strong>{title}</strong> {}</figcaption>\
             <div class=\"chart\" role=\"img\" aria-label=\"{title}\"></div>\
             <div class=\"save\">save <button type=\"button\" data-save=\"svg\">figure (SVG)</button> \
             <button type=\"button\" data-save=\"csv\">data (CSV)</button></div>\
             <script type=\"application/json\">{data}</script></figure>",
            escaped(&figure.caption),
            title = escaped(&figure.title),
        );
    }
    if let Some(why) = nothing_ships(rows, experiment.id) {
        let _ = write!(html, "<p class=\"small\">What ships is not run here: {}.</p>", escaped(why));
    }
    if !rows.is_empty() {
        html.push_str(&table(rows, reasons));
    }
    for note in notes {
        let _ = write!(html, "<p class=\"note\">{}</p>", escaped(note));
    }
    if let Some(doubt) = printed.and_then(|published| published.doubt.as_deref()) {
        let _ = write!(html, "<p class=\"note\"><strong>What the paper leaves open:</strong> {}</p>", escaped(doubt));
    }
    html.push_str("</section>");
    html
}

fn table(rows: &[Row], reasons: &[Reason]) -> String {
    let ships = rows.iter().any(|row| row.shipped.is_some())
        && rows.first().is_some_and(|row| nothing_ships(rows, &row.id).is_none());
    let mut html = format!(
        "<div class=\"wide\"><table><thead><tr><th></th><th>quantity</th><th>published</th><th>measured</th>{}<th>accepted</th>\
         <th>runs</th></tr></thead><tbody>",
        if ships { "<th>shipped</th>" } else { "" }
    );
    let mut told = Vec::new();
    for row in rows {
        let (class, verdict) = match row.ok {
            Some(true) => ("ok", "✓"),
            Some(false) => ("red", "✗"),
            None => ("", ""),
        };
        let worse = row.shipped.as_ref().is_some_and(|shipped| shipped.ok == Some(false));
        let mut why = String::new();
        for (column, is_red, whose) in
            [(Column::Measured, row.ok == Some(false), ""), (Column::Shipped, worse, "<strong>What ships:</strong> ")]
        {
            // What several rows have in common is told once.
            let reason = reason(row, column, reasons).filter(|reason| is_red && !told.contains(&&reason.why));
            told.extend(reason.map(|reason| &reason.why));
            if let Some(reason) = reason {
                let _ = write!(why, "<div class=\"why\">{whose}{}</div>", escaped(&reason.why));
            }
        }
        if !why.is_empty() {
            why = format!("<tr><td class=\"\"></td><td colspan=\"{}\">{why}</td></tr>", 5 + usize::from(ships));
        }
        if row.relation {
            let shipped = row.shipped.as_ref().filter(|_| ships).map_or_else(String::new, |shipped| {
                let text = format!("<span class=\"small\">what ships: {}</span>", escaped(&shipped.detail));
                format!("<div>{}</div>", verdict_of(shipped, &text))
            });
            let _ = write!(
                html,
                "<tr class=\"relation\"><td class=\"{class}\">{verdict}</td><td colspan=\"{}\">{}<div class=\"small\">{}</div>{shipped}</td></tr>{why}",
                5 + usize::from(ships),
                escaped(&row.quantity),
                escaped(&row.detail)
            );
            continue;
        }
        let unit = if row.unit == "1" {
            String::new()
        } else {
            format!(" <span class=\"small\">{}</span>", escaped(&row.unit))
        };
        let measured = interval(row.mean, row.low, row.high).unwrap_or_else(|| escaped(&row.detail));
        let shipped = row.shipped.as_ref().map_or_else(String::new, |shipped| {
            let why = || format!("<span class=\"small\">{}</span>", escaped(&shipped.detail));
            verdict_of(shipped, &interval(shipped.mean, shipped.low, shipped.high).unwrap_or_else(why))
        });
        let shipped = if ships { format!("<td data-name=\"shipped\">{shipped}</td>") } else { String::new() };
        let published = row.published.as_ref().map_or_else(String::new, |value| escaped(&value.to_string()));
        let accept = row.accept.map_or_else(String::new, |[low, high]| format!("{low} to {high}"));
        let _ = write!(
            html,
            "<tr><td class=\"{class}\">{verdict}</td><td>{}{unit}</td><td data-name=\"published\">{published}</td>\
             <td data-name=\"measured\">{measured}</td>{shipped}<td data-name=\"accepted\">{accept}</td><td data-name=\"runs\">{}</td></tr>{why}",
            escaped(&row.quantity),
            row.seeds
        );
    }
    html.push_str("</tbody></table></div>");
    html
}

/// A number with its interval.
fn interval(mean: Option<f64>, low: Option<f64>, high: Option<f64>) -> Option<String> {
    let (mean, low, high) = (short(mean?), short(low?), short(high?));
    Some(format!("{mean} <span class=\"small\">[{low}, {high}]</span>"))
}

/// What ships, red where it is worse than the papers' generation.
fn verdict_of(shipped: &Shipped, text: &str) -> String {
    let (class, verdict) = match shipped.ok {
        Some(true) => ("ok", "✓"),
        Some(false) => ("red", "✗ worse"),
        None => ("", ""),
    };
    format!("<span class=\"{class}\">{verdict}</span> {text}")
}

fn anchor(id: &str) -> String {
    id.replace('/', "-")
}

/// Text in HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ships_has_a_column_where_it_was_run() {
        let find = || crate::experiment::find(&["mhip-friendliness/final".to_owned()]).unwrap();
        let page = report(&find(), &Results::default(), "1", "").unwrap();
        assert!(!page.contains("shipped"));
        let mut shipped = Results::default();
        for case in ["reference", "udp-interval", "udp-interval-8"] {
            shipped.add(case, Vec::new());
        }
        let page = report(&find(), &Results::default().with_shipped(shipped), "1", "").unwrap();
        assert_eq!(page.matches("<th>shipped</th>").count(), 1);
        assert!(page.contains("<td data-name=\"shipped\">") && page.contains("<td colspan=\"6\">"));
    }

    #[test]
    fn a_page_without_results_is_whole() {
        let experiments: Vec<_> = crate::experiment::all().collect();
        let page = report(&experiments, &Results::default(), "<1>", "sinnet papers report").unwrap();
        assert_eq!(page.matches("<section").count(), page.matches("</section>").count());
        assert_eq!(page.matches("<section").count(), experiments.len());
        assert!(page.contains("<code>sinnet papers report</code>") && page.contains("<li value=\"5\">"));
        assert_eq!(page.matches("data-save=\"csv\"").count(), page.matches("class=\"chart\"").count());
        assert!(page.contains("sinnet &lt;1&gt;") && page.ends_with("</html>\n"));
        // Nothing is fetched: the only addresses are those inside the library's licence and its own namespaces.
        let ours = page.replace(LIBRARY, "");
        assert!(!ours.contains("http://") && !ours.contains("https://"), "an address outside the file");
    }
}
