use std::{io, pin::pin, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto::Builder, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    time::Instant,
};

use super::running::Running;

/// Speaks HTTP to whoever connects.
pub(super) struct Server {
    http: Builder<TokioExecutor>,
    router: Router,
    connections: GracefulShutdown,
}

impl Server {
    pub(super) fn new(router: Router, http2: bool) -> Self {
        let mut http = Builder::new(TokioExecutor::new());
        http.http1().timer(TokioTimer::new());
        http.http2().timer(TokioTimer::new());
        let http = if http2 { http } else { http.http1_only() };
        Self {
            http,
            router,
            connections: GracefulShutdown::new(),
        }
    }

    /// Accepts until `stop`, then waits at most for `limit`: first for the connections, then for calls whose clients
    /// have gone.
    pub(super) async fn serve(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
        running: &Running,
        limit: Duration,
    ) {
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => self.connect(stream),
                    Err(error) => pause_after(&error).await,
                },
            }
        }
        drop(listener);
        let deadline = Instant::now() + limit;
        let ended = tokio::time::timeout_at(deadline, self.connections.shutdown()).await;
        let left = deadline.saturating_duration_since(Instant::now());
        match (ended, running.wait(left).await) {
            (Ok(()), true) => {}
            _ => eprintln!("some calls were still running; their leases lapse by themselves"),
        }
    }

    fn connect(&self, stream: TcpStream) {
        // Without it small answers wait for the peer's acknowledgements. The connection works either way.
        drop(stream.set_nodelay(true));
        let service = TowerToHyperService::new(self.router.clone());
        let connection = self
            .http
            .serve_connection(TokioIo::new(stream), service)
            .into_owned();
        let connection = self.connections.watch(connection);
        tokio::spawn(async move {
            // A connection that ends in an error was broken by its peer, or on request.
            drop(connection.await);
        });
    }
}

/// A connection that was lost before it was accepted costs nothing; without descriptors, accepting would spin.
async fn pause_after(error: &io::Error) {
    let is_lost = matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
    );
    if !is_lost {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
