//! The log of documents: the octets of a segment, as they are and with correct checksums.

use crate::target::{CheckFailed, ensure, same};
use pith_runtime::residency::{SegmentContent, with_checksums};

/// A segment: its items are adjacent, up to the last complete batch, and the same when the rest is cut.
pub fn segment(input: &[u8]) -> Result<(), CheckFailed> {
    let _ = contiguous(input)?;
    let corrected = with_checksums(input);
    let content = contiguous(&corrected)?;
    let complete = corrected.get(..content.end as usize).unwrap_or_default();
    same(&SegmentContent { torn: 0, ..content }, Ok::<_, String>(contiguous(complete)?))
}

fn contiguous(octets: &[u8]) -> Result<SegmentContent, CheckFailed> {
    let content = SegmentContent::of(octets);
    let ends_within = content.end + content.torn == octets.len() as u64;
    ensure(ends_within, || format!("{} and {} of {}", content.end, content.torn, octets.len()))?;
    let start = content.items.first().map_or(content.end, |item| item.offset);
    let end = content.items.iter().try_fold(start, |at, item| {
        ensure(item.offset == at && item.length > 0, || format!("octets between items at {at}"))?;
        Ok::<_, CheckFailed>(at + item.length)
    })?;
    ensure(end == content.end, || format!("the items end at {end}, the segment at {}", content.end))?;
    Ok(content)
}
