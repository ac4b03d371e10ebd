//! [`Pack`], the macros that implement it for states, and its implementations for the standard library's types.

use super::{Reader, UnpackError, Writer};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// A value in a section's body.
pub trait Pack: Sized {
    /// Writes the value.
    fn pack(&self, writer: &mut Writer<'_>);

    /// Reads a value that [`Pack::pack`] wrote.
    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError>;

    /// Writes a list's values.
    fn pack_all(values: &[Self], writer: &mut Writer<'_>) {
        for value in values {
            value.pack(writer);
        }
    }

    /// Reads a list's values.
    fn unpack_all(count: usize, reader: &mut Reader<'_>) -> Result<Vec<Self>, UnpackError> {
        /// Entries for which memory is reserved at once: their size in memory may be a multiple of that in the document.
        const RESERVED: usize = 16;
        let mut values = Vec::with_capacity(count.min(RESERVED));
        for _ in 0..count {
            values.push(Self::unpack(reader)?);
        }
        Ok(values)
    }
}

/// Implements [`Pack`] for a struct: its fields in that order. All fields must be listed.
macro_rules! pack_struct {
    ($type:ty { $($field:ident),+ $(,)? }) => {
        impl $crate::kit::document::Pack for $type {
            fn pack(&self, writer: &mut $crate::kit::document::Writer<'_>) {
                let Self { $($field),+ } = self;
                $($crate::kit::document::Pack::pack($field, writer);)+
            }

            fn unpack(
                reader: &mut $crate::kit::document::Reader<'_>,
            ) -> Result<Self, $crate::kit::document::UnpackError> {
                Ok(Self { $($field: $crate::kit::document::Pack::unpack(reader)?),+ })
            }
        }
    };
}
pub(crate) use pack_struct;

/// Implements [`Pack`] for an enum: a number for each variant, then its values. A number is never given to another variant.
macro_rules! pack_enum {
    ($type:ty { $($number:literal => $variant:ident $(($($item:ident),+))?),+ $(,)? }) => {
        impl $crate::kit::document::Pack for $type {
            fn pack(&self, writer: &mut $crate::kit::document::Writer<'_>) {
                match self {
                    $(Self::$variant $(($($item),+))? => {
                        writer.put(&[$number]);
                        $($($crate::kit::document::Pack::pack($item, writer);)+)?
                    })+
                }
            }

            fn unpack(
                reader: &mut $crate::kit::document::Reader<'_>,
            ) -> Result<Self, $crate::kit::document::UnpackError> {
                match reader.octet()? {
                    $($number => {
                        $($(let $item = $crate::kit::document::Pack::unpack(reader)?;)+)?
                        Ok(Self::$variant $(($($item),+))?)
                    })+
                    _ => Err(reader.malformed(stringify!($type))),
                }
            }
        }
    };
}
pub(crate) use pack_enum;

impl Pack for u8 {
    fn pack(&self, writer: &mut Writer<'_>) {
        writer.put(&[*self]);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        reader.octet()
    }

    fn pack_all(values: &[Self], writer: &mut Writer<'_>) {
        writer.put(values);
    }

    fn unpack_all(count: usize, reader: &mut Reader<'_>) -> Result<Vec<Self>, UnpackError> {
        reader.take(count).map(Vec::from)
    }
}

macro_rules! pack_numbers {
    ($($type:ty),+) => {$(
        impl Pack for $type {
            fn pack(&self, writer: &mut Writer<'_>) {
                writer.number(u64::from(*self));
            }

            fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
                let number = reader.number()?;
                number.try_into().map_err(|_| reader.malformed(stringify!($type)))
            }
        }
    )+};
}

pack_numbers!(u16, u32, u64);

impl Pack for u128 {
    fn pack(&self, writer: &mut Writer<'_>) {
        writer.put(&self.to_be_bytes());
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        reader.array().map(Self::from_be_bytes)
    }
}

impl Pack for bool {
    fn pack(&self, writer: &mut Writer<'_>) {
        writer.put(&[u8::from(*self)]);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        match reader.octet()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(reader.malformed("truth value")),
        }
    }
}

impl<const N: usize> Pack for [u8; N] {
    fn pack(&self, writer: &mut Writer<'_>) {
        writer.put(self);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        reader.array()
    }
}

impl Pack for Arc<str> {
    fn pack(&self, writer: &mut Writer<'_>) {
        writer.counted(self.as_bytes());
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        text(reader).map(Self::from)
    }
}

/// A text.
pub(super) fn text<'a>(reader: &mut Reader<'a>) -> Result<&'a str, UnpackError> {
    let octets = reader.counted()?;
    std::str::from_utf8(octets).map_err(|_| reader.malformed("text"))
}

impl<T: Pack> Pack for Option<T> {
    fn pack(&self, writer: &mut Writer<'_>) {
        self.is_some().pack(writer);
        if let Some(value) = self {
            value.pack(writer);
        }
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        if bool::unpack(reader)? { T::unpack(reader).map(Some) } else { Ok(None) }
    }
}

impl<T: Pack> Pack for Vec<T> {
    fn pack(&self, writer: &mut Writer<'_>) {
        writer.number(self.len() as u64);
        T::pack_all(self, writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        let count = reader.count()?;
        T::unpack_all(count, reader)
    }
}

impl<T: Pack> Pack for Box<T> {
    fn pack(&self, writer: &mut Writer<'_>) {
        T::pack(self, writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        T::unpack(reader).map(Self::new)
    }
}

macro_rules! pack_tuples {
    ($(($($name:ident)+))+) => {$(
        #[allow(non_snake_case)]
        impl<$($name: Pack),+> Pack for ($($name,)+) {
            fn pack(&self, writer: &mut Writer<'_>) {
                let ($($name,)+) = self;
                $($name.pack(writer);)+
            }

            fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
                Ok(($($name::unpack(reader)?,)+))
            }
        }
    )+};
}

pack_tuples! { (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) }

impl Pack for IpAddr {
    fn pack(&self, writer: &mut Writer<'_>) {
        match self {
            Self::V4(address) => {
                writer.put(&[4]);
                writer.put(&address.octets());
            }
            Self::V6(address) => {
                writer.put(&[6]);
                writer.put(&address.octets());
            }
        }
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        match reader.octet()? {
            4 => Ok(Self::from(reader.array::<4>()?)),
            6 => Ok(Self::from(reader.array::<16>()?)),
            _ => Err(reader.malformed("IP address")),
        }
    }
}

impl Pack for Ipv6Addr {
    fn pack(&self, writer: &mut Writer<'_>) {
        writer.put(&self.octets());
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        reader.array::<16>().map(Self::from)
    }
}

impl Pack for Ipv4Addr {
    fn pack(&self, writer: &mut Writer<'_>) {
        writer.put(&self.octets());
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        reader.array::<4>().map(Self::from)
    }
}
