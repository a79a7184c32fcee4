//! One client's connection, and the connection to the server behind it.

use std::{future::pending, sync::Arc};

use bytes::Bytes;
use tokio::{net::TcpStream, sync::oneshot};

use super::{
    Shared,
    faults::Fault,
    message::{Malformed, RequestHead, RequestKind},
    plan::{Close, Decision},
    relay::{Answer, Broken, Sent, receive, relay},
    side::{Gone, Side},
};

/// A client's connection, served until it ends.
pub(super) struct Connection {
    shared: Arc<Shared>,
    client: Side,
    server: Option<Side>,
}

impl Connection {
    pub(super) fn new(client: TcpStream, shared: Arc<Shared>) -> Self {
        Self {
            shared,
            client: Side::new(client),
            server: None,
        }
    }

    pub(super) async fn run(mut self) {
        let close = loop {
            if let Err(close) = self.exchange().await {
                break close;
            }
        };
        if let Some(server) = self.server {
            tokio::join!(self.client.close(close), server.close(close));
        } else {
            self.client.close(close).await;
        }
    }

    /// Serves one exchange; says how to close if it was the last.
    async fn exchange(&mut self) -> Result<(), Close> {
        let request = self.next_request().await?;
        let decision = self.shared.decide();
        match decision.fault {
            Fault::LoseRequest => self.lose_request(request, decision).await,
            Fault::CutRequest => self.cut_request(request, decision).await,
            Fault::LoseResponse | Fault::CutResponse | Fault::CutBody => {
                self.withhold_answer(request, decision).await
            }
            Fault::DelayRequest => {
                tokio::time::sleep(decision.delay).await;
                self.pass(request, Answer::deliver(), None).await
            }
            Fault::DelayResponse => {
                let answer = Answer::deliver_after(decision.delay);
                self.pass(request, answer, None).await
            }
            Fault::DuplicateRequest => self.duplicate(request).await,
            Fault::Pass => self.pass(request, Answer::deliver(), None).await,
        }
    }

    /// Waits for the head of a request; it stays in the buffer.
    async fn next_request(&mut self) -> Result<RequestHead, Close> {
        loop {
            let mut client = self.client.reader();
            match RequestHead::parse(client.buffer()) {
                Ok(Some(head)) => return Ok(head),
                Ok(None) => {}
                Err(Malformed) => return Err(Close::Clean),
            }
            let disturbed = async {
                match &self.server {
                    Some(server) => server.disturbed().await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                // An idle server speaks only to say goodbye.
                () = disturbed => return Err(Close::Clean),
                read = client.more() => read.map_err(|Gone| Close::Clean)?,
            }
        }
    }

    /// Takes the whole request and keeps it from the server.
    async fn lose_request(
        &mut self,
        mut request: RequestHead,
        decision: Decision,
    ) -> Result<(), Close> {
        let mut client = self.client.reader();
        drop(client.take(request.len));
        // Without the interim response it asks for, the client's body would never come.
        while !request.expects_continue {
            let len = request.body.advance(client.buffer());
            drop(client.take(len.map_err(|Malformed| Close::Clean)?));
            if request.body.is_done() {
                break;
            }
            client.more().await.map_err(|Gone| Close::Clean)?;
        }
        Err(decision.close)
    }

    /// Gives the server the beginning of the request.
    async fn cut_request(
        &mut self,
        mut request: RequestHead,
        decision: Decision,
    ) -> Result<(), Close> {
        let mut client = self.client.reader();
        let mut kept = client.take(request.len);
        while !request.expects_continue && kept.len() < MAX_KEPT {
            let len = request.body.advance(client.buffer());
            kept.unsplit(client.take(len.map_err(|Malformed| Close::Clean)?));
            if request.body.is_done() {
                break;
            }
            client.more().await.map_err(|Gone| Close::Clean)?;
        }
        let server = self.connected().await?;
        let cut = decision.cut(kept.len());
        server
            .write(&kept[..cut])
            .await
            .map_err(|Gone| Close::Clean)?;
        Err(decision.close)
    }

    /// Gives the server the whole request, waits for its whole answer, and gives the client what the fault leaves of
    /// it.
    async fn withhold_answer(
        &mut self,
        request: RequestHead,
        decision: Decision,
    ) -> Result<(), Close> {
        let limit = match decision.fault {
            Fault::LoseResponse => 0,
            _ => MAX_KEPT,
        };
        let mut answer = Answer::keep(limit);
        self.relay(request, &mut answer, None).await?;
        self.shared.count_after_commit();

        let (kept, head) = answer.into_kept();
        let cut = match decision.fault {
            Fault::CutBody if head < kept.len() => head + decision.cut_or_none(kept.len() - head),
            _ => decision.cut(kept.len()),
        };
        let written = self.client.write(&kept[..cut]).await;
        written.map_err(|Gone| Close::Clean)?;
        Err(decision.close)
    }

    /// As [`pass`](Self::pass), and gives the server the request once more.
    async fn duplicate(&mut self, request: RequestHead) -> Result<(), Close> {
        let shared = Arc::clone(&self.shared);
        let kind = request.kind;
        let (copy, copied) = oneshot::channel::<Bytes>();
        let again = async {
            // Without a copy there is nothing to repeat: the request failed, or was too large.
            if let Ok(copy) = copied.await {
                repeat(&shared, kind, &copy).await;
            }
        };
        tokio::join!(self.pass(request, Answer::deliver(), Some(copy)), again).0
    }

    /// Gives the server the request and the client the answer.
    async fn pass(
        &mut self,
        request: RequestHead,
        mut answer: Answer,
        copy: Option<oneshot::Sender<Bytes>>,
    ) -> Result<(), Close> {
        let sent = self.relay(request, &mut answer, copy).await?;
        if answer.is_tunnel()
            && let Some(server) = &mut self.server
        {
            // However it ends, the connection does.
            let _ = self.client.tunnel(server).await;
            return Err(Close::Clean);
        }
        match sent {
            Sent::Whole => Ok(()),
            Sent::Refused => Err(Close::Clean),
        }
    }

    async fn relay(
        &mut self,
        request: RequestHead,
        answer: &mut Answer,
        copy: Option<oneshot::Sender<Bytes>>,
    ) -> Result<Sent, Close> {
        self.connected().await?;
        let Self {
            shared,
            client,
            server: Some(server),
        } = self
        else {
            return Err(Close::Clean);
        };
        relay(client, server, request, answer, copy)
            .await
            .map_err(|broken| {
                if let Broken::Server = broken {
                    shared.count_upstream_failure();
                }
                Close::Clean
            })
    }

    /// The connection to the server, made when it is first needed.
    async fn connected(&mut self) -> Result<&mut Side, Close> {
        if self.server.is_none() {
            let Ok(stream) = TcpStream::connect(self.shared.upstream).await else {
                self.shared.count_upstream_failure();
                return Err(Close::Clean);
            };
            self.server = Some(Side::new(stream));
        }
        self.server.as_mut().ok_or(Close::Clean)
    }
}

/// As much of a message as is kept to be cut.
const MAX_KEPT: usize = 16 * 1024;

/// Gives the server `request` on a connection of its own, and takes the answer.
async fn repeat(shared: &Shared, kind: RequestKind, request: &[u8]) {
    let Ok(stream) = TcpStream::connect(shared.upstream).await else {
        return;
    };
    let mut server = Side::new(stream);
    if server.write(request).await.is_err() {
        return;
    }
    let mut nowhere = tokio::io::sink();
    // Nobody waits for this answer; the repeat is over when it is.
    let _ = receive(
        &mut server.reader(),
        kind,
        &mut Answer::keep(0),
        &mut nowhere,
    )
    .await;
    server.close(Close::Clean).await;
}
