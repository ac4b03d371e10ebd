//! Masks identities in URIs for logs.

/// Prefixes of subscriber and equipment identities.
const KINDS: [&str; 5] = ["imsi-", "msisdn-", "imei-", "imeisv-", "suci-"];

/// The text with masked identities: the first five and last two digits remain; of a SUCI, the scheme output
/// is hidden.
pub fn masked(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((start, kind)) = next_identity(rest) {
        let (before, identity) = rest.split_at(start);
        // An identity that is masked already stays as it is.
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '*' | '…');
        let end = identity.find(|c| !is_part(c)).unwrap_or(identity.len());
        let (identity, after) = identity.split_at(end);
        shown.push_str(before);
        match kind {
            "suci-" => shown.push_str(&without_output(identity)),
            _ => shown.extend(identity.chars().enumerate().map(|(at, c)| hide(at, c, identity.len()))),
        }
        rest = after;
    }
    shown.push_str(rest);
    shown
}

/// Start of the next identity after its prefix, and the prefix.
fn next_identity(text: &str) -> Option<(usize, &'static str)> {
    let found = KINDS.iter().filter_map(|kind| Some((text.find(kind)? + kind.len(), *kind)));
    found.min()
}

fn hide(at: usize, shown: char, length: usize) -> char {
    if at >= 5 && at + 2 < length { '*' } else { shown }
}

/// A SUCI without scheme output: `0-999-70-0-0-0-…`.
fn without_output(suci: &str) -> String {
    let (head, _) = suci.rsplit_once('-').unwrap_or_default();
    format!("{head}-…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_identities_are_masked_everywhere() {
        let text = "/nudm-sdm/v2/imsi-999700000000001/x/imei-353490069873319?a=imsi-";
        let hidden = "/nudm-sdm/v2/imsi-99970********01/x/imei-35349********19?a=imsi-";
        assert_eq!(masked(text), hidden);
        assert_eq!(masked("/suci-0-999-70-0-0-0-0000000001/x"), "/suci-0-999-70-0-0-0-…/x");
        assert_eq!(masked("imsi-999700000000001 is unknown"), "imsi-99970********01 is unknown");
        assert_eq!(masked(hidden), hidden);
        assert_eq!(masked("/suci-0-999-70-0-0-0-…/x"), "/suci-0-999-70-0-0-0-…/x");
        assert_eq!(masked("/nf-instances/17/suci-"), "/nf-instances/17/suci--…");
    }

    #[test]
    fn a_problem_in_the_log_names_no_subscriber() {
        let problem = crate::Problem::of_status(404).detail("no imsi-999700000000001");
        assert_eq!(problem.to_string(), "404: no imsi-99970********01");
    }
}
