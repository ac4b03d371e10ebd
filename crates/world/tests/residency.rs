//! What each residency reads and writes, with each NF in a process of its own.

use pith_nf::kit::Nf;
use pith_world::{Plan, Residency, StoreOperations, World, WriteForm};

/// What ten service requests with a release each need.
fn operations(residency: Residency, form: WriteForm) -> StoreOperations {
    let processes = Nf::ALL.into_iter().map(|nf| vec![nf]).collect();
    let plan = Plan { processes, residency, store: Some(form), ..Plan::clean() };
    World::new(plan).run_service_requests(10).expect("a world without faults")
}

#[test]
fn an_embedded_document_is_read_by_the_first_nf_only() {
    for form in [WriteForm::Replace, WriteForm::Update] {
        let [stateless, shared, embedded] =
            [Residency::Stateless, Residency::Shared, Residency::Embedded].map(|it| operations(it, form));
        println!("{form:?}\nstateless {stateless:?}\nshared {shared:?}\nembedded {embedded:?}");
        assert_eq!((stateless.embedded, shared.embedded), (0, 0));
        assert!(embedded.embedded >= 20 && embedded.refused == 0, "{embedded:?}");
        assert!(embedded.reads < shared.reads && embedded.reads < stateless.reads);
        assert!(embedded.requests < shared.requests);
    }
}
