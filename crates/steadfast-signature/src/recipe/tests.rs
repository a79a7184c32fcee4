mod hostile;
mod recipes;
mod round_trip;
mod vectors;

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, request::Parts};
use steadfast_core::{Clock, facts::Verified};

use crate::{HmacScheme, Reason, Scheme, Secrets, verify};

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn post(uri: &str, headers: &[(&str, &str)]) -> Parts {
    let mut head = Request::post(uri).body(()).unwrap().into_parts().0;
    for (name, value) in headers {
        let name: HeaderName = name.parse().unwrap();
        head.headers
            .append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    head
}

fn judge(
    scheme: &dyn Scheme,
    secrets: impl Into<Secrets>,
    head: &Parts,
    body: &str,
    now: SystemTime,
) -> Result<Verified, Reason> {
    let body = Bytes::copy_from_slice(body.as_bytes());
    verify(
        scheme,
        &secrets.into(),
        head,
        &body,
        &Clock::from_fn(move || now),
    )
}

/// Every recipe that is ready-made.
fn presets() -> Vec<HmacScheme> {
    vec![
        HmacScheme::botix(),
        HmacScheme::coinbase(),
        #[cfg(feature = "ed25519")]
        HmacScheme::discord(),
        HmacScheme::dropbox(),
        HmacScheme::elevenlabs(),
        HmacScheme::github(),
        HmacScheme::intercom(),
        HmacScheme::lemon_squeezy(),
        HmacScheme::linear(),
        HmacScheme::meta(),
        HmacScheme::okx(),
        HmacScheme::paddle(),
        HmacScheme::pagerduty(),
        HmacScheme::payments(),
        HmacScheme::shopify(),
        HmacScheme::slack(),
        HmacScheme::square("https://example.com/hook"),
        HmacScheme::standard_webhooks(),
        HmacScheme::stripe(),
        HmacScheme::svix(),
        HmacScheme::vercel(),
        HmacScheme::webflow(),
        HmacScheme::webhook_signature(),
        HmacScheme::woocommerce(),
        HmacScheme::workos(),
        HmacScheme::zoom(),
    ]
}

/// Changes the value of a header.
fn change(headers: &mut HeaderMap, name: &str, change: impl FnOnce(&str) -> String) {
    let value = change(headers[name].to_str().unwrap());
    let name: HeaderName = name.parse().unwrap();
    headers.insert(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
}
