use std::{
    fmt,
    time::{Duration, SystemTime},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use serde::Deserialize;
use serde_json::Value;
use steadfast::core::Clock;
use steadfast::signature::{DEFAULT_KEY_ID, Secret};

use crate::{
    lines::BadLine,
    scheme::{SQUARE, Side, SignatureScheme},
};

/// A request and the key that signs it or did.
pub(crate) struct Message {
    pub(crate) scheme: SignatureScheme,
    pub(crate) key_id: String,
    pub(crate) secret: Secret,
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
    pub(crate) clock: Clock,
}

/// What a line has beside its secret.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    scheme: String,
    key_id: Option<String>,
    method: Option<String>,
    url: Option<String>,
    #[serde(default)]
    headers: Vec<(String, String)>,
    #[serde(default)]
    body_base64: String,
    now: Option<u64>,
}

impl Message {
    pub(crate) fn read(mut line: Value, side: Side) -> Result<Self, BadLine> {
        // Errors quote what they are about, and shall not get to see it.
        let secret = line
            .as_object_mut()
            .ok_or_else(|| BadLine::new("the line is not an object"))?
            .remove("secret");
        let Some(Value::String(secret)) = secret else {
            return Err(BadLine::new("the secret is missing, or not a string"));
        };
        let line = Line::deserialize(line)?;
        if line.scheme == SQUARE && line.url.is_none() {
            return Err(BadLine::new("the scheme signs the url, which is missing"));
        }
        let url = line.url.as_deref().unwrap_or("/");
        let scheme = SignatureScheme::named(&line.scheme, url)
            .ok_or_else(|| BadLine::new("there is no such scheme"))?;
        Ok(Self {
            secret: scheme.secret(&secret, side)?,
            scheme,
            key_id: line.key_id.unwrap_or_else(|| DEFAULT_KEY_ID.to_owned()),
            method: match line.method {
                Some(method) => Method::from_bytes(method.as_bytes())?,
                None => Method::GET,
            },
            uri: url.parse()?,
            headers: line.headers,
            body: BASE64_STANDARD.decode(line.body_base64)?.into(),
            clock: clock(line.now)?,
        })
    }

    /// The headers, as a message carries them.
    ///
    /// # Errors
    ///
    /// If no message can carry them.
    pub(crate) fn headers(&self) -> Result<HeaderMap, BadLine> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let name = HeaderName::from_bytes(name.as_bytes())?;
            headers.try_append(name, HeaderValue::from_bytes(value.as_bytes())?)?;
        }
        Ok(headers)
    }

    /// The request, with these headers.
    pub(crate) fn request<B>(&self, headers: HeaderMap, body: B) -> Request<B> {
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = headers;
        request
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("scheme", &self.scheme)
            .field("key_id", &self.key_id)
            .finish_non_exhaustive()
    }
}

/// A clock that stands still at so many seconds after the beginning of 1970, or the system's.
fn clock(now: Option<u64>) -> Result<Clock, BadLine> {
    let Some(now) = now else {
        return Ok(Clock::system());
    };
    let now = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(now));
    let now = now.ok_or_else(|| BadLine::new("now is past the end of time"))?;
    Ok(Clock::from_fn(move || now))
}
