//! What an answer says of a name: the records of a type at the end of its aliases.

use hickory_proto::rr::{Name, RData, Record, RecordType};

/// Aliases that are followed. Resolvers give up at about as many.
const MOST_ALIASES: usize = 12;

/// Why an answer says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChainError {
    /// An alias of itself, or of more than one name, or too many in a row.
    Loop,
}

/// The records of type `kind` that `answers` have for `name`, through its aliases (RFC 1034 §3.6.2), and for how many seconds all
/// of that holds. None is no error.
pub(super) fn records<'a>(
    answers: &'a [Record],
    name: &Name,
    kind: RecordType,
) -> Result<(Vec<&'a RData>, u32), ChainError> {
    let (mut name, mut ttl) = (name, u32::MAX);
    for _ in 0..=MOST_ALIASES {
        let mut aliases =
            answers.iter().filter(|record| record.name == *name).filter_map(|record| match &record.data {
                RData::CNAME(alias) => Some((&alias.0, record.ttl)),
                _ => None,
            });
        let Some((alias, holds)) = aliases.next() else {
            let found = answers.iter().filter(|record| record.name == *name && record.record_type() == kind);
            let found: Vec<_> = found.map(|record| (&record.data, record.ttl)).collect();
            let ttl = found.iter().map(|(_, holds)| *holds).fold(ttl, u32::min);
            return Ok((found.into_iter().map(|(data, _)| data).collect(), ttl));
        };
        // RFC 2181 §10.1: a name has one.
        if aliases.any(|(other, _)| other != alias) {
            return Err(ChainError::Loop);
        }
        (name, ttl) = (alias, ttl.min(holds));
    }
    Err(ChainError::Loop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_proto::rr::rdata::{A, CNAME};

    fn name(name: &str) -> Name {
        Name::from_ascii(name).expect("a name")
    }

    fn alias(from: &str, to: &str) -> Record {
        Record::from_rdata(name(from), 300, RData::CNAME(CNAME(name(to))))
    }

    fn address(of: &str, last: u8) -> Record {
        Record::from_rdata(name(of), 60, RData::A(A::new(192, 0, 2, last)))
    }

    #[test]
    fn records_are_found_through_aliases_and_only_those() {
        let answers = [
            alias("c.", "d."),
            alias("a.", "b."),
            alias("B.", "c."),
            address("d.", 1),
            address("e.", 2),
            address("D.", 3),
        ];
        let (found, ttl) = records(&answers, &name("A."), RecordType::A).expect("ends");
        assert_eq!(found, [&RData::A(A::new(192, 0, 2, 1)), &RData::A(A::new(192, 0, 2, 3))]);
        assert_eq!(ttl, 60);
        assert_eq!(records(&answers, &name("a."), RecordType::AAAA), Ok((vec![], 300)));
        assert_eq!(records(&answers, &name("x."), RecordType::A), Ok((vec![], u32::MAX)));
    }

    #[test]
    fn aliases_that_go_round_end() {
        for answers in [
            vec![alias("a.", "a.")],
            vec![alias("a.", "b."), alias("b.", "a."), address("a.", 1)],
            vec![alias("a.", "b."), alias("a.", "c."), address("b.", 1)],
            (0..100).map(|number| alias(&format!("{number}."), &format!("{}.", number + 1))).collect(),
        ] {
            assert_eq!(records(&answers, &answers[0].name, RecordType::A), Err(ChainError::Loop));
        }
    }
}
