//! Access tokens between processes (TS 33.501 13.4.1), in the worlds that have them: the shell's part, which is to check
//! what a request shows and to say who its sender is.

use super::World;
use crate::journal::CallerId;
use crate::network::{instance_id, plmn, slices, token_key};
use pith_nf::fabric::Bearer;
use pith_nf::kit::{Client, Issuer, Nf};
use pith_sbi::token::{KeySet, Producer, Refusal, Verifier, jwks};
use pith_sbi::{NfType, Request};

/// A verifier with the NRF's key.
pub(super) fn verifier() -> Verifier {
    let keys = jwks(&[("key".into(), token_key().point())]);
    Verifier::new(KeySet::from_jwks(&keys).expect("a key that was just written"))
}

impl World {
    /// Checks the token of a request for that process, if its service wants one.
    pub(super) fn admit(
        &mut self,
        process: usize,
        request: &Request,
        bearer: Option<&Bearer>,
    ) -> Result<(), Refusal> {
        let service = request.service();
        let is_open = service.producer().is_none_or(|producer| producer == NfType::Nrf);
        if !self.plan.oauth2 || is_open || request.target_uri().is_some() {
            return Ok(());
        }
        let bearer = bearer.ok_or_else(|| Refusal::Missing(service.clone()))?;
        let claims = self.verifier.verify(self.now.as_micros() / 1_000_000, &bearer.token)?;
        self.producer(process).admit(&claims, &service)?;
        claims.covers(request.operation())
    }

    fn producer(&self, process: usize) -> Producer {
        let instances = self.plan.processes[process].iter().filter_map(|nf| {
            let of_process = &self.processes[process];
            let incarnation = of_process.incarnation_of_instances(of_process.incarnation);
            Some((nf.nf_type()?, instance_id(process, incarnation, *nf)))
        });
        Producer {
            instances: instances.collect(),
            plmns: vec![plmn()],
            slices: slices(),
            nf_sets: Vec::new(),
        }
    }

    /// The identity that the sender proves by certificate and token.
    pub(super) fn client(&self, (process, _, nf): CallerId, incarnation: u32) -> Option<Client> {
        let incarnation = self.processes[process].incarnation_of_instances(incarnation);
        let first = self.plan.processes[process].first().copied().unwrap_or(Nf::Nrf);
        let proven = Client {
            instance: instance_id(process, incarnation, nf),
            process: instance_id(process, incarnation, first),
            is_named: true,
            is_proven: true,
            issuer: Issuer::Own,
        };
        self.plan.oauth2.then_some(proven)
    }
}
