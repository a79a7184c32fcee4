use std::convert::Infallible;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderName, HeaderValue, Method, Request, Uri};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use serde::Deserialize;
use serde_json::Value;
use steadfast::{
    core::facts::OperationClass,
    headers::{IDEMPOTENCY_KEY, IdempotencyKey, KeyRules},
};

use crate::lines::BadLine;

pub(super) type Payload = UnsyncBoxBody<Bytes, Infallible>;

/// A call that a line asks for.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: Value,
    pub(super) request: Request<Payload>,
    pub(super) cancel_after_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default)]
    id: Value,
    method: Option<String>,
    url: String,
    headers: Option<Vec<(String, String)>>,
    body: Option<String>,
    body_base64: Option<String>,
    stream_base64: Option<Chunks>,
    key: Option<String>,
    repeatable: Option<bool>,
    cancel_after_ms: Option<u64>,
}

/// A body of unknown length, in one piece or in several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Chunks {
    One(String),
    Several(Vec<String>),
}

impl Call {
    pub(super) fn read(line: Value) -> Result<Self, BadLine> {
        let line = Line::deserialize(line)?;
        Ok(Self {
            request: line.request()?,
            id: line.id,
            cancel_after_ms: line.cancel_after_ms,
        })
    }
}

impl Line {
    fn request(&self) -> Result<Request<Payload>, BadLine> {
        let mut request = Request::new(self.payload()?);
        *request.uri_mut() = self.uri()?;
        if let Some(method) = &self.method {
            *request.method_mut() = Method::from_bytes(method.as_bytes())?;
        }
        for (name, value) in self.headers.iter().flatten() {
            let name = HeaderName::from_bytes(name.as_bytes())?;
            let value = HeaderValue::from_bytes(value.as_bytes())?;
            request.headers_mut().try_append(name, value)?;
        }
        if let Some(key) = &self.key {
            set_key(&mut request, key)?;
        }
        if let Some(class) = self.class() {
            request.extensions_mut().insert(class);
        }
        Ok(request)
    }

    fn uri(&self) -> Result<Uri, BadLine> {
        let uri: Uri = self.url.parse()?;
        match (uri.scheme_str(), uri.host()) {
            (Some("http"), Some(_)) => Ok(uri),
            _ => Err(BadLine::new("the url is not an absolute http:// URL")),
        }
    }

    fn payload(&self) -> Result<Payload, BadLine> {
        match (&self.body, &self.body_base64, &self.stream_base64) {
            (body, None, None) => {
                let bytes = Bytes::from(body.clone().unwrap_or_default());
                Ok(Full::new(bytes).boxed_unsync())
            }
            (None, Some(body), None) => Ok(Full::new(decode(body)?).boxed_unsync()),
            (None, None, Some(chunks)) => chunks.payload(),
            _ => Err(BadLine::new("the request has more than one body")),
        }
    }

    /// What a second identical request means, if the line says so.
    fn class(&self) -> Option<OperationClass> {
        self.repeatable.map(|repeatable| match repeatable {
            true => OperationClass::NaturallyIdempotent,
            false => OperationClass::NotRepeatable,
        })
    }
}

impl Chunks {
    fn payload(&self) -> Result<Payload, BadLine> {
        let chunks = match self {
            Self::One(chunk) => std::slice::from_ref(chunk),
            Self::Several(chunks) => chunks,
        };
        let frames = chunks
            .iter()
            .map(|chunk| Ok(Ok(Frame::data(decode(chunk)?))))
            .collect::<Result<Vec<Result<_, Infallible>>, BadLine>>()?;
        Ok(StreamBody::new(stream::iter(frames)).boxed_unsync())
    }
}

fn decode(base64: &str) -> Result<Bytes, BadLine> {
    Ok(BASE64_STANDARD.decode(base64)?.into())
}

/// Gives the call its key, as a caller does. A bad key is for the layers to refuse.
fn set_key<B>(request: &mut Request<B>, key: &str) -> Result<(), BadLine> {
    if let Ok(key) = IdempotencyKey::new(key, &KeyRules::LOOSE) {
        request.extensions_mut().insert(key);
    } else {
        let value = HeaderValue::from_bytes(&unmistakable(key))?;
        request.headers_mut().try_append(IDEMPOTENCY_KEY, value)?;
    }
    Ok(())
}

/// A bad key as a header that is bad for the same reason: a byte that no key may have must not turn into whitespace or
/// quotes around a good key, and need not be one that a header can carry.
fn unmistakable(key: &str) -> Vec<u8> {
    const NO_KEY_BYTE: u8 = 0xff;

    key.bytes()
        .map(|byte| match byte {
            b'"' | b'\\' | b',' => NO_KEY_BYTE,
            0x21..=0x7e => byte,
            _ => NO_KEY_BYTE,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steadfast::headers::KeyError;

    use super::*;

    #[test]
    fn i07_a_bad_key_stays_as_bad_as_it_was() {
        let too_long = "k".repeat(256);
        for (key, reason) in [
            ("", KeyError::Empty),
            (" k ", KeyError::BadByte),
            ("\"k\"", KeyError::BadByte),
            ("a\r\nb: c", KeyError::BadByte),
            ("k\u{e9}", KeyError::BadByte),
            (&too_long, KeyError::TooLong),
        ] {
            let mut request = Request::new(());
            set_key(&mut request, key).map_err(|bad| bad.error).unwrap();
            let read = KeyRules::LOOSE.from_headers(request.headers(), &IDEMPOTENCY_KEY);
            assert_eq!(read, Err(reason), "{key:?}");
        }
    }

    #[test]
    fn what_is_no_request_is_a_bad_line() {
        for line in [
            json!([]),
            json!({"method": "GET"}),
            json!({"url": "https://127.0.0.1/"}),
            json!({"url": "/relative"}),
            json!({"url": "http://127.0.0.1/", "metod": "GET"}),
            json!({"url": "http://127.0.0.1/", "method": "G T"}),
            json!({"url": "http://127.0.0.1/", "headers": [["a b", "c"]]}),
            json!({"url": "http://127.0.0.1/", "headers": [["a", "b\n"]]}),
            json!({"url": "http://127.0.0.1/", "body": "a", "body_base64": "YQ=="}),
            json!({"url": "http://127.0.0.1/", "body_base64": "?"}),
            json!({"url": "http://127.0.0.1/", "stream_base64": ["YQ==", "?"]}),
        ] {
            assert!(Call::read(line.clone()).is_err(), "{line}");
        }
    }
}
