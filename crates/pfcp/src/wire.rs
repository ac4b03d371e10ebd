//! Walking type-length-value information elements without copying (TS 29.244 8.1.1).

use crate::error::{IeError, IeFault};
use crate::ie_type::IeType;

/// A cursor over received octets that knows where in the message it stands.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    /// Reads `bytes`, whose first octet lies `offset` octets into the message.
    pub fn new(bytes: &'a [u8], offset: usize) -> Self {
        Reader { rest: bytes, offset }
    }

    /// How far into the message the next octet lies.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Are all octets read?
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

    /// Takes all octets that are left.
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

    /// Takes the octets of a field that an 8 bit length precedes.
    pub fn octets8(&mut self) -> Result<Vec<u8>, IeFault> {
        let length = self.u8()?;
        self.take(length.into()).map(<[u8]>::to_vec)
    }

    /// Takes the octets of a field that a 16 bit length precedes.
    pub fn octets16(&mut self) -> Result<Vec<u8>, IeFault> {
        let length = self.u16()?;
        self.take(length.into()).map(<[u8]>::to_vec)
    }
}

/// An information element as it lies in the message.
#[derive(Clone, Copy, Debug)]
pub struct RawIe<'a> {
    /// Its type.
    pub ie_type: IeType,
    /// How far into the message its header lies.
    pub offset: usize,
    /// Its value, without the header.
    pub value: &'a [u8],
}

/// Octets of the type and length that open an information element.
const IE_HEADER_LEN: usize = 4;

impl<'a> RawIe<'a> {
    /// A reader over the value.
    pub fn reader(&self) -> Reader<'a> {
        Reader::new(self.value, self.offset + IE_HEADER_LEN)
    }

    /// The error that this information element has `fault`.
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
    /// Walks what `reader` has left.
    pub fn new(reader: Reader<'a>) -> Self {
        Ies { reader }
    }

    /// How far into the message the next information element lies.
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

    /// The next information element; after one of an invalid length nothing more can be told apart (TS 29.244 7.6.7).
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

/// Appends an information element whose value `write_value` appends.
///
/// A value over 65535 octets cannot be expressed: the length then reads 65535, and [`crate::Message::encode`]
/// rejects the message as a whole, since it is then too long itself.
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

/// Appends octets behind an 8 bit length; what exceeds 255 octets is cut off.
pub(crate) fn put_octets8(out: &mut Vec<u8>, octets: &[u8]) {
    let kept = octets.get(..octets.len().min(0xff)).unwrap_or_default();
    out.push(kept.len() as u8);
    out.extend(kept);
}

/// Appends octets behind a 16 bit length; what exceeds 65535 octets is cut off.
pub(crate) fn put_octets16(out: &mut Vec<u8>, octets: &[u8]) {
    let kept = octets.get(..octets.len().min(0xffff)).unwrap_or_default();
    out.extend((kept.len() as u16).to_be_bytes());
    out.extend(kept);
}
