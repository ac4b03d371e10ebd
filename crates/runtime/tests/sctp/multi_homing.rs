//! Tests of associations with several addresses: the kernel's SCTP supports them, user-space SCTP refuses
//! them.

use std::net::{IpAddr, SocketAddr};

use pith_runtime::sctp::{self, SctpConfig, SctpError, SctpEvent, SctpMode};

use crate::node::Node;
use crate::peer::ECHO;
use crate::{exclusively, port, skipped, socket_is_permitted, udp};

fn addresses(texts: [&str; 2]) -> [SocketAddr; 2] {
    texts.map(|text| SocketAddr::new(text.parse().unwrap(), port()))
}

/// The peer's address and further addresses of the next association that is up.
fn up(node: &mut Node, accepted: bool) -> (SocketAddr, Vec<IpAddr>) {
    node.wait_for("Up", |event| match event {
        SctpEvent::Up { peer, local, alternatives, .. } if (local.port() == port()) == accepted => {
            Some((*peer, alternatives.clone()))
        }
        _ => None,
    })
}

#[test]
fn the_kernel_gives_an_association_all_addresses_of_its_listener() {
    let _guard = exclusively();
    if !socket_is_permitted(libc::SOCK_STREAM) {
        return skipped::skipped("this kernel has no SCTP");
    }
    for texts in [["127.0.0.5", "127.0.0.6"], ["::1", "127.0.0.6"]] {
        let [first, second] = addresses(texts);
        let mut node = Node::new(SctpMode::Kernel, SctpConfig::default());
        node.transport.listen_on(&[first, second]).unwrap();
        let id = node.transport.connect(None, second).unwrap();
        let (peer, alternatives) = up(&mut node, false);
        assert_eq!(peer, second);
        // An association over IPv4 announces only IPv4 addresses, unless the peer reported support of both
        // families.
        let expected = if first.is_ipv4() { vec![first.ip()] } else { Vec::new() };
        assert_eq!(alternatives, expected);
        let (peer, _) = up(&mut node, true);
        assert!(peer.is_ipv4(), "{peer}: not a mapped IPv4 address");
        node.send(id, 0, ECHO, b"hello");
    }
}

#[test]
fn user_space_sctp_refuses_several_addresses() {
    let _guard = exclusively();
    let mut node = Node::new(udp(), SctpConfig::default());
    let refused = node.transport.listen_on(&addresses(["127.0.0.5", "127.0.0.6"])).unwrap_err();
    assert!(matches!(refused, SctpError::MultiHoming), "{refused}");
    assert!(refused.to_string().contains("modprobe sctp"), "{refused}");
}

#[test]
fn raw_ip_is_refused_where_the_kernel_answers() {
    let _guard = exclusively();
    // The check for the kernel's SCTP loads its module, if there is one.
    if !socket_is_permitted(libc::SOCK_STREAM) {
        return skipped::skipped("this kernel has no SCTP");
    }
    let Err(refused) = sctp::open(SctpMode::Raw, SctpConfig::default()) else {
        panic!("raw IP beside the kernel's SCTP")
    };
    assert!(matches!(refused, SctpError::KernelInterferes), "{refused}");
}
