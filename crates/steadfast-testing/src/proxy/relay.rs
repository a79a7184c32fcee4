//! One exchange, passed on as it comes.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::oneshot,
};

use super::{
    framing::BodyEnd,
    message::{Malformed, Next, RequestHead, RequestKind, ResponseHead},
    side::{Gone, Reader, Side},
};

/// How an exchange that came to its end left the request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Sent {
    Whole,
    /// The server answered without taking it all.
    Refused,
}

/// Who broke an exchange before its end.
#[derive(Debug)]
pub(super) enum Broken {
    Client,
    Server,
}

/// Where an answer goes.
#[derive(Debug, Default)]
pub(super) struct Answer {
    hold: Option<Duration>,
    kept: Option<Kept>,
    is_tunnel: bool,
}

#[derive(Debug)]
struct Kept {
    limit: usize,
    bytes: Vec<u8>,
    head: usize,
}

impl Answer {
    /// To the client as it comes.
    pub(super) fn deliver() -> Self {
        Self::default()
    }

    /// To the client, the first byte after `hold`.
    pub(super) fn deliver_after(hold: Duration) -> Self {
        Self {
            hold: Some(hold),
            ..Self::default()
        }
    }

    /// Nowhere; its first `limit` bytes are kept. Interim responses still go to the client, which may wait for one
    /// before it sends its body.
    pub(super) fn keep(limit: usize) -> Self {
        Self {
            kept: Some(Kept {
                limit,
                bytes: Vec::new(),
                head: 0,
            }),
            ..Self::default()
        }
    }

    /// Whether the connection speaks another protocol from here on.
    pub(super) const fn is_tunnel(&self) -> bool {
        self.is_tunnel
    }

    /// The bytes kept, and how many of them are the head.
    pub(super) fn into_kept(self) -> (Vec<u8>, usize) {
        self.kept
            .map(|kept| (kept.bytes, kept.head))
            .unwrap_or_default()
    }

    async fn take<W>(&mut self, bytes: &[u8], client: &mut W) -> Result<(), Broken>
    where
        W: AsyncWrite + Unpin,
    {
        if let Some(kept) = &mut self.kept {
            let room = kept.limit.saturating_sub(kept.bytes.len());
            kept.bytes.extend(bytes.iter().take(room));
            return Ok(());
        }
        if let Some(hold) = self.hold.take() {
            tokio::time::sleep(hold).await;
        }
        client.write_all(bytes).await.map_err(|_| Broken::Client)
    }
}

/// Passes `request`, which is at the start of the client's buffer, to the server and its answer to `answer`.
///
/// `copy` gets the bytes of the request once the server has them all, unless they are too many.
pub(super) async fn relay(
    client: &mut Side,
    server: &mut Side,
    request: RequestHead,
    answer: &mut Answer,
    copy: Option<oneshot::Sender<Bytes>>,
) -> Result<Sent, Broken> {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let (sent, was_sent) = oneshot::channel();
    let kind = request.kind;

    let upload = async {
        // The other side waits for it as long as this one runs.
        let _ = sent.send(send(&mut from_client, request, &mut to_server, copy).await?);
        from_client.gone().await;
        Err(Broken::Client)
    };
    let download = async {
        receive(&mut from_server, kind, answer, &mut to_client).await?;
        was_sent.await.map_err(|_| Broken::Client)
    };
    tokio::select! {
        biased;
        sent = download => sent,
        broken = upload => broken,
    }
}

const MAX_COPY: usize = 1024 * 1024;

async fn send<W>(
    client: &mut Reader<'_>,
    mut request: RequestHead,
    server: &mut W,
    copy: Option<oneshot::Sender<Bytes>>,
) -> Result<Sent, Broken>
where
    W: AsyncWrite + Unpin,
{
    let mut copy = copy.map(|receiver| (receiver, BytesMut::new()));
    let mut piece = client.take(request.len);
    loop {
        let len = request
            .body
            .advance(client.buffer())
            .map_err(|Malformed| Broken::Client)?;
        piece.unsplit(client.take(len));
        copy = copy.filter(|(_, bytes)| bytes.len() + piece.len() <= MAX_COPY);
        if let Some((_, bytes)) = &mut copy {
            bytes.extend_from_slice(&piece);
        }
        if server.write_all(&piece).await.is_err() {
            return Ok(Sent::Refused);
        }
        if request.body.is_done() {
            if let Some((receiver, bytes)) = copy {
                // Nobody repeats it any more if the exchange is being dropped.
                drop(receiver.send(bytes.freeze()));
            }
            return Ok(Sent::Whole);
        }
        client.more().await.map_err(|Gone| Broken::Client)?;
        piece = BytesMut::new();
    }
}

/// Takes one whole answer from the server, interim ones before it included.
pub(super) async fn receive<W>(
    server: &mut Reader<'_>,
    request: RequestKind,
    answer: &mut Answer,
    client: &mut W,
) -> Result<(), Broken>
where
    W: AsyncWrite + Unpin,
{
    let Some(mut body) = receive_head(server, request, answer, client).await? else {
        return Ok(());
    };
    loop {
        let len = body
            .advance(server.buffer())
            .map_err(|Malformed| Broken::Server)?;
        if len > 0 {
            answer.take(&server.take(len), client).await?;
        }
        if body.is_done() {
            return Ok(());
        }
        match server.more().await {
            Ok(()) => {}
            Err(Gone) if body.is_until_close() => return Ok(()),
            Err(Gone) => return Err(Broken::Server),
        }
    }
}

/// Takes the answer's head; returns the end of its body, `None` if what follows is not HTTP.
async fn receive_head<W>(
    server: &mut Reader<'_>,
    request: RequestKind,
    answer: &mut Answer,
    client: &mut W,
) -> Result<Option<BodyEnd>, Broken>
where
    W: AsyncWrite + Unpin,
{
    loop {
        let head = ResponseHead::parse(server.buffer(), request);
        let Some(head) = head.map_err(|Malformed| Broken::Server)? else {
            server.more().await.map_err(|Gone| Broken::Server)?;
            continue;
        };
        let bytes = server.take(head.len);
        if let Next::Head = head.next {
            let written = client.write_all(&bytes).await;
            written.map_err(|_| Broken::Client)?;
            continue;
        }
        answer.take(&bytes, client).await?;
        if let Some(kept) = &mut answer.kept {
            kept.head = kept.bytes.len();
        }
        let Next::Body(body) = head.next else {
            answer.is_tunnel = true;
            return Ok(None);
        };
        return Ok(Some(body));
    }
}
