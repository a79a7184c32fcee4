//! A server and a client of a few lines each, which tell exactly which bytes they saw.

use std::{io::ErrorKind, net::SocketAddr, sync::Arc};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::{AbortHandle, JoinSet},
    time::Instant,
};

/// What the server saw, in order.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Seen {
    /// A whole request, at this time, on the n-th connection.
    Request(String, Instant, usize),
    /// Its answer was written whole.
    Answered,
    /// The connection ended in the middle of a request; these bytes of it came.
    Cut(String),
    /// The connection ended between two requests, or while an answer was written.
    Ended,
}

pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    seen: mpsc::UnboundedReceiver<Seen>,
    accepting: AbortHandle,
}

impl Server {
    /// Starts a server that answers each request with what `answer` makes of it. An answer that is empty ends the
    /// connection, as does one that says `connection: close`.
    pub(crate) async fn start(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (tell, seen) = mpsc::unbounded_channel();
        let answer = Arc::new(answer);
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            for number in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(serve(stream, number, Arc::clone(&answer), tell.clone()));
            }
        });
        Self {
            addr,
            seen,
            accepting: accepting.abort_handle(),
        }
    }

    /// The next thing the server saw.
    pub(crate) async fn next(&mut self) -> Seen {
        self.seen.recv().await.expect("the server runs")
    }

    /// The next thing the server saw is a whole request: its bytes.
    pub(crate) async fn request(&mut self) -> String {
        match self.next().await {
            Seen::Request(request, ..) => request,
            other => panic!("not a whole request: {other:?}"),
        }
    }

    /// Whether nothing is left that the server saw.
    pub(crate) fn saw_nothing_more(&mut self) -> bool {
        self.seen.try_recv().is_err()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    number: usize,
    answer: Arc<impl Fn(&str) -> Vec<u8>>,
    tell: mpsc::UnboundedSender<Seen>,
) {
    let mut bytes = Vec::new();
    loop {
        let Some(len) = request_len(&bytes) else {
            if !matches!(stream.read_buf(&mut bytes).await, Ok(1..)) {
                drop(tell.send(if bytes.is_empty() {
                    Seen::Ended
                } else {
                    Seen::Cut(String::from_utf8(bytes).unwrap())
                }));
                return;
            }
            if bytes.ends_with(b"expect: 100-continue\r\n\r\n") {
                let interim = b"HTTP/1.1 100 Continue\r\n\r\n";
                stream.write_all(interim).await.unwrap();
            }
            continue;
        };
        let request = String::from_utf8(bytes.drain(..len).collect()).unwrap();
        let answer = answer(&request);
        drop(tell.send(Seen::Request(request, Instant::now(), number)));
        if answer.is_empty() || stream.write_all(&answer).await.is_err() {
            drop(tell.send(Seen::Ended));
            return;
        }
        drop(tell.send(Seen::Answered));
        let head = String::from_utf8_lossy(&answer[..answer.len().min(256)]);
        if head.contains("connection: close") {
            return;
        }
    }
}

fn request_len(bytes: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(bytes);
    let head = text.find("\r\n\r\n")? + 4;
    let len = if text[..head].contains("transfer-encoding: chunked") {
        head + text[head..].find("0\r\n\r\n")? + 5
    } else if let Some((_, length)) = text[..head].split_once("content-length: ") {
        head + length.split("\r\n").next()?.parse::<usize>().unwrap()
    } else {
        head
    };
    (bytes.len() >= len).then_some(len)
}

/// How an exchange ended for the client.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum End {
    Whole,
    Eof,
    Reset,
}

pub(crate) struct Client {
    stream: TcpStream,
}

impl Client {
    pub(crate) async fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).await.unwrap();
        Self { stream }
    }

    /// Sends `request`; whether all of it was taken before the connection broke.
    pub(crate) async fn send(&mut self, request: &str) -> bool {
        self.stream.write_all(request.as_bytes()).await.is_ok()
    }

    /// Sends `request` and reads until the answer reads `expected`, or the connection ends.
    pub(crate) async fn exchange(&mut self, request: &str, expected: &str) -> (String, End) {
        self.send(request).await;
        self.receive(expected).await
    }

    /// Reads until the answer reads `expected`, or the connection ends.
    pub(crate) async fn receive(&mut self, expected: &str) -> (String, End) {
        let mut bytes = vec![0; expected.len()];
        let mut len = 0;
        let end = loop {
            if len == expected.len() && len > 0 {
                break End::Whole;
            }
            let spare = &mut [0];
            let room = if expected.is_empty() {
                &mut spare[..]
            } else {
                &mut bytes[len..]
            };
            match self.stream.read(room).await {
                Ok(0) => break End::Eof,
                Ok(read) => len += read,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break End::Reset,
                Err(error) => panic!("unexpected: {error}"),
            }
        };
        bytes.truncate(len);
        (String::from_utf8(bytes).unwrap(), end)
    }
}
