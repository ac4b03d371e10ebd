//! QoS flow descriptions (TS 24.501 9.11.4.12) and session AMBR (9.11.4.14).

use crate::error::Malformed;
use crate::wire::{Cursor, Ie, coded, with_length_u8};
use pith_types::{Ambr, BitRate};
use serde::{Deserialize, Serialize};

/// The QoS flow descriptions of an IE, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QosFlowDescriptions(pub Vec<QosFlowDescription>);

coded! {
    /// Operation code, three bits.
    FlowOperation {
        /// Create new QoS flow description.
        Create = 1,
        /// Delete existing QoS flow description.
        Delete = 2,
        /// Modify existing QoS flow description.
        Modify = 3,
    }
}

/// One QoS flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QosFlowDescription {
    /// QoS flow identifier, 1 to 63.
    pub qfi: u8,
    /// Operation on the description.
    pub operation: FlowOperation,
    /// The parameters list replaces all previous parameters of a modified flow, or is present for a
    /// created one (E bit).
    pub replaces: bool,
    /// Parameters of the flow.
    pub parameters: Vec<FlowParameter>,
}

/// A parameter of a QoS flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FlowParameter {
    /// 5QI.
    FiveQi(u8),
    /// Guaranteed flow bit rate from the UE.
    GfbrUplink(BitRate),
    /// Guaranteed flow bit rate to the UE.
    GfbrDownlink(BitRate),
    /// Maximum flow bit rate from the UE.
    MfbrUplink(BitRate),
    /// Maximum flow bit rate to the UE.
    MfbrDownlink(BitRate),
    /// Averaging window, in milliseconds.
    AveragingWindow(u16),
    /// EPS bearer identity, in the high half of its octet.
    EpsBearerIdentity(u8),
    /// A parameter that this release does not define.
    Other {
        /// Its identifier.
        id: u8,
        /// Its contents.
        contents: Vec<u8>,
    },
}

impl QosFlowDescription {
    /// A new flow with that 5QI and no guaranteed rate.
    pub fn non_gbr(qfi: u8, five_qi: u8) -> Self {
        Self {
            qfi,
            operation: FlowOperation::Create,
            replaces: true,
            parameters: vec![FlowParameter::FiveQi(five_qi)],
        }
    }

    fn decode(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let [qfi, operation, header] = cursor.array()?;
        let parameters =
            (0..header & 0x3f).map(|_| FlowParameter::decode(cursor)).collect::<Result<_, _>>()?;
        Ok(Self {
            qfi: qfi & 0x3f,
            operation: FlowOperation::from_code(operation >> 5),
            replaces: header & 0x40 != 0,
            parameters,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let parameters = self.parameters.get(..63).unwrap_or(&self.parameters);
        let replaces = u8::from(self.replaces) << 6;
        out.extend([self.qfi & 0x3f, self.operation.code() << 5, replaces | parameters.len() as u8]);
        parameters.iter().for_each(|parameter| parameter.encode(out));
    }
}

impl FlowParameter {
    fn decode(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let id = cursor.u8()?;
        let mut contents = cursor.with_length_u8()?;
        Ok(match id {
            1 => Self::FiveQi(contents.u8()?),
            2 => Self::GfbrUplink(rate(&mut contents)?),
            3 => Self::GfbrDownlink(rate(&mut contents)?),
            4 => Self::MfbrUplink(rate(&mut contents)?),
            5 => Self::MfbrDownlink(rate(&mut contents)?),
            6 => Self::AveragingWindow(contents.u16()?),
            7 => Self::EpsBearerIdentity(contents.u8()? >> 4),
            id => Self::Other { id, contents: contents.0.to_vec() },
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let mut put = |id: u8, contents: &[u8]| {
            out.push(id);
            with_length_u8(out, |out| out.extend(contents));
        };
        match self {
            Self::FiveQi(value) => put(1, &[*value]),
            Self::GfbrUplink(rate) => put(2, &rate_octets(*rate)),
            Self::GfbrDownlink(rate) => put(3, &rate_octets(*rate)),
            Self::MfbrUplink(rate) => put(4, &rate_octets(*rate)),
            Self::MfbrDownlink(rate) => put(5, &rate_octets(*rate)),
            Self::AveragingWindow(window) => put(6, &window.to_be_bytes()),
            Self::EpsBearerIdentity(id) => put(7, &[id << 4]),
            Self::Other { id, contents } => put(*id, contents),
        }
    }
}

impl Ie for QosFlowDescriptions {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        Cursor(value).all(QosFlowDescription::decode).map(Self)
    }
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.iter().for_each(|flow| flow.encode(out));
    }
}

/// The largest unit, 256 Pbit/s; higher codes mean the same (TS 24.501 Table 9.11.4.14.1).
const LARGEST_UNIT: u8 = 25;

/// Bit/s of a unit: 1, 4, 16, 64 and 256 times each power of a thousand, from kbit/s.
fn unit(code: u8) -> u64 {
    let step = code.clamp(1, LARGEST_UNIT) - 1;
    1_000_u64.pow(u32::from(step / 5) + 1) << (step % 5 * 2)
}

fn rate(cursor: &mut Cursor<'_>) -> Result<BitRate, Malformed> {
    let code = cursor.u8()?;
    let value = u64::from(cursor.u16()?);
    Ok(BitRate(match code {
        0 => 0,
        code => value.saturating_mul(unit(code)),
    }))
}

/// The rate in the largest unit of a power of a thousand that represents it exactly, else rounded
/// up in the smallest unit that is large enough.
fn rate_octets(rate: BitRate) -> [u8; 3] {
    let bps = rate.bps();
    let fits = |code: &u8| bps.div_ceil(unit(*code)) <= u16::MAX.into();
    let exact = (1..=LARGEST_UNIT)
        .step_by(5)
        .rev()
        .find(|code| bps > 0 && bps.is_multiple_of(unit(*code)))
        .filter(fits);
    let code = exact.or_else(|| (1..=LARGEST_UNIT).find(fits)).unwrap_or(LARGEST_UNIT);
    let [high, low] = (bps.div_ceil(unit(code)) as u16).to_be_bytes();
    [code, high, low]
}

/// Session AMBR: downlink first.
impl Ie for Ambr {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor(value);
        let downlink = rate(&mut cursor)?;
        let uplink = rate(&mut cursor)?;
        Ok(Self { uplink, downlink })
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(rate_octets(self.downlink));
        out.extend(rate_octets(self.uplink));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_use_the_units_of_the_table() {
        for (rate, octets) in [
            (BitRate::mbps(100), [6, 0, 100]),
            (BitRate::mbps(1_000), [11, 0, 1]),
            (BitRate::kbps(64), [1, 0, 64]),
            (BitRate::kbps(65_537), [2, 0x40, 0x01]),
            (BitRate(1), [1, 0, 1]),
            (BitRate(0), [1, 0, 0]),
        ] {
            assert_eq!(rate_octets(rate), octets, "{rate}");
        }
        assert_eq!(unit(25), 256_000_000_000_000_000);
        assert_eq!(rate(&mut Cursor(&[0xff, 0, 1])), Ok(BitRate(unit(25))));
    }

    #[test]
    fn a_rate_is_never_rounded_down() {
        for shift in 0..64 {
            let asked = BitRate(u64::MAX >> shift);
            let back = rate(&mut Cursor(&rate_octets(asked))).unwrap();
            assert!(back >= asked, "{asked} {back}");
        }
    }

    #[test]
    fn the_default_flow_is_the_one_every_core_sends() {
        let mut out = Vec::new();
        QosFlowDescriptions(vec![QosFlowDescription::non_gbr(1, 9)]).encode(&mut out);
        assert_eq!(hex::encode(out), "012041010109");
    }

    #[test]
    fn every_parameter_round_trips() {
        use FlowParameter::*;
        let flow = QosFlowDescription {
            qfi: 63,
            operation: FlowOperation::Modify,
            replaces: false,
            parameters: vec![
                FiveQi(1),
                GfbrUplink(BitRate::kbps(64)),
                GfbrDownlink(BitRate::mbps(2)),
                MfbrUplink(BitRate::kbps(128)),
                MfbrDownlink(BitRate::mbps(5)),
                AveragingWindow(2_000),
                EpsBearerIdentity(5),
                Other { id: 9, contents: vec![1, 2] },
            ],
        };
        let mut out = Vec::new();
        flow.encode(&mut out);
        assert_eq!(QosFlowDescription::decode(&mut Cursor(&out)), Ok(flow));
    }
}
