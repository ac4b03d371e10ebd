//! Endpoints in a UPF's responses: invalid ones are removed, so that the SMF rejects the session.

use super::N4Gateway;
use crate::kit::Level;
use pith_pfcp::Message;
use pith_pfcp::ie::{FSeid, FTeid};
use std::net::IpAddr;

impl N4Gateway {
    /// Removes endpoints that the SMF must not use, because it would pass them to gNBs and other UPFs.
    pub(super) fn check_endpoints(&mut self, peer: usize, response: &mut Message) {
        let Some(upf) = self.peers.get(peer).map(|peer| peer.config.address.ip()) else { return };
        let own = self.config.address;
        let mut refused = None;
        let mut check = |f_teids: &mut Vec<FTeid>| {
            f_teids.retain(|f_teid| {
                let valid = is_endpoint(f_teid, upf, own);
                if !valid {
                    refused = Some(*f_teid);
                }
                valid
            });
        };
        match response {
            Message::SessionEstablishmentResponse(it) => {
                it.created_pdrs.iter_mut().for_each(|pdr| check(&mut pdr.local_f_teids));
                it.created_traffic_endpoints.iter_mut().for_each(|created| check(&mut created.local_f_teids));
                // SEID 0 means no session (TS 29.244 7.2.2.4.2).
                it.up_f_seid = it.up_f_seid.take().filter(|FSeid { seid, .. }| *seid != 0);
            }
            Message::SessionModificationResponse(it) => {
                it.created_pdrs.iter_mut().for_each(|pdr| check(&mut pdr.local_f_teids));
                it.updated_pdrs.iter_mut().for_each(|pdr| check(&mut pdr.local_f_teids));
                it.created_traffic_endpoints.iter_mut().for_each(|created| check(&mut created.local_f_teids));
            }
            _ => {}
        }
        if let Some(f_teid) = refused {
            let name = self.name(peer);
            let text = format!(
                "UPF {name} sent an invalid tunnel endpoint, which is not used: {}",
                text_of(&f_teid)
            );
            self.event(Level::Warn, text);
        }
    }
}

fn text_of(f_teid: &FTeid) -> String {
    let FTeid::Allocated { teid, ipv4, ipv6 } = *f_teid else { return "CHOOSE in a response".into() };
    let addresses = ipv4.map(IpAddr::V4).into_iter().chain(ipv6.map(IpAddr::V6));
    let addresses: Vec<_> = addresses.map(|address| address.to_string()).collect();
    format!("TEID {teid:#x} at {}", addresses.join(", "))
}

/// Whether this can be the endpoint of a tunnel. TEID 0 is reserved for signalling (TS 29.281 5.1).
fn is_endpoint(f_teid: &FTeid, upf: IpAddr, own: IpAddr) -> bool {
    let FTeid::Allocated { teid, ipv4, ipv6 } = *f_teid else { return false };
    let mut addresses = ipv4.map(IpAddr::V4).into_iter().chain(ipv6.map(IpAddr::V6));
    teid != 0 && addresses.all(|address| is_host_address(address, upf) && address != own)
}

/// Whether this can be an address of the UPF's host. A loopback address is valid only if the UPF is reached over loopback.
fn is_host_address(address: IpAddr, upf: IpAddr) -> bool {
    let is_host = match address {
        // "This network", multicast and reserved addresses (RFC 6890).
        IpAddr::V4(v4) => !matches!(v4.octets()[0], 0 | 224..=255),
        IpAddr::V6(v6) => {
            !v6.is_unspecified()
                && !v6.is_multicast()
                && !v6.is_unicast_link_local()
                && v6.to_ipv4_mapped().is_none()
        }
    };
    is_host && (upf.is_loopback() || !address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunnel_ends_at_a_host() {
        let upf: IpAddr = [10, 0, 0, 7].into();
        let own: IpAddr = [10, 0, 0, 4].into();
        let is_endpoint =
            |address: &str, upf| is_endpoint(&FTeid::new(7, address.parse().unwrap()), upf, own);
        assert!(is_endpoint("10.0.3.7", upf) && is_endpoint("2001:db8::7", upf));
        for address in
            ["0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", "10.0.0.4", "::", "::1", "fe80::1"]
        {
            assert!(!is_endpoint(address, upf), "{address}");
        }
        assert!(is_endpoint("127.0.0.7", [127, 0, 0, 7].into()));
    }
}
