//! Declarations of grouped information elements and messages, in the form of the tables of TS 29.244 clause
//! 7.
//!
//! A line of a table becomes a line of [`group!`]. Its first word gives the occurrence of the information
//! element and the receiver's action if it is missing or invalid:
//!
//! | word | in the specification | becomes |
//! |---|---|---|
//! | `M` | mandatory | `T`; missing or wrong rejects the message |
//! | `Ms` | mandatory, several may be present | `Vec<T>`, at least one |
//! | `C` | conditional | `Option<T>`; wrong rejects the message |
//! | `Cs` | conditional or optional, several may be present | `Vec<T>` |
//! | `O` | optional | `Option<T>`; a wrong one is treated as absent (TS 29.244 7.6.8) |
//! | `U` | conditional in an Update | `Option<Change<T>>`; a null length removes (TS 29.244 5.6.3) |
//! | `Us` | the same, several may be present | `Option<Vec<T>>`; an empty list removes all |
//!
//! Information elements that a table does not list are kept in `other_ies` and ignored (TS 29.244 7.6.9); of
//! an information element that is repeated against the table, the first counts (TS 29.244 7.6.10), and the
//! others are kept likewise.

use crate::error::{IeError, IeFault};
use crate::ie_type::IeType;
use crate::wire::{RawIe, Reader, put_ie};

/// The value of an information element.
pub trait Ie: Sized {
    /// Whether an IE of null length is treated as absent; false for groups (TS 29.244 8.1.2).
    const NULL_IS_ABSENT: bool = true;

    /// Decodes the value; octets appended by a later release are left unread.
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault>;

    /// Appends the value.
    fn encode(&self, out: &mut Vec<u8>);

    /// Decodes the value and locates an error; for groups the innermost information element.
    fn decode_ie(ie: RawIe<'_>) -> Result<Self, IeError> {
        Self::decode(&mut ie.reader()).map_err(|fault| ie.error(fault))
    }
}

/// The change of a previously provisioned parameter by an Update (TS 29.244 5.6.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<T> {
    /// The parameter gets this value.
    Set(T),
    /// The parameter is removed: the information element has a null length.
    Remove,
}

impl<T> Change<T> {
    /// The new value, if there is one.
    pub fn into_option(self) -> Option<T> {
        match self {
            Change::Set(value) => Some(value),
            Change::Remove => None,
        }
    }
}

/// An information element that its message or group does not define, kept as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherIe {
    /// Its type.
    pub ie_type: IeType,
    /// Its value; for vendor-specific types it starts with the Enterprise ID.
    pub value: Vec<u8>,
}

impl From<RawIe<'_>> for OtherIe {
    fn from(ie: RawIe<'_>) -> Self {
        OtherIe { ie_type: ie.ie_type, value: ie.value.to_vec() }
    }
}

/// Information elements that determine which packets a rule matches and where they are sent. A null length is
/// an error in a Create: treated as absent, the element would widen the rule (TS 29.244 7.6.7).
const NEVER_NULL: [IeType; 12] = [
    IeType::APPLICATION_ID,
    IeType::ETHERNET_PACKET_FILTER,
    IeType::F_TEID,
    IeType::FORWARDING_POLICY,
    IeType::IP_ADDRESS_AND_PORT_NUMBER_REPLACEMENT,
    IeType::OUTER_HEADER_CREATION,
    IeType::PDN_TYPE,
    IeType::QFI,
    IeType::REDIRECT_INFORMATION,
    IeType::SDF_FILTER,
    IeType::TRAFFIC_ENDPOINT_ID,
    IeType::UE_IP_ADDRESS,
];

fn is_absent<T: Ie>(ie: &RawIe<'_>) -> bool {
    T::NULL_IS_ABSENT && ie.value.is_empty()
}

fn check_null(ie: &RawIe<'_>) -> Result<(), IeError> {
    if ie.value.is_empty() && NEVER_NULL.contains(&ie.ie_type) {
        Err(ie.error(IeFault::InvalidLength))
    } else {
        Ok(())
    }
}

/// Decodes a mandatory information element; a repetition is kept, but ignored.
pub(crate) fn take_mandatory<T: Ie>(
    slot: &mut Option<T>,
    ie: RawIe<'_>,
    other_ies: &mut Vec<OtherIe>,
) -> Result<(), IeError> {
    match slot {
        Some(_) => other_ies.push(ie.into()),
        None => *slot = Some(T::decode_ie(ie)?),
    }
    Ok(())
}

/// Decodes a conditional information element; a repetition is kept, but ignored.
pub(crate) fn take_conditional<T: Ie>(
    slot: &mut Option<T>,
    ie: RawIe<'_>,
    other_ies: &mut Vec<OtherIe>,
) -> Result<(), IeError> {
    check_null(&ie)?;
    if is_absent::<T>(&ie) { Ok(()) } else { take_mandatory(slot, ie, other_ies) }
}

/// Decodes an optional information element; an invalid one is kept, but treated as absent.
pub(crate) fn take_optional<T: Ie>(
    slot: &mut Option<T>,
    ie: RawIe<'_>,
    other_ies: &mut Vec<OtherIe>,
) -> Result<(), IeError> {
    match take_conditional(slot, ie, other_ies) {
        Err(IeError { fault: IeFault::Incorrect(_), .. }) => other_ies.push(ie.into()),
        taken => taken?,
    }
    Ok(())
}

/// Decodes one of several information elements.
pub(crate) fn take_several<T: Ie>(list: &mut Vec<T>, ie: RawIe<'_>) -> Result<(), IeError> {
    check_null(&ie)?;
    take_present(list, ie)
}

fn take_present<T: Ie>(list: &mut Vec<T>, ie: RawIe<'_>) -> Result<(), IeError> {
    if !is_absent::<T>(&ie) {
        list.push(T::decode_ie(ie)?);
    }
    Ok(())
}

/// Decodes an information element of an Update; a repetition is kept, but ignored.
pub(crate) fn take_change<T: Ie>(
    slot: &mut Option<Change<T>>,
    ie: RawIe<'_>,
    other_ies: &mut Vec<OtherIe>,
) -> Result<(), IeError> {
    match slot {
        Some(_) => other_ies.push(ie.into()),
        None if is_absent::<T>(&ie) => *slot = Some(Change::Remove),
        None => *slot = Some(Change::Set(T::decode_ie(ie)?)),
    }
    Ok(())
}

/// Decodes one of several information elements of an Update.
pub(crate) fn take_changes<T: Ie>(list: &mut Option<Vec<T>>, ie: RawIe<'_>) -> Result<(), IeError> {
    take_present(list.get_or_insert_default(), ie)
}

/// The mandatory information element, or the error that the group that ends at `offset` lacks it.
pub(crate) fn required<T>(slot: Option<T>, ie_type: IeType, offset: usize) -> Result<T, IeError> {
    slot.ok_or(IeError { ie_type, offset, fault: IeFault::MandatoryMissing })
}

/// The list, or the error that it is empty.
pub(crate) fn required_list<T>(list: Vec<T>, ie_type: IeType, offset: usize) -> Result<Vec<T>, IeError> {
    if list.is_empty() { required(None, ie_type, offset) } else { Ok(list) }
}

/// Appends an information element.
pub(crate) fn put<T: Ie>(out: &mut Vec<u8>, ie_type: IeType, value: &T) {
    put_ie(out, ie_type, |out| value.encode(out));
}

/// Appends several information elements of a type.
pub(crate) fn put_several<T: Ie>(out: &mut Vec<u8>, ie_type: IeType, values: &[T]) {
    values.iter().for_each(|value| put(out, ie_type, value));
}

/// Appends an information element of an Update.
pub(crate) fn put_change<T: Ie>(out: &mut Vec<u8>, ie_type: IeType, change: &Change<T>) {
    match change {
        Change::Set(value) => put(out, ie_type, value),
        Change::Remove => put_ie(out, ie_type, |_| ()),
    }
}

/// Appends several information elements of an Update; an empty list is encoded as one of null length.
pub(crate) fn put_changes<T: Ie>(out: &mut Vec<u8>, ie_type: IeType, values: &[T]) {
    if values.is_empty() { put_ie(out, ie_type, |_| ()) } else { put_several(out, ie_type, values) }
}

/// Appends the kept information elements.
pub(crate) fn put_other(out: &mut Vec<u8>, other_ies: &[OtherIe]) {
    other_ies.iter().for_each(|ie| put_ie(out, ie.ie_type, |out| out.extend(&ie.value)));
}

/// Declares structs from tables of information elements; see the module.
///
/// Each gets `new` (the mandatory information elements, the rest absent), `decode_ies` and `encode_ies`.
macro_rules! group {
    ($(
        $(#[$doc:meta])*
        pub struct $group:ident {
            $(
                $(#[$field_doc:meta])*
                $(M $m:ident: $m_value:ty = $m_type:ident)?
                $(Ms $ms:ident: $ms_value:ty = $ms_type:ident)?
                $(C $c:ident: $c_value:ty = $c_type:ident)?
                $(Cs $cs:ident: $cs_value:ty = $cs_type:ident)?
                $(O $o:ident: $o_value:ty = $o_type:ident)?
                $(U $u:ident: $u_value:ty = $u_type:ident)?
                $(Us $us:ident: $us_value:ty = $us_type:ident)?
                ,
            )*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $group {
            $(
                $(#[$field_doc])*
                $(
                    #[doc = concat!("\n\nInformation element [`", stringify!($m_type), "`](crate::IeType::", stringify!($m_type), "), mandatory.")]
                    pub $m: $m_value,
                )?
                $(
                    #[doc = concat!("\n\nInformation element [`", stringify!($ms_type), "`](crate::IeType::", stringify!($ms_type), "), mandatory, one or more.")]
                    pub $ms: Vec<$ms_value>,
                )?
                $(
                    #[doc = concat!("\n\nInformation element [`", stringify!($c_type), "`](crate::IeType::", stringify!($c_type), "), conditional.")]
                    pub $c: Option<$c_value>,
                )?
                $(
                    #[doc = concat!("\n\nInformation element [`", stringify!($cs_type), "`](crate::IeType::", stringify!($cs_type), "), any number.")]
                    pub $cs: Vec<$cs_value>,
                )?
                $(
                    #[doc = concat!("\n\nInformation element [`", stringify!($o_type), "`](crate::IeType::", stringify!($o_type), "), optional.")]
                    pub $o: Option<$o_value>,
                )?
                $(
                    #[doc = concat!("\n\nInformation element [`", stringify!($u_type), "`](crate::IeType::", stringify!($u_type), "), a change.")]
                    pub $u: Option<$crate::Change<$u_value>>,
                )?
                $(
                    #[doc = concat!("\n\nInformation element [`", stringify!($us_type), "`](crate::IeType::", stringify!($us_type), "), a change of a list.")]
                    pub $us: Option<Vec<$us_value>>,
                )?
            )*
            /// Information elements that the table does not list.
            pub other_ies: Vec<$crate::OtherIe>,
        }

        impl $group {
            /// With the mandatory information elements given, and all others absent.
            #[allow(clippy::new_without_default, clippy::too_many_arguments)]
            pub fn new($($($m: $m_value,)? $($ms: Vec<$ms_value>,)?)*) -> Self {
                $group {
                    $(
                        $($m,)? $($ms,)?
                        $($c: None,)? $($cs: Vec::new(),)? $($o: None,)? $($u: None,)? $($us: None,)?
                    )*
                    other_ies: Vec::new(),
                }
            }

            /// Decodes the information elements, in any order.
            pub(crate) fn decode_ies(mut ies: $crate::wire::Ies<'_>) -> Result<Self, $crate::error::IeError> {
                #[allow(unused_imports)]
                use $crate::group::*;
                $(
                    $(let mut $m: Option<$m_value> = None;)?
                    $(let mut $ms: Vec<$ms_value> = Vec::new();)?
                    $(let mut $c: Option<$c_value> = None;)?
                    $(let mut $cs: Vec<$cs_value> = Vec::new();)?
                    $(let mut $o: Option<$o_value> = None;)?
                    $(let mut $u: Option<Change<$u_value>> = None;)?
                    $(let mut $us: Option<Vec<$us_value>> = None;)?
                )*
                let mut other_ies = Vec::new();
                for ie in ies.by_ref() {
                    let ie = ie?;
                    match ie.ie_type {
                        $(
                            $($crate::IeType::$m_type => take_mandatory(&mut $m, ie, &mut other_ies)?,)?
                            $($crate::IeType::$ms_type => take_several(&mut $ms, ie)?,)?
                            $($crate::IeType::$c_type => take_conditional(&mut $c, ie, &mut other_ies)?,)?
                            $($crate::IeType::$cs_type => take_several(&mut $cs, ie)?,)?
                            $($crate::IeType::$o_type => take_optional(&mut $o, ie, &mut other_ies)?,)?
                            $($crate::IeType::$u_type => take_change(&mut $u, ie, &mut other_ies)?,)?
                            $($crate::IeType::$us_type => take_changes(&mut $us, ie)?,)?
                        )*
                        _ => other_ies.push(ie.into()),
                    }
                }
                #[allow(unused_variables)]
                let end = ies.offset();
                Ok($group {
                    $(
                        $($m: required($m, $crate::IeType::$m_type, end)?,)?
                        $($ms: required_list($ms, $crate::IeType::$ms_type, end)?,)?
                        $($c,)? $($cs,)? $($o,)? $($u,)? $($us,)?
                    )*
                    other_ies,
                })
            }

            /// Appends the information elements in the table's order.
            pub(crate) fn encode_ies(&self, out: &mut Vec<u8>) {
                #[allow(unused_imports)]
                use $crate::group::*;
                $(
                    $(put(out, $crate::IeType::$m_type, &self.$m);)?
                    $(put_several(out, $crate::IeType::$ms_type, &self.$ms);)?
                    $(self.$c.iter().for_each(|value| put(out, $crate::IeType::$c_type, value));)?
                    $(put_several(out, $crate::IeType::$cs_type, &self.$cs);)?
                    $(self.$o.iter().for_each(|value| put(out, $crate::IeType::$o_type, value));)?
                    $(self.$u.iter().for_each(|change| put_change(out, $crate::IeType::$u_type, change));)?
                    $(self.$us.iter().for_each(|values| put_changes(out, $crate::IeType::$us_type, values));)?
                )*
                put_other(out, &self.other_ies);
            }
        }

        impl $crate::group::Ie for $group {
            const NULL_IS_ABSENT: bool = false;

            fn decode(value: &mut $crate::wire::Reader<'_>) -> Result<Self, $crate::error::IeFault> {
                Self::decode_ies($crate::wire::Ies::new(*value)).map_err(|error| error.fault)
            }

            fn encode(&self, out: &mut Vec<u8>) {
                self.encode_ies(out);
            }

            fn decode_ie(ie: $crate::wire::RawIe<'_>) -> Result<Self, $crate::error::IeError> {
                Self::decode_ies($crate::wire::Ies::new(ie.reader()))
            }
        }
    )*};
}

pub(crate) use group;
