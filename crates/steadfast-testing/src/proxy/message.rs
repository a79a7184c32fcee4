//! Where an HTTP/1 message ends (RFC 9112 §6).

use std::str;

use httparse::{EMPTY_HEADER, Header, Status};

/// What the proxy needs to know of a request's head.
#[derive(Debug)]
pub(super) struct RequestHead {
    pub(super) len: usize,
    pub(super) body: BodyEnd,
    /// The client sends its body only after an interim response.
    pub(super) expects_continue: bool,
    pub(super) kind: RequestKind,
}

/// What the proxy needs to know of a response's head.
#[derive(Debug)]
pub(super) struct ResponseHead {
    pub(super) len: usize,
    pub(super) next: Next,
}

/// What follows a response's head.
#[derive(Debug)]
pub(super) enum Next {
    Body(BodyEnd),
    /// Another head: this one was interim.
    Head,
    /// No HTTP any more.
    Tunnel,
}

/// Not a message of HTTP/1, or one beyond the limits.
#[derive(Debug)]
pub(super) struct Malformed;

/// What of a request decides where its answer ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum RequestKind {
    Connect,
    Head,
    Other,
}

const MAX_HEADERS: usize = 128;
const MAX_HEAD: usize = 64 * 1024;

impl RequestHead {
    /// Reads the head at the start of `bytes`; `None` if it is not whole yet.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<Self>, Malformed> {
        let mut headers = [EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let Some(len) = whole(request.parse(bytes), bytes)? else {
            return Ok(None);
        };
        let fields = Fields(request.headers);
        let body = if fields.is_chunked() {
            BodyEnd::chunked()
        } else if fields.has("transfer-encoding") {
            return Err(Malformed);
        } else {
            BodyEnd::Length(fields.content_length()?.unwrap_or(0))
        };
        Ok(Some(Self {
            len,
            body,
            expects_continue: fields.has_token("expect", "100-continue"),
            kind: match request.method {
                Some("CONNECT") => RequestKind::Connect,
                Some("HEAD") => RequestKind::Head,
                _ => RequestKind::Other,
            },
        }))
    }
}

impl ResponseHead {
    /// Reads the head at the start of `bytes`, an answer to `request`; `None` if it is not whole yet.
    pub(super) fn parse(bytes: &[u8], request: RequestKind) -> Result<Option<Self>, Malformed> {
        let mut headers = [EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let Some(len) = whole(response.parse(bytes), bytes)? else {
            return Ok(None);
        };
        let fields = Fields(response.headers);
        let next = match (response.code.unwrap_or(0), request) {
            (101, _) | (200..=299, RequestKind::Connect) => Next::Tunnel,
            (100..=199, _) => Next::Head,
            (204 | 304, _) | (_, RequestKind::Head) => Next::Body(BodyEnd::Length(0)),
            _ if fields.is_chunked() => Next::Body(BodyEnd::chunked()),
            _ if fields.has("transfer-encoding") => Next::Body(BodyEnd::UntilClose),
            _ => Next::Body(match fields.content_length()? {
                Some(length) => BodyEnd::Length(length),
                None => BodyEnd::UntilClose,
            }),
        };
        Ok(Some(Self { len, next }))
    }
}

fn whole(
    parsed: Result<Status<usize>, httparse::Error>,
    bytes: &[u8],
) -> Result<Option<usize>, Malformed> {
    match parsed {
        Ok(Status::Complete(len)) => Ok(Some(len)),
        Ok(Status::Partial) if bytes.len() < MAX_HEAD => Ok(None),
        Ok(Status::Partial) | Err(_) => Err(Malformed),
    }
}

struct Fields<'a>(&'a [Header<'a>]);

impl Fields<'_> {
    fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(move |field| field.name.eq_ignore_ascii_case(name))
            .flat_map(|field| str::from_utf8(field.value).unwrap_or("").split(','))
            .map(str::trim)
    }

    fn has(&self, name: &str) -> bool {
        self.values(name).next().is_some()
    }

    fn has_token(&self, name: &str, token: &str) -> bool {
        self.values(name)
            .any(|value| value.eq_ignore_ascii_case(token))
    }

    fn is_chunked(&self) -> bool {
        self.values("transfer-encoding")
            .last()
            .is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"))
    }

    fn content_length(&self) -> Result<Option<u64>, Malformed> {
        let mut lengths = self.values("content-length");
        let Some(first) = lengths.next() else {
            return Ok(None);
        };
        // `parse` would take a sign.
        if lengths.any(|other| other != first) || !first.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Malformed);
        }
        first.parse().map(Some).map_err(|_| Malformed)
    }
}

/// Finds the end of a body that arrives in pieces.
#[derive(Debug)]
pub(super) enum BodyEnd {
    Chunked(Chunked),
    /// This many bytes are to come.
    Length(u64),
    UntilClose,
}

/// Where in a chunked body (RFC 9112 §7.1) the next byte is.
#[derive(Debug)]
pub(super) enum Chunked {
    /// In the line that gives a chunk's size.
    Size {
        size: u64,
        line: Line,
    },
    /// This many bytes of a chunk are to come, its line end included.
    Data(u64),
    /// In a line of the trailer section.
    Trailer {
        line: Line,
    },
    Done,
}

/// How far a line has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    len: usize,
    /// In a chunk's size line: its digits are over.
    digits_over: bool,
}

const MAX_LINE: usize = 16 * 1024;

impl BodyEnd {
    fn chunked() -> Self {
        Self::Chunked(Chunked::size())
    }

    pub(super) const fn is_done(&self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunked(Chunked::Done))
    }

    pub(super) const fn is_until_close(&self) -> bool {
        matches!(self, Self::UntilClose)
    }

    /// How many of `bytes` belong to the body.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        match self {
            Self::UntilClose => Ok(bytes.len()),
            Self::Length(left) => Ok(take(left, bytes.len())),
            Self::Chunked(chunked) => chunked.advance(bytes),
        }
    }
}

impl Chunked {
    fn size() -> Self {
        Self::Size {
            size: 0,
            line: Line::default(),
        }
    }

    fn advance(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match self {
                Self::Done => break,
                Self::Data(left) => {
                    at += take(left, bytes.len() - at);
                    if *left == 0 {
                        *self = Self::size();
                    }
                    continue;
                }
                Self::Size { size, line } => {
                    if line.ends(byte)? {
                        *self = match *size {
                            _ if line.len == 0 => return Err(Malformed),
                            0 => Self::Trailer {
                                line: Line::default(),
                            },
                            size => Self::Data(size.checked_add(2).ok_or(Malformed)?),
                        };
                    } else {
                        line.digit(byte, size)?;
                    }
                }
                Self::Trailer { line } => {
                    if line.ends(byte)? {
                        let is_empty = line.len == 0;
                        *self = if is_empty {
                            Self::Done
                        } else {
                            Self::Trailer {
                                line: Line::default(),
                            }
                        };
                    }
                }
            }
            at += 1;
        }
        Ok(at)
    }
}

impl Line {
    /// Whether `byte` ends the line. A carriage return counts neither as content nor as an end.
    fn ends(&mut self, byte: u8) -> Result<bool, Malformed> {
        match byte {
            b'\n' => return Ok(true),
            b'\r' => {}
            _ => self.len += 1,
        }
        if self.len > MAX_LINE {
            return Err(Malformed);
        }
        Ok(false)
    }

    fn digit(&mut self, byte: u8, size: &mut u64) -> Result<(), Malformed> {
        if self.digits_over || byte == b'\r' {
            return Ok(());
        }
        match char::from(byte).to_digit(16) {
            Some(digit) => {
                *size = size
                    .checked_mul(16)
                    .and_then(|size| size.checked_add(u64::from(digit)))
                    .ok_or(Malformed)?;
            }
            // An extension, or blanks before one.
            None if self.len > 1 => self.digits_over = true,
            None => return Err(Malformed),
        }
        Ok(())
    }
}

fn take(left: &mut u64, available: usize) -> usize {
    let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(available);
    *left -= taken as u64;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long the request at the start of `bytes` is, when they come in pieces of `step`.
    fn request_len(bytes: &[u8], step: usize) -> Result<Option<usize>, Malformed> {
        let Some(mut head) = RequestHead::parse(bytes)? else {
            return Ok(None);
        };
        let len = body_len(&mut head.body, &bytes[head.len..], step)?;
        Ok(head.body.is_done().then_some(head.len + len))
    }

    fn body_len(body: &mut BodyEnd, bytes: &[u8], step: usize) -> Result<usize, Malformed> {
        let mut taken = 0;
        for piece in bytes.chunks(step) {
            let len = body.advance(piece)?;
            taken += len;
            if len < piece.len() {
                break;
            }
        }
        Ok(taken)
    }

    #[test]
    fn a_request_ends_where_its_framing_says() {
        for message in [
            "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nabcde",
            "POST / HTTP/1.1\r\nContent-Length: 5, 5\r\n\r\nabcde",
            "POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nA;x=\"1\"\r\n0\r\n\r\n0\r\n\r\n\r\n000 \r\nsum: 7\r\nb: c\r\n\r\n",
        ] {
            let mut bytes = message.as_bytes().to_vec();
            bytes.extend_from_slice(b"GET /next HTTP/1.1\r\n\r\n");
            for step in [1, 2, 3, 7, 4096] {
                let len = request_len(&bytes, step).unwrap();
                assert_eq!(len, Some(message.len()), "{message:?} by {step}");
            }
            for cut in 0..message.len() {
                let len = request_len(&bytes[..cut], 3).unwrap();
                assert_eq!(len, None, "{message:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn a_request_that_is_not_http_or_is_ambiguous_is_refused() {
        for message in [
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "\x16\x03\x01\x02\0\x01",
            "POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
            "POST / HTTP/1.1\r\ncontent-length: +1\r\n\r\na",
            "POST / HTTP/1.1\r\ncontent-length: \r\n\r\na",
            "POST / HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\na",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n10000000000000000\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        ] {
            assert!(request_len(message.as_bytes(), 5).is_err(), "{message:?}");
        }
    }

    #[test]
    fn heads_and_lines_are_bounded() {
        let long = format!("GET / HTTP/1.1\r\na: {}", "b".repeat(MAX_HEAD));
        assert!(request_len(long.as_bytes(), 4096).is_err());
        let long = format!(
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1;{}",
            "b".repeat(MAX_LINE)
        );
        assert!(request_len(long.as_bytes(), 4096).is_err());
    }

    #[test]
    fn a_response_ends_where_status_request_and_framing_say() {
        let ok = "HTTP/1.1 200 OK\r\n";
        let length = "content-length: 3\r\n\r\nabc";
        let chunked = "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        for (request, message, expected) in [
            (RequestKind::Other, format!("{ok}{length}"), Some(3)),
            (RequestKind::Other, format!("{ok}{chunked}"), Some(13)),
            (RequestKind::Other, format!("{ok}\r\nabc"), None),
            (RequestKind::Head, format!("{ok}{length}"), Some(0)),
            (RequestKind::Head, format!("{ok}{chunked}"), Some(0)),
            (
                RequestKind::Other,
                format!("HTTP/1.1 204 \r\n{length}"),
                Some(0),
            ),
            (
                RequestKind::Other,
                format!("HTTP/1.1 304 \r\n{length}"),
                Some(0),
            ),
            (
                RequestKind::Connect,
                format!("HTTP/1.1 400 \r\n{length}"),
                Some(3),
            ),
            (
                RequestKind::Other,
                format!("{ok}transfer-encoding: gzip\r\n{length}"),
                None,
            ),
        ] {
            let head = ResponseHead::parse(message.as_bytes(), request).unwrap();
            let head = head.expect("the head is whole");
            let Next::Body(mut body) = head.next else {
                panic!("{message:?} has a body");
            };
            let len = body_len(&mut body, &message.as_bytes()[head.len..], 4).unwrap();
            assert_eq!(body.is_done().then_some(len), expected, "{message:?}");
            assert_eq!(body.is_until_close(), expected.is_none(), "{message:?}");
        }
    }

    #[test]
    fn interim_heads_and_tunnels_are_told_apart() {
        let next = |request, status: &str| {
            let message = format!("HTTP/1.1 {status}\r\n\r\n");
            let head = ResponseHead::parse(message.as_bytes(), request).unwrap();
            head.expect("the head is whole").next
        };
        assert!(matches!(
            next(RequestKind::Other, "100 Continue"),
            Next::Head
        ));
        assert!(matches!(
            next(RequestKind::Other, "103 Early Hints"),
            Next::Head
        ));
        assert!(matches!(
            next(RequestKind::Other, "101 Switching"),
            Next::Tunnel
        ));
        assert!(matches!(next(RequestKind::Connect, "200 OK"), Next::Tunnel));
        assert!(matches!(next(RequestKind::Other, "200 OK"), Next::Body(_)));
    }
}
