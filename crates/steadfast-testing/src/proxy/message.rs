//! What the heads of HTTP/1 messages say of where the messages end (RFC 9112 §6).

use std::str;

use httparse::{EMPTY_HEADER, Header, Status};

use super::framing::BodyEnd;

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

#[cfg(test)]
mod tests {
    use super::{super::framing::MAX_LINE, *};

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
