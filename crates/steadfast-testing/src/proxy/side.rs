//! One socket of the two, with what was read from it too early.

use std::{future::pending, time::Duration};

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
};

use super::plan::Close;

/// A socket and the bytes read from it that nobody has taken yet.
#[derive(Debug)]
pub(super) struct Side {
    stream: TcpStream,
    buffer: BytesMut,
}

/// The reading half of a [`Side`].
#[derive(Debug)]
pub(super) struct Reader<'a> {
    half: ReadHalf<'a>,
    buffer: &'a mut BytesMut,
}

/// The peer ended or broke the connection.
#[derive(Debug)]
pub(super) struct Gone;

impl Side {
    pub(super) fn new(stream: TcpStream) -> Self {
        // Refused only where the socket is dead already, which shows soon enough.
        drop(stream.set_nodelay(true));
        Self {
            stream,
            buffer: BytesMut::new(),
        }
    }

    pub(super) fn split(&mut self) -> (Reader<'_>, WriteHalf<'_>) {
        let (half, writer) = self.stream.split();
        let buffer = &mut self.buffer;
        (Reader { half, buffer }, writer)
    }

    pub(super) fn reader(&mut self) -> Reader<'_> {
        self.split().0
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        self.stream.write_all(bytes).await.map_err(|_| Gone)
    }

    /// Waits until the peer, of whom nothing is expected, speaks or leaves.
    pub(super) async fn disturbed(&self) {
        if self.buffer.is_empty() {
            // What came or went wrong does not matter.
            drop(self.stream.peek(&mut [0]).await);
        }
    }

    /// Passes bytes both ways until both peers have ended or one broke.
    pub(super) async fn tunnel(&mut self, other: &mut Self) -> Result<(), Gone> {
        other.write(&self.buffer.split()).await?;
        self.write(&other.buffer.split()).await?;
        match copy_bidirectional(&mut self.stream, &mut other.stream).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Gone),
        }
    }

    pub(super) async fn close(mut self, close: Close) {
        match close {
            // On an error the socket is dead, and closed by being dropped.
            Close::Reset => drop(self.stream.set_zero_linger()),
            Close::Clean => {
                if self.stream.shutdown().await.is_ok() {
                    self.linger().await;
                }
            }
        }
    }

    /// Reads on for a while: closing with bytes unread would turn the clean end into a reset, and could take back
    /// what the peer has not read yet (RFC 9112 §9.6).
    async fn linger(&mut self) {
        let drained = async {
            let mut left = MAX_LINGER_BYTES;
            while left > 0 {
                self.buffer.clear();
                let Ok(len @ 1..) = self.stream.read_buf(&mut self.buffer).await else {
                    return;
                };
                left = left.saturating_sub(len);
            }
        };
        // A peer that does not leave is left behind.
        let _ = tokio::time::timeout(MAX_LINGER, drained).await;
    }
}

const MAX_LINGER: Duration = Duration::from_secs(1);
const MAX_LINGER_BYTES: usize = 4 * 1024 * 1024;

/// As much as is read ahead of the exchange under way.
const MAX_AHEAD: usize = 64 * 1024;

impl Reader<'_> {
    pub(super) fn buffer(&self) -> &[u8] {
        self.buffer
    }

    pub(super) fn take(&mut self, len: usize) -> BytesMut {
        self.buffer.split_to(len)
    }

    /// Reads what is there, and waits if nothing is.
    pub(super) async fn more(&mut self) -> Result<(), Gone> {
        self.buffer.reserve(READ);
        match self.half.read_buf(self.buffer).await {
            Ok(0) | Err(_) => Err(Gone),
            Ok(_) => Ok(()),
        }
    }

    /// Waits until the peer is gone, reading ahead meanwhile; as far as the limit, past which a peer cannot be seen
    /// to leave.
    pub(super) async fn gone(&mut self) {
        while self.buffer.len() < MAX_AHEAD {
            if self.more().await.is_err() {
                return;
            }
        }
        pending::<()>().await;
    }
}

const READ: usize = 8 * 1024;
