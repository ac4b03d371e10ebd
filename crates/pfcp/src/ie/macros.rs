//! Declarations of information elements that are a number, octets, flags or an enumeration.

/// A newtype over an unsigned number.
macro_rules! number_ie {
    ($($(#[$doc:meta])* pub struct $name:ident($int:ident);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $int);

        impl $crate::group::Ie for $name {
            fn decode(value: &mut $crate::wire::Reader<'_>) -> Result<Self, $crate::error::IeFault> {
                value.array().map($int::from_be_bytes).map($name)
            }

            fn encode(&self, out: &mut Vec<u8>) {
                out.extend(self.0.to_be_bytes());
            }
        }
    )*};
}

/// A newtype over octets with operator-specific meaning.
macro_rules! octets_ie {
    ($($(#[$doc:meta])* pub struct $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct $name(pub Vec<u8>);

        impl $crate::group::Ie for $name {
            fn decode(value: &mut $crate::wire::Reader<'_>) -> Result<Self, $crate::error::IeFault> {
                Ok($name(value.take_rest().to_vec()))
            }

            fn encode(&self, out: &mut Vec<u8>) {
                out.extend(&self.0);
            }
        }
    )*};
}

/// A set of flags, each declared by octet and bit as in the specification: the value starts with octet 5, bit
/// 1 is the least significant. At least `$min` octets are received, and `$min` or `$sent` sent; further ones
/// are sent if one of their flags is set.
macro_rules! flags_ie {
    ($(
        $(#[$doc:meta])*
        pub struct $name:ident: $int:ident, min $min:literal $(, sent $sent:literal)? {
            $($(#[$flag_doc:meta])* $flag:ident = $octet:literal / $bit:literal,)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub struct $name(pub $int);

        impl $name {
            $($(#[$flag_doc])* pub const $flag: $name = $name(1 << (($octet - 5) * 8 + $bit - 1));)*

            /// Whether all flags of `flags` are set.
            pub fn contains(self, flags: $name) -> bool {
                self.0 & flags.0 == flags.0
            }

            /// Whether any flag of `flags` is set.
            pub fn intersects(self, flags: $name) -> bool {
                self.0 & flags.0 != 0
            }

            /// Whether no flag is set.
            pub fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// These flags, plus those of `flags` if `set`.
            pub fn with(self, flags: $name, set: bool) -> Self {
                if set { $name(self.0 | flags.0) } else { self }
            }
        }

        impl std::ops::BitOr for $name {
            type Output = $name;

            fn bitor(self, other: $name) -> $name {
                $name(self.0 | other.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let names = [$((stringify!($flag), $name::$flag)),*];
                let set = names.iter().filter(|(_, flag)| self.contains(*flag)).map(|(name, _)| *name);
                write!(f, "{}({})", stringify!($name), set.collect::<Vec<_>>().join("|"))
            }
        }

        impl $crate::group::Ie for $name {
            fn decode(value: &mut $crate::wire::Reader<'_>) -> Result<Self, $crate::error::IeFault> {
                let octets = value.take_rest();
                if octets.len() < $min {
                    return Err($crate::error::IeFault::InvalidLength);
                }
                let mut bits = [0; size_of::<$int>()];
                bits.iter_mut().zip(octets).for_each(|(bit, octet)| *bit = *octet);
                Ok($name($int::from_le_bytes(bits)))
            }

            fn encode(&self, out: &mut Vec<u8>) {
                let octets = self.0.to_le_bytes();
                let used = octets.iter().rposition(|octet| *octet != 0).map_or(0, |last| last + 1);
                out.extend(octets.iter().take(used.max($min)$(.max($sent))?));
            }
        }
    )*};
}

/// An enumeration in the low bits of the first octet; values unknown in Release 17 are preserved.
macro_rules! enum_ie {
    ($(
        $(#[$doc:meta])*
        pub enum $name:ident: mask $mask:literal {
            $($(#[$variant_doc:meta])* $variant:ident = $value:literal,)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
            /// A value that Release 17 does not define.
            Unknown(u8),
        }

        impl $name {
            /// The value on the wire.
            pub fn value(self) -> u8 {
                match self {
                    $($name::$variant => $value,)*
                    $name::Unknown(value) => value & $mask,
                }
            }
        }

        impl From<u8> for $name {
            fn from(octet: u8) -> Self {
                match octet & $mask {
                    $($value => $name::$variant,)*
                    value => $name::Unknown(value),
                }
            }
        }

        impl $crate::group::Ie for $name {
            fn decode(value: &mut $crate::wire::Reader<'_>) -> Result<Self, $crate::error::IeFault> {
                value.u8().map($name::from)
            }

            fn encode(&self, out: &mut Vec<u8>) {
                out.push(self.value());
            }
        }
    )*};
}

pub(crate) use {enum_ie, flags_ie, number_ie, octets_ie};
