//! An unknown radio: associations, NG SETUP, mutated and out-of-order NGAP, and G-PDUs.

use crate::pace::Pace;
use anyhow::{Context, Result};
use pith_fuzz::corpus;
use pith_fuzz::mutate::Mutator;
use pith_fuzz::random::Random;
use pith_fuzz::target::Shape;
use pith_runtime::sctp::{self, AssociationId, NGAP_PPID, SctpConfig, SctpEvent, SctpMode};
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::thread::sleep;
use std::time::Instant;

/// Number of simultaneous associations.
const ASSOCIATIONS: usize = 4;

/// Sends until the time is over; associations that the AMF ends are opened again.
pub fn attack(amf: SocketAddr, n3: SocketAddr, local: IpAddr, seed: u64, pace: &mut Pace) -> Result<Value> {
    let ngap = corpus::read("ngap")?;
    let gtpu = corpus::read("gtpu")?;
    let mut random = Random::new(seed);
    let mut transport = sctp::open(SctpMode::Auto, SctpConfig::default())?;
    let tunnel = UdpSocket::bind(SocketAddr::new(local, 0)).with_context(|| format!("can't use {local}"))?;
    tunnel.connect(n3)?;
    tunnel.set_nonblocking(true)?;
    let (mut up, mut begun): (Vec<AssociationId>, usize) = (Vec::new(), 0);
    let (mut answers, mut ended, mut unsent) = (0u64, 0u64, 0u64);
    let mut events = Vec::new();
    while pace.is_on() {
        while begun < ASSOCIATIONS {
            transport.connect(Some(local), amf)?;
            begun += 1;
        }
        transport.process(Instant::now(), &mut events);
        for event in events.drain(..) {
            match event {
                SctpEvent::Up { association, .. } => up.push(association),
                SctpEvent::Message { .. } => answers += 1,
                SctpEvent::Down { association, .. } => {
                    up.retain(|other| *other != association);
                    (begun, ended) = (begun.saturating_sub(1), ended + 1);
                }
                SctpEvent::SendReady { .. } => {}
            }
        }
        let due = pace.due();
        for number in 0..due {
            // Half of the messages are G-PDUs.
            if number % 2 == 0 {
                let _ = tunnel.send(&Mutator::new(Shape::Octets, &gtpu).make(&mut random));
                continue;
            }
            let Some(association) = random.pick(&up) else { continue };
            let message = match random.below(4) {
                0 => random.pick(&ngap).map(|seed| seed.octets.clone()).unwrap_or_default(),
                _ => Mutator::new(Shape::Octets, &ngap).make(&mut random),
            };
            let stream = random.below(3) as u16;
            unsent += u64::from(transport.send(*association, stream, NGAP_PPID, &message).is_err());
        }
        transport.flush();
        pace.count(due);
        sleep(pace.tick());
    }
    up.iter().for_each(|association| transport.abort(*association));
    transport.flush();
    Ok(json!({ "answers": answers, "associations ended": ended, "not taken": unsent }))
}
