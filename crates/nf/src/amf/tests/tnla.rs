//! NGAP UE-TNLA-bindings (TS 23.501 5.21.1.3, TS 38.413 8.13.1).

use super::world::{GNB, OTHER_GNB, Phone, World};
use crate::kit::{Input, N2Input, Tnla, TnlaBinding};
use pith_nas::ie::ServiceType;
use pith_ngap::Message;

const FIRST: TnlaBinding = TnlaBinding { tnla: Some(Tnla(1)), stream: 1 };
const SECOND: TnlaBinding = TnlaBinding { tnla: Some(Tnla(9)), stream: 4 };

/// A phone that has registered, and has a session, over the first association.
fn registered() -> (World, Phone) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    world.arrival = FIRST;
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    assert!(world.bindings.iter().all(|binding| *binding == FIRST), "{:?}", world.bindings);
    world.bindings.clear();
    (world, phone)
}

/// The stream and association of the connection.
fn binding(world: &World) -> TnlaBinding {
    let mut connections = world.amf.shared.connections.iter();
    connections.next().map(|(_, connection)| connection.binding).expect("a connection")
}

#[test]
fn the_binding_follows_the_gnbs_messages() {
    let (mut world, phone) = registered();
    world.arrival = SECOND;
    phone.context_setup_response(&mut world, &[]);
    assert_eq!(binding(&world), SECOND);
    world.arrival = TnlaBinding { stream: 7, ..SECOND };
    phone.context_setup_response(&mut world, &[]);
    assert_eq!(binding(&world), SECOND, "the stream stays on one association (TS 38.412 7)");
    world.arrival = FIRST;
    world.ngap(OTHER_GNB, "UeContextReleaseRequest", release_request(&phone));
    assert_eq!(binding(&world), SECOND, "another gNB has no part in it");
}

fn release_request(phone: &Phone) -> Result<Vec<u8>, pith_ngap::EncodeError> {
    pith_ngap::UeContextReleaseRequest {
        amf_ue_ngap_id: phone.amf_id.expect("the AMF's id"),
        ran_ue_ngap_id: phone.ran_id,
        sessions: None,
        cause: None,
    }
    .encode()
}

#[test]
fn a_gnb_is_requested_to_release_bindings_to_an_association_that_ues_leave() {
    let (mut world, mut phone) = registered();
    world.input(Input::N2(N2Input::ReleaseBindings { gnb: OTHER_GNB, tnla: Tnla(1) }));
    world.input(Input::N2(N2Input::ReleaseBindings { gnb: GNB, tnla: Tnla(5) }));
    assert_eq!(world.bindings, [], "none is bound to these");
    world.input(Input::N2(N2Input::ReleaseBindings { gnb: GNB, tnla: Tnla(1) }));
    let Message::UeTnlaBindingReleaseRequest(request) = world.next() else { panic!() };
    assert_eq!((Some(request.amf_ue_ngap_id), request.ran_ue_ngap_id), (phone.amf_id, phone.ran_id));
    assert_eq!(std::mem::take(&mut world.bindings), [FIRST], "over the association of the binding");
    assert_eq!(binding(&world), TnlaBinding::unbound(1));
    world.input(Input::N2(N2Input::ReleaseBindings { gnb: GNB, tnla: Tnla(1) }));
    assert_eq!(world.bindings, [], "once");
    world.arrival = SECOND;
    phone.release(&mut world);
    assert!(world.bindings.iter().all(|binding| *binding == SECOND), "{:?}", world.bindings);
    assert_eq!(world.amf.audit().connections, 0);
}

#[test]
fn a_later_connection_has_a_binding_of_its_own() {
    let (mut world, mut phone) = registered();
    phone.release(&mut world);
    world.bindings.clear();
    let request = phone.service_request(ServiceType::Signalling);
    let nas = phone.initial_nas(request);
    world.arrival = SECOND;
    phone.connect(&mut world, nas);
    assert_eq!(binding(&world), SECOND);
    assert!(world.bindings.iter().all(|binding| *binding == SECOND), "{:?}", world.bindings);
}

/// After a restart no association exists, whatever the document was written over.
#[test]
fn a_document_has_no_association() {
    let (world, _) = registered();
    let documents = world.amf.documents();
    assert!(!documents.is_empty());
    for document in documents {
        let again = crate::amf::Amf::repack(document.octets(), &world.amf.shared.gnbs).unwrap();
        assert_eq!(again.octets(), document.octets(), "it names the gNB, and the stream");
    }
}
