use std::{
    collections::VecDeque,
    io::{BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    thread,
};

use tokio::time::Instant;

use super::Message;

/// A server that answers its requests, whatever they are, with one reply of a script after the other.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

/// What the peer does with a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reply {
    /// Answers with this status, these further header lines and this body.
    With(u16, &'static str, &'static str),
    /// Announces a longer body than it sends, and closes.
    Cut,
    /// Closes without an answer.
    Close,
    /// Never answers.
    Hang,
    /// Answers 200, but only when so many requests have arrived.
    After(usize),
}

#[derive(Debug, Default)]
struct Shared {
    script: Mutex<VecDeque<Reply>>,
    received: Mutex<Vec<(Message, Instant)>>,
    arrival: Condvar,
}

impl Peer {
    pub(crate) fn script(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared {
            script: Mutex::new(replies.into_iter().collect()),
            ..Shared::default()
        });
        let peer = Self {
            address,
            shared: Arc::clone(&shared),
        };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.serve(&stream));
            }
        });
        peer
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/orders", self.address)
    }

    /// The requests that arrived, and when.
    pub(crate) fn received(&self) -> Vec<(Message, Instant)> {
        self.shared.received.lock().expect("no panic").clone()
    }

    pub(crate) fn requests(&self) -> Vec<Message> {
        let received = self.received().into_iter();
        received.map(|(request, _)| request).collect()
    }
}

impl Shared {
    fn serve(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Ok(request) = Message::read(&mut reader, true) {
            self.note(request);
            let reply = self.script.lock().expect("no panic").pop_front();
            if !self.reply(stream, reply.expect("the script goes on")) {
                return;
            }
        }
    }

    fn note(&self, request: Message) {
        let mut received = self.received.lock().expect("no panic");
        received.push((request, Instant::now()));
        self.arrival.notify_all();
    }

    /// Whether the connection goes on.
    fn reply(&self, mut stream: &TcpStream, reply: Reply) -> bool {
        let (text, goes_on) = match reply {
            Reply::With(status, headers, body) => (answer(status, headers, body), true),
            Reply::Cut => (
                "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ntea".into(),
                false,
            ),
            Reply::Close => return false,
            Reply::Hang => {
                // Until the client has enough of it.
                drop(stream.read(&mut [0]));
                return false;
            }
            Reply::After(requests) => {
                let received = self.received.lock().expect("no panic");
                let enough = self
                    .arrival
                    .wait_while(received, |received| received.len() < requests);
                drop(enough.expect("no panic"));
                (answer(200, "", "late"), true)
            }
        };
        stream.write_all(text.as_bytes()).is_ok() && goes_on
    }
}

fn answer(status: u16, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} Scripted\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}
