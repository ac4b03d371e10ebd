//! Declarations of messages: one list of IEs for decoding and encoding.

/// Declares a message: a struct with a field for each IE, its decoder and its encoder.
///
/// `req`: the message is rejected without the IE. `opt`: the IE may be absent, but must be valid if present.
/// `lax`: an invalid IE is treated as absent (criticality ignore, TS 38.413 10.3.4.2).
macro_rules! message {
    ($(#[$meta:meta])* $name:ident = $direction:ident $procedure:ident $wire:ident {
        $($(#[$field_meta:meta])* $kind:ident $field:ident: $type:ty = $ie:ident,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: crate::macros::field_type!($kind $type),)*
        }

        impl $name {
            #[allow(unused_variables)]
            pub(crate) fn read(pdu: &oxirush_ngap::ngap::NGAPPDU<'_>) -> Result<Self, crate::NgapError> {
                let ies = || -> Result<_, oxirush_ngap::Error> {
                    oxirush_ngap::extract_ngap_ies!(pdu, $wire,
                        $($kind $field: Result<$type, crate::convert::Bad> = $ie(value) => crate::convert::Read::read(value),)*
                    );
                    Ok(($($field,)*))
                };
                let ($($field,)*) = ies().map_err(|error| crate::NgapError::of_ie(pdu, &error))?;
                Ok(Self { $($field: crate::macros::unwrap_field!(pdu $kind $field),)* })
            }

            /// The encoded PDU.
            ///
            /// What the facade holds always encodes but for lists longer and numbers larger than the
            /// protocol's.
            pub fn encode(&self) -> Result<Vec<u8>, crate::EncodeError> {
                let encoded = self.build().and_then(|pdu| pdu.encode());
                encoded.map_err(|error| crate::EncodeError {
                    message: stringify!($name),
                    reason: error.to_string(),
                })
            }

            fn build(&self) -> Result<oxirush_ngap::ngap::NGAPPDU<'_>, oxirush_ngap::Error> {
                #[allow(unused_mut)]
                let mut ies = Vec::new();
                $(crate::macros::write_field!(self ies $wire $ie $kind $field);)*
                let message = oxirush_ngap::ngap::$wire::new(oxirush_ngap::ngap::ProtocolIEContainer(ies));
                let criticality = <oxirush_ngap::ngap::$wire<'_> as oxirush_ngap::Message>::CRITICALITY;
                oxirush_ngap::ngap::NGAPPDU::of_message(&message, criticality)
            }
        }
    };
}

macro_rules! field_type {
    (req $type:ty) => { $type };
    ($kind:ident $type:ty) => { Option<$type> };
}

macro_rules! unwrap_field {
    ($pdu:ident req $field:ident) => {
        $field.map_err(|bad| crate::NgapError::semantic($pdu, bad.0))?
    };
    ($pdu:ident opt $field:ident) => {
        $field.transpose().map_err(|bad| crate::NgapError::semantic($pdu, bad.0))?
    };
    ($pdu:ident lax $field:ident) => {
        $field.and_then(Result::ok)
    };
}

macro_rules! write_field {
    ($self:ident $ies:ident $wire:ident $ie:ident req $field:ident) => {
        $ies.push(crate::macros::write_ie!($wire $ie &$self.$field))
    };
    ($self:ident $ies:ident $wire:ident $ie:ident $kind:ident $field:ident) => {
        if let Some(value) = &$self.$field {
            $ies.push(crate::macros::write_ie!($wire $ie value))
        }
    };
}

macro_rules! write_ie {
    ($wire:ident $ie:ident $value:expr) => {{
        type Value<'a> = <oxirush_ngap::ie::$ie as oxirush_ngap::aper::protocol::Ie>::Value<'a>;
        let value: Value<'_> = crate::convert::Write::write($value);
        oxirush_ngap::build_ngap_ie!($wire, $ie(value))?
    }};
}

pub(crate) use {field_type, message, unwrap_field, write_field, write_ie};
