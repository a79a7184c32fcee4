//! Header fields of hostile senders, read strictly.

use http::{HeaderMap, HeaderName};

use crate::Reason;

/// No field of a signature is longer.
const MAX_FIELD: usize = 4096;
/// No id and no nonce is longer.
const MAX_ID: usize = 256;

/// The one value of a field: visible ASCII and blanks inside, and there once.
pub(crate) fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<&'a str, Reason> {
    optional(headers, name)?.ok_or(Reason::Missing)
}

/// The one value of a field that may be missing.
pub(crate) fn optional<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, Reason> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() || value.is_empty() || value.len() > MAX_FIELD {
        return Err(Reason::Malformed);
    }
    value.to_str().map(Some).map_err(|_| Reason::Malformed)
}

/// The one value of a field that names something: visible ASCII without blanks.
pub(crate) fn id<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Reason> {
    let value = optional(headers, name)?;
    match value {
        Some(id) if !is_id(id) => Err(Reason::Malformed),
        value => Ok(value),
    }
}

pub(crate) fn is_id(id: &str) -> bool {
    (1..=MAX_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
}
