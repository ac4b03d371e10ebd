//! An insider: an NF whose certificate is of the core's CA, but of a type that does not use the service which it attacks
//! (TS 33.501 13.1, 13.4.1). It sends over connections that it keeps, and changes its guise from message to message:
//!
//! ```text
//!  its certificate, no token                                401 by the producer
//!  its certificate, a token of its own service              401 invalid_token: another audience
//!  its certificate, that token with a forged signature      401 invalid_token
//!  cleartext                                                closed in the handshake
//!  TLS without a certificate                                closed in the handshake
//! ```

use crate::http::{self, Answers, Guise};
use crate::pace::Pace;
use anyhow::{Context, Result, anyhow};
use hyper::Request;
use pith_nf::kit::Nf;
use pith_runtime::config::TlsFiles;
use pith_runtime::http::{Client, Tls};
use pith_runtime::pki::{Member, Source};
use pith_sbi::nnrf_accesstoken::{AccessTokenReq, AccessTokenRequest};
use pith_sbi::{NfInstanceId, NfType};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs, version::TLS13};
use serde_json::{Value, json};
use std::cell::Cell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Messages in a cycle. One is a TLS handshake without a certificate, `CLEARTEXT` are sent in cleartext. There are few
/// handshakes because they cost the attacker as much CPU as the core.
const CYCLE: u64 = 100;
const CLEARTEXT: u64 = 4;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The producer that it attacks: not one of its own service.
    #[arg(long)]
    target: SocketAddr,
    /// The NRF, which gives it a token.
    #[arg(long)]
    nrf: SocketAddr,
    /// The certificate of the CA.
    #[arg(long)]
    ca: PathBuf,
    /// Its certificate and key, issued for an NSSF.
    #[arg(long)]
    certificate: PathBuf,
    /// Which requests.
    #[arg(long, default_value = "sbi-request")]
    corpus: String,
}

pub fn attack(args: &Args, seed: u64, pace: &mut Pace) -> Result<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(LocalSet::new().run_until(send(args, seed, pace)))
}

async fn send(args: &Args, seed: u64, pace: &mut Pace) -> Result<Value> {
    let (ca, certificate) = (args.ca.clone(), args.certificate.clone());
    let files = TlsFiles { ca, key: certificate.clone(), certificate };
    let source = Source::Files(files, Member::new(&[Nf::Nssf], args.target));
    let tls = Tls::open(source, Vec::new())?;
    let instance =
        *tls.certificate().identity.instances.first().context("the certificate names no instance")?;
    let client = Rc::new(Client::with_tls(http::limits(), Rc::new(tls)));
    let token = token(&client, args.nrf, instance).await?;

    let certified = |token: Option<String>| {
        let authorization = token.map(|token| format!("Bearer {token}").into());
        Guise { client: client.clone(), scheme: "https", authorization }
    };
    let certified = [certified(None), certified(Some(token.clone())), certified(Some(forged(&token)))];
    let stranger = Guise::stranger();
    let nobody = Nobody::new(args)?;
    let guise = |number: u64| match number % CYCLE {
        0 => {
            nobody.connect();
            None
        }
        1..=CLEARTEXT => Some(stranger.clone()),
        _ => certified.get(number as usize % certified.len()).cloned(),
    };
    let slow = http::slow_bodies(args.target);
    let answers = Answers::default();
    http::send(args.target, &args.corpus, seed, pace, guise, answers.clone()).await?;
    let answers = answers.borrow().clone();
    Ok(json!({
        "answers by status": answers,
        "slow connections": slow.len(),
        "without a certificate": { "refused": nobody.refused.get(), "taken": nobody.taken.get() },
    }))
}

/// A token of the NSSF's own service, to which it is entitled.
async fn token(client: &Client, nrf: SocketAddr, instance: NfInstanceId) -> Result<String> {
    let mut body = AccessTokenReq::new(instance, "nnssf-nsselection");
    body.nf_type = Some(NfType::Nssf);
    body.target_nf_type = Some(NfType::Nssf);
    let http = pith_sbi::Request::from(AccessTokenRequest { body }).to_http();
    let request = Request::builder().method(http.method.as_str()).uri(format!("https://{nrf}{}", http.path));
    let request = request.header("content-type", http.content_type.as_deref().unwrap_or_default());
    let answer = client.call(request.body(http.body)?).await?;
    let json: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
    let token = json["access_token"].as_str();
    token.map(str::to_owned).ok_or_else(|| anyhow!("the NRF gives no token: {} {json}", answer.status()))
}

/// The same claims with another signature.
fn forged(token: &str) -> String {
    let (signed, signature) = token.rsplit_once('.').unwrap_or((token, ""));
    let changed = |c: char| if c == 'A' { 'B' } else { 'A' };
    let signature: String =
        signature.chars().enumerate().map(|(at, c)| if at == 10 { changed(c) } else { c }).collect();
    format!("{signed}.{signature}")
}

/// A client that shows no certificate.
struct Nobody {
    connector: TlsConnector,
    target: SocketAddr,
    refused: Rc<Cell<u64>>,
    taken: Rc<Cell<u64>>,
}

impl Nobody {
    fn new(args: &Args) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&args.ca)?)?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[&TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let connector = TlsConnector::from(Arc::new(config));
        Ok(Self { connector, target: args.target, refused: Rc::default(), taken: Rc::default() })
    }

    /// Begins a handshake. The server refuses after the client has finished (RFC 8446 4.4.2.4), so the client reads.
    fn connect(&self) {
        let (connector, target) = (self.connector.clone(), self.target);
        let (refused, taken) = (self.refused.clone(), self.taken.clone());
        spawn_local(async move {
            let talk = async {
                let stream = TcpStream::connect(target).await?;
                let mut stream = connector.connect(ServerName::from(target.ip()), stream).await?;
                stream.read_u8().await
            };
            let counter = match timeout(Duration::from_secs(2), talk).await {
                Ok(Ok(_)) => taken,
                _ => refused,
            };
            counter.set(counter.get() + 1);
        });
    }
}
