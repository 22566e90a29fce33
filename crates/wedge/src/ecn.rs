//! Explicit Congestion Notification through the tunnel (RFC 3168, RFC 6040).
//!
//! On the way out the outer header gets the inner one's codepoint (RFC 6040 §4.1, normal mode). On the way in the two are
//! combined by the table of §4.2. In BEET form (RFC 7402 §3.2) the inner header is not sent; between Sinnet hosts a packet carries the
//! codepoint beside its number, and one without a number has none. Of a plain HIP host's packets only the outer codepoint is
//! known: what was marked had said that it may be. The differentiated services field is neither copied out nor in, so that an outer
//! packet does not tell what is inside.

use multipath::Ecn;

/// What the packet for the program carries, RFC 6040 §4.2; `None` where it is to be dropped: it was marked although its
/// flow does not understand marks, so dropping is the only way to tell it.
pub(crate) fn decapsulate(inner: Option<Ecn>, outer: Ecn) -> Option<Ecn> {
    let Some(inner) = inner else { return Some(outer) };
    match (inner, outer) {
        (Ecn::NotEct, Ecn::Ce) => None,
        (Ecn::Ect0 | Ecn::Ect1, Ecn::Ce) => Some(Ecn::Ce),
        (Ecn::Ect0, Ecn::Ect1) => Some(Ecn::Ect1),
        _ => Some(inner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6040 §4.2, figure 4, as it is printed: a row for each arriving inner header, a column for each outer.
    const FIGURE_4: &str = "
                 Not-ECT   ECT(0)    ECT(1)    CE
        Not-ECT  Not-ECT   Not-ECT   Not-ECT   drop
        ECT(0)   ECT(0)    ECT(0)    ECT(1)    CE
        ECT(1)   ECT(1)    ECT(1)    ECT(1)    CE
        CE       CE        CE        CE        CE
    ";

    fn codepoint(name: &str) -> Option<Ecn> {
        match name {
            "Not-ECT" => Some(Ecn::NotEct),
            "ECT(0)" => Some(Ecn::Ect0),
            "ECT(1)" => Some(Ecn::Ect1),
            "CE" => Some(Ecn::Ce),
            "drop" => None,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn headers_are_combined_as_the_table_says() {
        let mut rows = FIGURE_4.lines().filter(|line| !line.trim().is_empty());
        let outers: Vec<Ecn> = rows.next().unwrap().split_whitespace().map(|name| codepoint(name).unwrap()).collect();
        let mut cells = 0;
        for row in rows {
            let mut names = row.split_whitespace().map(codepoint);
            let inner = names.next().unwrap();
            for (outer, expected) in outers.iter().zip(names) {
                assert_eq!(decapsulate(inner, *outer), expected, "{inner:?} in {outer:?}");
                cells += 1;
            }
        }
        assert_eq!(cells, 16);
    }
}
