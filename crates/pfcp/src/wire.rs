//! Iteration over type-length-value information elements without copying (TS 29.244 8.1.1).

use crate::error::{IeError, IeFault};
use crate::ie_type::IeType;

/// A cursor over received octets that knows its offset in the message.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    /// Reads `bytes`, which start at `offset` in the message.
    pub fn new(bytes: &'a [u8], offset: usize) -> Self {
        Reader { rest: bytes, offset }
    }

    /// The offset of the next octet in the message.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Whether all octets are read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Takes the next `count` octets.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], IeFault> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(IeFault::InvalidLength)?;
        self.rest = rest;
        self.offset += count;
        Ok(taken)
    }

    /// Takes all remaining octets.
    pub fn take_rest(&mut self) -> &'a [u8] {
        let taken = std::mem::take(&mut self.rest);
        self.offset += taken.len();
        taken
    }

    /// Takes the next `N` octets as an array.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], IeFault> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(IeFault::InvalidLength)?;
        self.rest = rest;
        self.offset += N;
        Ok(*taken)
    }

    /// Takes an octet.
    pub fn u8(&mut self) -> Result<u8, IeFault> {
        self.array::<1>().map(|[octet]| octet)
    }

    /// Takes two octets as a number.
    pub fn u16(&mut self) -> Result<u16, IeFault> {
        self.array().map(u16::from_be_bytes)
    }

    /// Takes four octets as a number.
    pub fn u32(&mut self) -> Result<u32, IeFault> {
        self.array().map(u32::from_be_bytes)
    }

    /// Takes eight octets as a number.
    pub fn u64(&mut self) -> Result<u64, IeFault> {
        self.array().map(u64::from_be_bytes)
    }

    /// Takes a field only if `present`.
    pub fn when<T>(
        &mut self,
        present: bool,
        field: impl FnOnce(&mut Self) -> Result<T, IeFault>,
    ) -> Result<Option<T>, IeFault> {
        present.then(|| field(self)).transpose()
    }

    /// Takes the octets of a field with an 8 bit length.
    pub fn octets8(&mut self) -> Result<Vec<u8>, IeFault> {
        let length = self.u8()?;
        self.take(length.into()).map(<[u8]>::to_vec)
    }

    /// Takes the octets of a field with a 16 bit length.
    pub fn octets16(&mut self) -> Result<Vec<u8>, IeFault> {
        let length = self.u16()?;
        self.take(length.into()).map(<[u8]>::to_vec)
    }
}

/// An information element as received.
#[derive(Clone, Copy, Debug)]
pub struct RawIe<'a> {
    /// Its type.
    pub ie_type: IeType,
    /// The offset of its header in the message.
    pub offset: usize,
    /// Its value, without the header.
    pub value: &'a [u8],
}

/// Octets of an information element's type and length.
const IE_HEADER_LEN: usize = 4;

impl<'a> RawIe<'a> {
    /// A reader over the value.
    pub fn reader(&self) -> Reader<'a> {
        Reader::new(self.value, self.offset + IE_HEADER_LEN)
    }

    /// An error of this information element.
    pub fn error(&self, fault: IeFault) -> IeError {
        IeError { ie_type: self.ie_type, offset: self.offset, fault }
    }
}

/// The information elements of a message or of a grouped information element, in the order received.
#[derive(Clone, Debug)]
pub struct Ies<'a> {
    reader: Reader<'a>,
}

impl<'a> Ies<'a> {
    /// Iterates over the rest of `reader`.
    pub fn new(reader: Reader<'a>) -> Self {
        Ies { reader }
    }

    /// The offset of the next information element in the message.
    pub fn offset(&self) -> usize {
        self.reader.offset()
    }

    fn take_ie(&mut self) -> Result<RawIe<'a>, IeError> {
        let offset = self.reader.offset();
        let fault = |ie_type| move |fault| IeError { ie_type, offset, fault };
        let ie_type = IeType(self.reader.u16().map_err(fault(IeType(0)))?);
        let length = self.reader.u16().map_err(fault(ie_type))?;
        let value = self.reader.take(length.into()).map_err(fault(ie_type))?;
        Ok(RawIe { ie_type, offset, value })
    }
}

impl<'a> Iterator for Ies<'a> {
    type Item = Result<RawIe<'a>, IeError>;

    /// The next information element; after an invalid length no further element can be identified (TS 29.244
    /// 7.6.7).
    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let taken = self.take_ie();
        if taken.is_err() {
            self.reader.take_rest();
        }
        Some(taken)
    }
}

/// Appends an information element; `write_value` appends its value.
///
/// A value over 65535 octets cannot be encoded: its length becomes 65535, and [`crate::Message::encode`]
/// rejects the message as a whole, because it is too long, too.
pub(crate) fn put_ie(out: &mut Vec<u8>, ie_type: IeType, write_value: impl FnOnce(&mut Vec<u8>)) {
    out.extend(ie_type.0.to_be_bytes());
    let start = out.len();
    out.extend([0, 0]);
    write_value(out);
    let length = u16::try_from(out.len() - start - 2).unwrap_or(u16::MAX);
    if let Some(place) = out.get_mut(start..start + 2) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}

/// Appends octets after an 8 bit length; octets beyond 255 are cut off.
pub(crate) fn put_octets8(out: &mut Vec<u8>, octets: &[u8]) {
    let kept = octets.get(..octets.len().min(0xff)).unwrap_or_default();
    out.push(kept.len() as u8);
    out.extend(kept);
}

/// Appends octets after a 16 bit length; octets beyond 65535 are cut off.
pub(crate) fn put_octets16(out: &mut Vec<u8>, octets: &[u8]) {
    let kept = octets.get(..octets.len().min(0xffff)).unwrap_or_default();
    out.extend((kept.len() as u16).to_be_bytes());
    out.extend(kept);
}
