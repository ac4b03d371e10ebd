//! Documents that SBI requests bring: the octets of the member, as they are and as the sealed content of one.

use crate::target::{CheckFailed, ensure, same};
use pith_runtime::residency::EmbeddedContent;

/// What is not sealed is refused. Sealed content is refused, or adopted, and then the same when it is sent on.
pub fn embedded(input: &[u8]) -> Result<(), CheckFailed> {
    ensure(EmbeddedContent::adopt(input).is_none(), || "octets without a seal are adopted".to_owned())?;
    let adopted = EmbeddedContent::sealed(input).and_then(|sealed| EmbeddedContent::adopt(&sealed));
    let Some(adopted) = adopted else { return Ok(()) };
    let again = adopted.plain().and_then(|plain| EmbeddedContent::sealed(&plain));
    same(&adopted, again.and_then(|sealed| EmbeddedContent::adopt(&sealed)).ok_or("not adopted again"))
}
