//! The layer behind a real HTTP/1.1 connection.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::{
    body::Incoming,
    client::conn::http1::{SendRequest, handshake},
    server::conn::http1,
};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use steadfast_core::Body;
use steadfast_idempotency::{Drain, Drained, IdempotencyLayer, MemoryStore, Scope};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc},
};
use tower::{Layer as _, service_fn};

/// A server on loopback, whose handler goes on only when it is let.
struct Server {
    address: SocketAddr,
    drain: Drain,
    started: Arc<AtomicUsize>,
    finished: Arc<AtomicUsize>,
    /// One line for each run that was begun.
    begun: mpsc::UnboundedReceiver<()>,
    /// One line for each connection that is over.
    closed: mpsc::UnboundedReceiver<()>,
    go: Arc<Semaphore>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (begin, begun) = mpsc::unbounded_channel();
        let (close, closed) = mpsc::unbounded_channel();
        let (started, finished) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let go = Arc::new(Semaphore::new(0));
        let handler = {
            let (started, finished, go) = (started.clone(), finished.clone(), go.clone());
            service_fn(move |request: Request<Body<Incoming>>| {
                let (started, finished, go) = (started.clone(), finished.clone(), go.clone());
                let begin = begin.clone();
                async move {
                    let run = started.fetch_add(1, Ordering::SeqCst) + 1;
                    begin.send(()).unwrap();
                    go.acquire().await.unwrap().forget();
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    finished.fetch_add(1, Ordering::SeqCst);
                    let answer = format!("{} in {run}", String::from_utf8_lossy(&body));
                    let response = Response::builder().status(201).header("location", "/o/1");
                    Ok::<_, Infallible>(response.body(Full::new(Bytes::from(answer))).unwrap())
                }
            })
        };
        let layer = IdempotencyLayer::new(MemoryStore::new(10, 10_000), Scope::global());
        let drain = layer.drain();
        let service = layer.layer(handler);
        drop(tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = TowerToHyperService::new(service.clone());
                let close = close.clone();
                drop(tokio::spawn(async move {
                    let connection = http1::Builder::new();
                    let served = connection.serve_connection(TokioIo::new(stream), service);
                    drop(served.await);
                    close.send(()).unwrap_or_default();
                }));
            }
        }));
        Self {
            address,
            drain,
            started,
            finished,
            begun,
            closed,
            go,
        }
    }

    async fn connect<B>(&self) -> SendRequest<B>
    where
        B: http_body::Body<Data = Bytes, Error = Infallible> + Send + 'static,
    {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        // It ends with its sender.
        drop(tokio::spawn(connection));
        sender
    }

    fn runs(&self) -> (usize, usize) {
        let load = |count: &AtomicUsize| count.load(Ordering::SeqCst);
        (load(&self.started), load(&self.finished))
    }
}

fn order(body: &'static str) -> Request<Full<Bytes>> {
    let request = Request::post("/orders").header("idempotency-key", "k1");
    let request = request.header("host", "localhost");
    request.body(Full::from(body)).unwrap()
}

async fn read(response: Response<Incoming>) -> (u16, bool, Bytes) {
    let status = response.status().as_u16();
    let replayed = response.headers().contains_key("idempotent-replayed");
    let body = response.into_body().collect().await.unwrap();
    (status, replayed, body.to_bytes())
}

#[tokio::test]
async fn i15_a_client_that_hangs_up_in_the_middle_finds_its_answer_when_it_is_back() {
    let mut server = Server::start().await;
    let mut client = server.connect().await;
    let call = tokio::spawn(async move { client.send_request(order("one")).await });
    server.begun.recv().await.unwrap();
    call.abort();
    call.await.unwrap_err();
    // The server has noticed, and has dropped the call.
    server.closed.recv().await.unwrap();
    assert_eq!(server.runs(), (1, 0));

    // Before the handler is done: a duplicate, on another connection.
    let mut client = server.connect().await;
    let duplicate = client.send_request(order("one")).await.unwrap();
    assert_eq!(duplicate.headers()["retry-after"], "1");
    assert_eq!(read(duplicate).await.0, 409);

    server.go.add_permits(1);
    let drained = server.drain.wait(Duration::from_secs(60)).await;
    assert_eq!(drained, Drained::All);
    assert_eq!(server.runs(), (1, 1));

    let repeat = client.send_request(order("one")).await.unwrap();
    assert_eq!(repeat.headers()["location"], "/o/1");
    assert_eq!(repeat.headers()["content-length"], "8");
    assert_eq!(read(repeat).await, (201, true, Bytes::from("one in 1")));
    assert_eq!(server.runs(), (1, 1));
}

#[tokio::test]
async fn i08_calls_and_repeats_share_a_connection() {
    let server = Server::start().await;
    server.go.add_permits(1);
    let mut client = server.connect().await;
    for replayed in [false, true, true] {
        let response = client.send_request(order("one")).await.unwrap();
        assert_eq!(
            read(response).await,
            (201, replayed, Bytes::from("one in 1"))
        );
        client.ready().await.unwrap();
    }
    let other = client.send_request(order("two")).await.unwrap();
    assert_eq!(read(other).await.0, 422);
    assert_eq!(server.runs(), (1, 1));
}

#[tokio::test]
async fn i07_two_key_lines_on_the_wire_are_refused() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let request = Request::post("/orders")
        .header("host", "localhost")
        .header("idempotency-key", "k1")
        .header("idempotency-key", "k1");
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    let response = client.send_request(request).await.unwrap();
    assert_eq!(read(response).await.0, 400);
    assert_eq!(server.runs(), (0, 0));
}
