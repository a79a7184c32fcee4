use http::HeaderMap;
use serde::Serialize;
use serde_json::Value;
use steadfast::signature::{Scheme as _, SigningKey, Stamp};

use crate::{
    failure::Failure,
    lines::{self, BadLine},
    scheme::Side,
    signed::Message,
};

/// The headers of a signed request.
#[derive(Debug, Serialize)]
struct Signed {
    headers: Vec<(String, String)>,
}

/// Answers each request with the headers that it has when it is signed.
pub(crate) async fn run() -> Result<(), Failure> {
    lines::answer(async |line| sign(line)).await
}

fn sign(line: Value) -> Result<Signed, BadLine> {
    let message = Message::read(line, Side::Sign)?;
    let request = message.request(message.headers()?, ());
    let (mut head, ()) = request.into_parts();
    let key = SigningKey::new(message.key_id, message.secret);
    let stamp = Stamp::random(message.clock.now());
    let scheme = message.scheme.into_scheme();
    scheme.sign(&mut head, &message.body, &key, &stamp)?;
    Ok(Signed::new(&head.headers))
}

impl Signed {
    fn new(headers: &HeaderMap) -> Self {
        Self {
            headers: lines::pairs(headers),
        }
    }
}
