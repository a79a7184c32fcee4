//! A TCP proxy that breaks HTTP exchanges.

mod connection;
pub(crate) mod faults;
mod framing;
mod message;
mod plan;
mod relay;
mod side;
pub(crate) mod stats;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    net::TcpListener,
    task::{JoinHandle, JoinSet},
};

use self::{
    connection::Connection,
    faults::Faults,
    plan::{Decision, Plan},
    stats::FaultStats,
};

/// A proxy between HTTP/1.1 clients and one server that loses, cuts, delays and repeats whole exchanges.
///
/// It listens on a free port of the loopback interface and relays each connection to a connection of its own to the
/// server. It reads the framing of the messages, so that "the request was forwarded whole" and "the server has
/// answered" are exact: a fault that strikes after the answer strikes after the server's work was done.
///
/// What it keeps of a message is bounded, and so are its connections (1024; more wait to be accepted). Where it waits
/// for the end of an answer without an end, it waits until the client leaves.
///
/// Requests that are pipelined are served one after the other. A connection that stops speaking HTTP (`101`, or a 2xx
/// to `CONNECT`) is relayed byte for byte from there. A connection that never spoke HTTP/1 is closed.
///
/// Delays pass on tokio's clock. With a paused clock they, and every other timer, take no time while the sockets are
/// waited for.
///
/// # Cancellation
///
/// Dropping the proxy closes every connection and the port.
///
/// # Examples
///
/// ```
/// use steadfast_testing::{Fault, FaultProxy, Faults};
/// use tokio::{
///     io::{AsyncReadExt as _, AsyncWriteExt as _},
///     net::{TcpListener, TcpStream},
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let server = TcpListener::bind("127.0.0.1:0").await?;
/// let upstream = server.local_addr()?;
/// tokio::spawn(async move {
///     let (mut connection, _) = server.accept().await?;
///     let mut request = [0; 1024];
///     let _ = connection.read(&mut request).await?;
///     connection.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await
/// });
///
/// let faults = Faults::script([Fault::LoseResponse]).resets(0);
/// let proxy = FaultProxy::start(upstream, faults).await?;
///
/// let mut client = TcpStream::connect(proxy.addr()).await?;
/// client.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await?;
/// let mut response = Vec::new();
/// client.read_to_end(&mut response).await?;
/// assert!(response.is_empty());
/// assert_eq!(proxy.stats().after_commit(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "the proxy stops when it is dropped"]
pub struct FaultProxy {
    addr: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl FaultProxy {
    /// Starts a proxy in front of `upstream`, on the current tokio runtime.
    ///
    /// # Errors
    ///
    /// Fails if no port can be bound.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub async fn start(upstream: SocketAddr, faults: Faults) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared::new(upstream, faults));
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self {
            addr,
            shared,
            accepting,
        })
    }

    /// Where clients connect to.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What the proxy did so far.
    #[must_use]
    pub fn stats(&self) -> FaultStats {
        self.shared.state().stats
    }

    /// Goes on with `faults`, from their beginning. Exchanges under way keep the fault they were given, and the
    /// counts go on.
    pub fn set_faults(&self, faults: Faults) {
        self.shared.state().plan = Plan::new(faults);
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        // The task owns the connections' tasks and aborts them in turn.
        self.accepting.abort();
    }
}

const MAX_CONNECTIONS: usize = 1024;

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((client, _)) => {
                    shared.state().stats.connections += 1;
                    connections.spawn(Connection::new(client, Arc::clone(&shared)).run());
                }
                // Out of descriptors, say: some are freed as connections end.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// What the proxy's connections share.
#[derive(Debug)]
struct Shared {
    upstream: SocketAddr,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    plan: Plan,
    stats: FaultStats,
}

impl Shared {
    fn new(upstream: SocketAddr, faults: Faults) -> Self {
        Self {
            upstream,
            state: Mutex::new(State {
                plan: Plan::new(faults),
                stats: FaultStats::default(),
            }),
        }
    }

    /// Decides what happens to the next exchange, and counts it.
    fn decide(&self) -> Decision {
        let mut state = self.state();
        let decision = state.plan.decide();
        state.stats.counts[decision.fault.index()] += 1;
        decision
    }

    fn count_after_commit(&self) {
        self.state().stats.after_commit += 1;
    }

    fn count_upstream_failure(&self) {
        self.state().stats.upstream_failures += 1;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
