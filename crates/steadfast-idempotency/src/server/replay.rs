use http::{HeaderValue, Response, header};
use steadfast_core::{Body, facts::Replayed};

use super::{config::Config, record, rejection::Rejection};
use crate::store::Record;

/// Answers with what was stored (I08).
pub(super) fn replay<B: http_body::Body>(config: &Config, record: &Record) -> Response<Body<B>> {
    let Some(stored) = record::decode(record) else {
        tracing::warn!(
            event = "record_unreadable",
            "an idempotency record cannot be read"
        );
        return config.reject(Rejection::RecordUnreadable);
    };
    tracing::debug!("idempotent call replayed");
    let mut response = stored.map(Body::full);
    let headers = response.headers_mut();
    let (name, value) = &config.replayed;
    headers.insert(name.clone(), value.clone());
    // It is the answer to this request alone, whatever the first one allowed.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.extensions_mut().insert(Replayed(true));
    response
}
