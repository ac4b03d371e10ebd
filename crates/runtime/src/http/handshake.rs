//! A thread for the server side of TLS handshakes, so that their cryptography does not delay requests.
//!
//! ```text
//!  http thread ── stream ──> tls thread: handshake ── TlsStream ──> http thread: requests
//! ```
//!
//! The stream stays registered with the event loop of the HTTP thread, which wakes the handshake.

use rustls::ServerConfig;
use std::io;
use std::sync::Arc;
use std::thread::Builder;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The name of the thread.
pub(super) const NAME: &str = "pith-tls";
/// The nice value of the thread: requests of authenticated NFs come before handshakes if processors are scarce.
const NICE: libc::c_int = 5;

/// The thread. It ends when this is dropped; handshakes in progress are aborted.
pub(super) struct HandshakeThread(UnboundedSender<Handshake>);

/// A handshake to do. The number is limited by the caller, which has a place for each.
struct Handshake {
    stream: TcpStream,
    config: Arc<ServerConfig>,
    result: oneshot::Sender<io::Result<TlsStream<TcpStream>>>,
}

impl HandshakeThread {
    pub fn start() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let (sender, handshakes) = unbounded_channel();
        Builder::new().name(NAME.into()).spawn(move || {
            lower_priority();
            runtime.block_on(run(handshakes));
        })?;
        Ok(Self(sender))
    }

    /// Does the handshake. It is aborted if the future is dropped.
    pub async fn accept(
        &self,
        config: Arc<ServerConfig>,
        stream: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        let (result, finished) = oneshot::channel();
        // If the thread has ended, the receiver reports it.
        let _ = self.0.send(Handshake { stream, config, result });
        finished.await.map_err(|_| io::Error::other("the thread for TLS handshakes has ended"))?
    }
}

async fn run(mut handshakes: UnboundedReceiver<Handshake>) {
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            next = handshakes.recv() => match next {
                Some(handshake) => drop(running.spawn(handshake.run())),
                None => return,
            },
            Some(_) = running.join_next() => {}
        }
    }
}

impl Handshake {
    async fn run(self) {
        let Self { stream, config, mut result } = self;
        tokio::select! {
            stream = TlsAcceptor::from(config).accept(stream) => drop(result.send(stream)),
            () = result.closed() => {}
        }
    }
}

fn lower_priority() {
    // SAFETY: a system call with plain numbers; 0 is the calling thread. A failure leaves the priority as it is.
    #[allow(unsafe_code)]
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, NICE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::server::{ClientHello, ResolvesServerCert};
    use rustls::sign::CertifiedKey;
    use std::time::{Duration, Instant};
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;
    use tokio::time::sleep;

    /// A handshake that computes for a long time, and fails.
    #[derive(Debug)]
    struct Expensive;

    const COST: Duration = Duration::from_millis(400);

    impl ResolvesServerCert for Expensive {
        fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
            std::thread::sleep(COST);
            None
        }
    }

    #[test]
    fn an_expensive_handshake_does_not_delay_the_calling_thread() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
            let config = ServerConfig::builder_with_provider(provider.clone());
            let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
            let config = Arc::new(config.with_cert_resolver(Arc::new(Expensive)));
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let handshakes = HandshakeThread::start().unwrap();
            let mut client = rustls::client::ClientConnection::new(
                client_config(provider),
                "localhost".try_into().unwrap(),
            )
            .unwrap();
            let mut hello = Vec::new();
            client.write_tls(&mut hello).unwrap();
            let mut peer = TcpStream::connect(address).await.unwrap();
            peer.write_all(&hello).await.unwrap();
            let (stream, _) = listener.accept().await.unwrap();

            let began = Instant::now();
            let mut longest = Duration::ZERO;
            let ticks = async {
                loop {
                    let before = Instant::now();
                    sleep(Duration::from_millis(5)).await;
                    longest = longest.max(before.elapsed());
                }
            };
            tokio::select! {
                failed = handshakes.accept(config, stream) => assert!(failed.is_err()),
                () = ticks => {}
            }
            assert!(began.elapsed() >= COST);
            assert!(longest < COST / 2, "{longest:?}");
        });
    }

    fn client_config(provider: Arc<rustls::crypto::CryptoProvider>) -> Arc<rustls::ClientConfig> {
        let config = rustls::ClientConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().unwrap();
        Arc::new(config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
    }
}
