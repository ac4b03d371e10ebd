//! User packets in the UPF: headers, segmentation, coalescing.

use crate::target::{CheckFailed, ensure};
use pith_datapath::packet::{Coalescer, Flow, Train, VnetHeader, complete_partial, decrement_ttl};

const VNET: usize = 10;

/// A virtio-net header and the packet after it.
pub fn packet(input: &[u8]) -> Result<(), CheckFailed> {
    let Some((head, packet)) = input.split_first_chunk::<VNET>() else { return Ok(()) };
    let vnet = VnetHeader::decode(head);
    ensure(vnet.encode() == *head, || "the virtio-net header changed".into())?;
    let mut routed = packet.to_vec();
    complete_partial(&vnet, &mut routed);
    let _ = decrement_ttl(&mut routed);
    let Some(flow) = Flow::of(packet) else { return Ok(()) };
    ensure(flow.length <= packet.len(), || format!("longer than the packet: {flow:?}"))?;
    if let Some(train) = Train::of(&vnet, packet, &flow) {
        let segments: Vec<_> = train.segments().collect();
        ensure(segments.len() == train.count(), || {
            format!("{} segments, not {}", segments.len(), train.count())
        })?;
        let mut head = vec![0; train.header_len()];
        let mut octets = 0;
        for segment in &segments {
            train.write_header(segment, packet, &mut head);
            ensure(segment.payload.end <= packet.len(), || "a segment beyond the packet".into())?;
            octets += head.len() + segment.payload.len();
        }
        ensure(octets == train.bytes(), || format!("{octets} octets of segments, not {}", train.bytes()))?;
    }
    coalesce(packet, &flow)
}

/// The packet twice, and the data after it in the arena.
fn coalesce(packet: &[u8], flow: &Flow) -> Result<(), CheckFailed> {
    let arena = [packet, packet].concat();
    let mut coalescer = Coalescer::new(true);
    coalescer.offer(&arena, 0..flow.length, flow);
    coalescer.offer(&arena, packet.len()..packet.len() + flow.length, flow);
    let packets: usize = coalescer.frames().iter().map(|frame| frame.packets()).sum();
    for frame in coalescer.frames() {
        let _ = (frame.head(&arena), frame.single());
        let inside = frame.payloads().iter().all(|payload| payload.end <= arena.len());
        ensure(inside, || "a payload beyond the arena".into())?;
    }
    ensure(packets == 2, || format!("{packets} packets of 2"))
}
