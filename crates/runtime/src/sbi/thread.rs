//! The HTTP thread: runs servers and client, executes commands of other threads, and ends when drained.

use super::access::{Access, AccessSettings};
use super::log_rate::LogRate;
use super::plain::PlainUris;
use super::renewals::Renewals;
use super::server::SbiHandler;
use super::{Recorder, Shards, convert};
use crate::api::{Api, ApiHandler, Audit, Gather, Guard, Status};
use crate::config::Config;
use crate::gate::Gate;
use crate::http::{
    CHECK_INTERVAL, CallError, Client, Exchanges, Expected, ExternalPeer, Known, Limits, Listener, Protocol,
    Server, Tls, Transport,
};
use crate::store::StoreHandle;
use crate::token::ShardToken;
use crate::upf::UpfHandle;
use bytes::Bytes;
use pith_nf::fabric::Bearer;
use pith_nf::kit::Nf;
use pith_sbi::{
    ApiRoot, Cause, NfInstanceId, Operation, Problem, ProblemMore, Reply, Request, Response, Scheme,
};
use serde_json::Value;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::timeout;

/// Limits of the API: an import may have all subscribers of a network in one body.
const API_LIMITS: Limits = Limits {
    time: Duration::from_secs(60),
    body_time: Duration::from_secs(50),
    body: 1 << 28,
    buffered: 1 << 29,
    exchanges: 64,
};

/// Settings of the SBI over HTTP/2.
pub struct SbiSettings {
    /// Listeners for requests; none if no process calls this one.
    pub listeners: Vec<TcpListener>,
    /// Listener for cleartext requests of other vendors' NFs.
    pub plain_listener: Option<TcpListener>,
    /// TLS; without it all is cleartext, for processes of the same user.
    pub tls: Option<Tls>,
    /// NFs of other vendors that may call in cleartext, too, where there is no TLS.
    pub external_peers: Vec<ExternalPeer>,
    /// Limits of requests and connections.
    pub limits: Limits,
    /// Records the exchanges of the server.
    pub recorder: Option<Recorder>,
    /// Authorization of requests.
    pub access: AccessSettings,
    /// Addresses of the configured NFs.
    pub known: BTreeSet<IpAddr>,
}

/// Settings of the operator API.
pub struct ApiSettings {
    /// Its listeners.
    pub listeners: Vec<ApiListener>,
    /// Authenticates callers.
    pub guard: Guard,
    /// The audit log.
    pub audit: Audit,
    /// The subscriber store, if this process has the database.
    pub store: Option<StoreHandle<ShardToken>>,
    /// The UPF, if this process has it.
    pub upf: Option<UpfHandle>,
    /// Returns the state of the process.
    pub status: Box<dyn Fn() -> Status + Send>,
    /// The configuration in effect.
    pub config: Config,
}

/// A listener of the API.
pub enum ApiListener {
    /// For users of this machine; the socket's file is removed at the end.
    Unix(UnixListener, PathBuf),
    /// For clients with tokens.
    Tcp(TcpListener),
}

enum Command {
    Call {
        token: ShardToken,
        root: Arc<ApiRoot>,
        expected: Expected,
        operation: Operation,
        request: Box<hyper::Request<Bytes>>,
        /// For returning the call to its shard if the producer refuses the token.
        retry: Option<(Box<Request>, Bearer)>,
    },
    /// A request that could not be formed.
    Failed {
        token: ShardToken,
        root: Arc<ApiRoot>,
        problem: Box<Problem>,
    },
    Answer {
        exchange: u64,
        reply: Reply,
    },
    Inspected {
        exchange: u64,
        list: Vec<Value>,
        next: Option<u32>,
    },
    ReadCertificates,
    Drain,
}

/// Sends commands to the HTTP thread, from any thread.
#[derive(Clone)]
pub struct HttpHandle(UnboundedSender<Command>);

impl HttpHandle {
    /// Calls an operation; [`Shards::reply`] gets what comes of it. The server's certificate must name the
    /// type of the called NF, and its instance where that is known.
    pub fn call(
        &self,
        token: ShardToken,
        root: Arc<ApiRoot>,
        instance: Option<NfInstanceId>,
        request: Request,
        bearer: Option<Bearer>,
    ) {
        let operation = request.operation();
        let expected = Expected { instance, nf_type: request.target_nf() };
        let access = bearer.as_ref().map(|bearer| &*bearer.token);
        self.send(match convert::to_request(&root, token.nf, request.to_http(), access) {
            Ok(http) => {
                let retry = bearer.filter(|bearer| !bearer.renewed).map(|bearer| (Box::new(request), bearer));
                Command::Call { token, root, expected, operation, request: Box::new(http), retry }
            }
            Err(problem) => Command::Failed { token, root, problem },
        });
    }

    /// Answers a request that was passed to [`Shards::request`].
    pub fn answer(&self, exchange: u64, reply: Reply) {
        self.send(Command::Answer { exchange, reply });
    }

    /// Answers a query that was passed to [`Shards::inspect`]; `next` is the start of the next page, if there is one.
    pub fn inspected(&self, exchange: u64, list: Vec<Value>, next: Option<u32>) {
        self.send(Command::Inspected { exchange, list, next });
    }

    /// Reloads the certificate files.
    pub fn read_certificates(&self) {
        self.send(Command::ReadCertificates);
    }

    /// Accepts no further requests, completes open ones, and ends the thread.
    pub fn drain(&self) {
        self.send(Command::Drain);
    }

    /// Commands after the thread's end are dropped.
    fn send(&self, command: Command) {
        let _ = self.0.send(command);
    }
}

/// The running thread.
pub struct HttpThread(JoinHandle<()>);

impl HttpThread {
    /// Waits for the thread's end, after [`HttpHandle::drain`].
    pub fn join(self) {
        if self.0.join().is_err() {
            tracing::error!("the HTTP thread panicked: this is a bug in Pith, please report it");
        }
    }
}

/// Listens on an address; errors name `setting` as the one to change.
pub fn bind(address: SocketAddr, setting: &str) -> io::Result<TcpListener> {
    let explain = |error: io::Error| {
        let text = format!("cannot listen on {address}: {error}; free it or change '{setting}'");
        io::Error::new(error.kind(), text)
    };
    let listener = TcpListener::bind(address).map_err(explain)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Starts the thread, which waits at the gate.
pub fn start<S: Shards>(
    sbi: SbiSettings,
    api: Option<ApiSettings>,
    shards: S,
    gate: Gate,
) -> io::Result<(HttpHandle, HttpThread)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (sender, commands) = unbounded_channel();
    let thread = Builder::new().name("pith-http".into()).spawn(move || {
        if !gate.wait() {
            return;
        }
        let work = async {
            match HttpThreadState::open(sbi, api, shards) {
                Ok(front) => front.run(commands).await,
                Err(error) => tracing::error!("cannot serve HTTP: {error}"),
            }
        };
        runtime.block_on(LocalSet::new().run_until(work));
    })?;
    Ok((HttpHandle(sender), HttpThread(thread)))
}

/// The state of the HTTP thread.
struct HttpThreadState<S> {
    shards: Rc<S>,
    client: Rc<Client>,
    tls: Option<Rc<Tls>>,
    /// For calls to NFs in cleartext, where they call back.
    plain: Option<Rc<PlainUris>>,
    access: Rc<Access>,
    exchanges: Rc<Exchanges<Reply>>,
    gather: Rc<Gather>,
    drain: watch::Sender<bool>,
    servers: JoinSet<()>,
    calls: JoinSet<()>,
    drain_time: Duration,
    failures: Rc<LogRate>,
    refusals: Rc<LogRate>,
    renewals: Rc<Renewals>,
    /// Files of Unix sockets, removed at the thread's end.
    sockets: Vec<PathBuf>,
}

impl<S: Shards> HttpThreadState<S> {
    fn open(sbi: SbiSettings, api: Option<ApiSettings>, shards: S) -> io::Result<Self> {
        let shards = Rc::new(shards);
        let asked = shards.clone();
        let tls = sbi.tls.map(Rc::new);
        let client = match &tls {
            Some(tls) => Client::with_tls(sbi.limits, tls.clone()),
            None => Client::new(sbi.limits),
        };
        let told = shards.clone();
        let client = Rc::new(client.on_loss(Rc::new(move |authority| told.connection_lost(authority))));
        let plain = plain_uris(&sbi.listeners, sbi.plain_listener.as_ref())?;
        let access = Access::new(sbi.access, client.clone());
        let mut front = Self {
            access: Rc::new(access),
            client,
            tls: tls.clone(),
            plain,
            exchanges: Exchanges::new(sbi.limits.exchanges),
            gather: Rc::new(Gather::new(Box::new(move |topic, id| asked.inspect(topic, id)))),
            drain: watch::Sender::new(false),
            servers: JoinSet::new(),
            calls: JoinSet::new(),
            drain_time: sbi.limits.time * 2,
            failures: Rc::new(LogRate::new("calls failed")),
            refusals: Rc::new(LogRate::new("requests were refused")),
            renewals: Rc::default(),
            sockets: Vec::new(),
            shards,
        };
        let recorder = sbi.recorder.map(Rc::new);
        let known: Known = Rc::new(move |address: IpAddr| sbi.known.contains(&address.to_canonical()));
        let in_cleartext = || Transport::PlainForUser(sbi.external_peers.into());
        let secure = tls.clone().map_or_else(in_cleartext, Transport::Tls);
        for listener in sbi.listeners {
            front.serve_sbi(listener, secure.clone(), sbi.limits, known.clone(), recorder.clone())?;
        }
        if let (Some(listener), Some(tls)) = (sbi.plain_listener, tls) {
            front.serve_sbi(listener, Transport::PlainForExternal(tls), sbi.limits, known, recorder)?;
        }
        if let Some(api) = api {
            front.serve_api(api)?;
        }
        Ok(front)
    }

    fn serve_sbi(
        &mut self,
        listener: TcpListener,
        transport: Transport,
        limits: Limits,
        known: Known,
        recorder: Option<Rc<Recorder>>,
    ) -> io::Result<()> {
        let is_tls = matches!(transport, Transport::Tls(_));
        let handler = SbiHandler {
            scheme: if is_tls { Scheme::Https } else { Scheme::Http },
            authority: listener.local_addr()?.to_string().into(),
            shards: self.shards.clone(),
            exchanges: self.exchanges.clone(),
            recorder,
            access: self.access.clone(),
            plain: self.plain.clone().filter(|_| matches!(transport, Transport::PlainForExternal(_))),
            turn: Cell::new(0),
            refusals: self.refusals.clone(),
        };
        let server = Server { handler, protocol: Protocol::Http2, limits, known };
        let drain = self.drain.subscribe();
        let listener = Listener::Tcp(tokio::net::TcpListener::from_std(listener)?);
        self.servers.spawn_local(server.run_over(transport, listener, drain));
        Ok(())
    }

    fn serve_api(&mut self, settings: ApiSettings) -> io::Result<()> {
        let api = Rc::new(Api {
            guard: settings.guard,
            audit: settings.audit,
            store: settings.store,
            upf: settings.upf,
            gather: self.gather.clone(),
            status: settings.status,
            config: settings.config,
        });
        let starting = Rc::clone(&api);
        self.calls.spawn_local(async move {
            starting.end_withdrawn().await;
            starting.notify_changes().await;
        });
        for listener in settings.listeners {
            let listener = match listener {
                ApiListener::Tcp(listener) => Listener::Tcp(tokio::net::TcpListener::from_std(listener)?),
                ApiListener::Unix(listener, path) => {
                    self.sockets.push(path);
                    Listener::Unix(tokio::net::UnixListener::from_std(listener)?)
                }
            };
            // Every API client counts as unknown: its token is checked before its body is read.
            let known: Known = Rc::new(|_| false);
            let handler = ApiHandler::new(api.clone());
            let server = Server { handler, protocol: Protocol::Any, limits: API_LIMITS, known };
            self.servers.spawn_local(server.run(listener, self.drain.subscribe()));
        }
        Ok(())
    }

    async fn run(mut self, mut commands: UnboundedReceiver<Command>) {
        let mut check = tokio::time::interval(CHECK_INTERVAL);
        loop {
            tokio::select! {
                _ = check.tick(), if self.tls.is_some() => self.read_certificates(false),
                command = commands.recv() => match command {
                    Some(Command::Drain) | None => break,
                    Some(command) => self.carry_out(command),
                },
                Some(_) = self.calls.join_next() => {}
            }
        }
        self.drain.send_replace(true);
        let drain_time = self.drain_time;
        if timeout(drain_time, self.finish(commands)).await.is_err() {
            tracing::warn!("some HTTP exchanges did not end within {drain_time:?} and were aborted");
        }
        for socket in &self.sockets {
            // The file may have been removed already.
            let _ = std::fs::remove_file(socket);
        }
    }

    /// Waits until the servers have responded and all calls have ended.
    async fn finish(&mut self, mut commands: UnboundedReceiver<Command>) {
        while !self.servers.is_empty() || !self.calls.is_empty() {
            tokio::select! {
                Some(command) = commands.recv() => self.carry_out(command),
                Some(_) = self.servers.join_next() => {}
                Some(_) = self.calls.join_next() => {}
            }
        }
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Call { token, root, expected, operation, request, retry } => {
                let (client, shards) = (self.client.clone(), self.shards.clone());
                let (failures, renewals) = (self.failures.clone(), self.renewals.clone());
                let mut request = request;
                if let (Some(plain), Scheme::Http) = (&self.plain, root.scheme) {
                    let mut body = std::mem::take(request.body_mut());
                    plain.rewrite(request.headers_mut(), &mut body);
                    *request.body_mut() = body;
                }
                self.calls.spawn_local(async move {
                    let (root, reply) =
                        call_or_follow(&client, expected, token.nf, &failures, root, operation, *request)
                            .await;
                    match (retry, &reply) {
                        (Some((request, bearer)), Err(problem))
                            if problem.is_invalid_token()
                                && renewals.admit(
                                    Instant::now(),
                                    token,
                                    &root,
                                    request.service(),
                                    &bearer.token,
                                ) =>
                        {
                            shards.token_refused(token, root, request, bearer);
                        }
                        _ => shards.reply(token, Some(root), reply),
                    }
                });
            }
            Command::Failed { token, root, problem } => self.shards.reply(token, Some(root), Err(problem)),
            Command::Answer { exchange, reply } => self.exchanges.answer(exchange, reply),
            Command::Inspected { exchange, list, next } => self.gather.answer(exchange, list, next),
            Command::ReadCertificates => self.read_certificates(true),
            Command::Drain => {}
        }
    }

    /// Reloads certificates if their files changed, or `force`.
    fn read_certificates(&self, force: bool) {
        if let Some(tls) = &self.tls {
            tls.refresh(force);
        }
    }
}

/// The URIs that replace those of https for NFs in cleartext.
fn plain_uris(secure: &[TcpListener], plain: Option<&TcpListener>) -> io::Result<Option<Rc<PlainUris>>> {
    let (Some(secure), Some(plain)) = (secure.first(), plain) else { return Ok(None) };
    Ok(Some(Rc::new(PlainUris::new(secure.local_addr()?, plain.local_addr()?))))
}

/// Redirections of one request that are followed.
const REDIRECTIONS: usize = 2;

/// Calls a peer, or the instance of its NF Set to which it redirects the request (TS 29.500 6.10.9). Returns the apiRoot that answered.
async fn call_or_follow(
    client: &Client,
    expected: Expected,
    caller: Nf,
    failures: &LogRate,
    mut root: Arc<ApiRoot>,
    operation: Operation,
    mut request: hyper::Request<Bytes>,
) -> (Arc<ApiRoot>, Reply) {
    let mut expected = expected;
    for _ in 0..REDIRECTIONS {
        let reply = call(client, expected.clone(), caller, failures, &root, operation, request.clone()).await;
        let Some(ProblemMore::Redirect(target)) =
            reply.as_ref().err().and_then(|problem| problem.more.as_ref())
        else {
            return (root, reply);
        };
        // Never from TLS to cleartext, and to the same resource only: with TLS the certificate there must be of the same NF type.
        let uri: Option<hyper::Uri> = target.to_string().parse().ok();
        let uri = uri.filter(|uri| {
            target.root.scheme == root.scheme && uri.path_and_query() == request.uri().path_and_query()
        });
        let Some(uri) = uri else { return (root, reply) };
        *request.uri_mut() = uri;
        root = Arc::clone(&target.root);
        // Another instance of the same type.
        expected.instance = None;
    }
    let reply = call(client, expected, caller, failures, &root, operation, request).await;
    (root, reply)
}

/// Calls a peer. Failures of the peer or the connection are logged with all details, as the calling NF gets
/// only a cause.
async fn call(
    client: &Client,
    expected: Expected,
    caller: Nf,
    failures: &LogRate,
    root: &Arc<ApiRoot>,
    operation: Operation,
    request: hyper::Request<Bytes>,
) -> Reply {
    let uri = pith_sbi::masked(&request.uri().to_string());
    let reply = match client.call_nf(request, expected).await {
        Ok(answer) => Response::from_http(operation, root, &convert::from_response(answer)),
        Err(error @ CallError::Late(_)) => Err(Problem::timed_out().detail(error).into()),
        // The peer may have processed the request.
        Err(error @ CallError::Broken(..)) => Err(Problem::new(Cause::NetworkFailure).detail(error).into()),
        Err(error) => Err(Problem::not_reachable(error).into()),
    };
    if let Err(problem) = &reply
        && problem.status >= 500
        && failures.should_log()
    {
        let called = operation.info().operation_id;
        tracing::warn!("{caller}: {called} at {uri} failed: {problem}");
    }
    reply
}
