//! A part of a campaign's runs, for one of several machines that work on one store.

use std::fmt;
use std::str::FromStr;

/// Variables in which a cluster tells a job of an array its number, each with the one that tells the first number.
const NUMBERS: [(&str, Option<&str>); 2] =
    [("SLURM_ARRAY_TASK_ID", Some("SLURM_ARRAY_TASK_MIN")), ("JOB_COMPLETION_INDEX", None)];
/// How many jobs the array has, where the cluster tells it.
const COUNT: &str = "SLURM_ARRAY_TASK_COUNT";

/// Every so many-th run of a campaign, so that the points of a sweep are spread over the shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: u32,
    of: u32,
}

impl Shard {
    /// From `K/N`, the `K`-th of `N`; from `auto/N`, whose number a cluster's variable tells, and with Slurm from `auto`.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    pub fn parse(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let asked = |name: &str| match variable(name) {
            Some(value) => whole(&value).map(Some).map_err(|wrong| format!("{name}: {wrong}")),
            None => Ok(None),
        };
        let (number, of) = match text.split_once('/') {
            Some((number, of)) => (number, Some(whole(of)?)),
            None if text == "auto" => (text, asked(COUNT)?),
            None => return Err("write K/N, the K-th of N shards, or auto/N".to_owned()),
        };
        let of = of.ok_or_else(|| format!("{COUNT} is not set: write auto/N with the number of shards"))?;
        let number = if number == "auto" { array_number(asked)? } else { whole(number)? };
        if (1..=of).contains(&number) {
            Ok(Self { number, of })
        } else {
            Err(format!("there is no shard {number} of {of}: they are counted from 1"))
        }
    }

    /// Whether the run at this place of the campaign belongs to it.
    pub(crate) fn takes(self, place: usize) -> bool {
        place as u64 % u64::from(self.of) == u64::from(self.number - 1)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// The number that a cluster gave this job, from 1.
fn array_number(asked: impl Fn(&str) -> Result<Option<u32>, String>) -> Result<u32, String> {
    for (number, first) in NUMBERS {
        let Some(number) = asked(number)? else { continue };
        let first = first.map_or(Ok(None), &asked)?.unwrap_or(0);
        return number
            .checked_sub(first)
            .and_then(|number| number.checked_add(1))
            .ok_or_else(|| format!("the job's number {number} is not one of an array that begins with {first}"));
    }
    let names = text::alternatives(NUMBERS.map(|(name, _)| name));
    Err(format!("no {names} is set: write K/N with the shard's number"))
}

fn whole(text: &str) -> Result<u32, String> {
    u32::from_str(text.trim()).map_err(|_| format!("{text:?} is no number of a shard"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn parse(text: &str, variables: &[(&str, &str)]) -> Result<String, String> {
        let variables: BTreeMap<_, _> = variables.iter().copied().collect();
        Shard::parse(text, |name| variables.get(name).map(|value| (*value).to_owned())).map(|shard| shard.to_string())
    }

    #[test]
    fn a_shard_is_named_or_the_cluster_says_it() {
        let slurm = [("SLURM_ARRAY_TASK_ID", "7"), ("SLURM_ARRAY_TASK_MIN", "5"), ("SLURM_ARRAY_TASK_COUNT", "9")];
        let right: [(&str, &[_], &str); 5] = [
            ("3/64", &[], "3/64"),
            ("auto", &slurm, "3/9"),
            ("auto/8", &slurm, "3/8"),
            ("auto/64", &[("JOB_COMPLETION_INDEX", "63")], "64/64"),
            ("1/1", &slurm, "1/1"),
        ];
        for (text, variables, expected) in right {
            assert_eq!(parse(text, variables), Ok(expected.to_owned()), "{text}");
        }
        let wrong: [(&str, &[_], &str); 8] = [
            ("0/4", &[], "there is no shard 0 of 4"),
            ("5/4", &[], "there is no shard 5 of 4"),
            ("1/0", &[], "there is no shard 1 of 0"),
            ("3", &[], "write K/N"),
            ("x/4", &[], "\"x\" is no number"),
            ("auto", &[], "SLURM_ARRAY_TASK_COUNT is not set"),
            ("auto/4", &[], "no SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX is set"),
            ("auto/4", &[("JOB_COMPLETION_INDEX", "4294967295")], "is not one of an array"),
        ];
        for (text, variables, expected) in wrong {
            let told = parse(text, variables).unwrap_err();
            assert!(told.contains(expected), "{text}: {told}");
        }
    }

    #[test]
    fn each_run_is_in_one_shard() {
        let shards: Vec<Shard> = (1..=7).map(|number| Shard { number, of: 7 }).collect();
        for place in 0..100 {
            assert_eq!(shards.iter().filter(|shard| shard.takes(place)).count(), 1);
        }
    }
}
