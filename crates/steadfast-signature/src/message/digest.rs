//! `Content-Digest` (RFC 9530).

use http::{HeaderMap, HeaderName};
use sfv::{BareItem, Dictionary, ListEntry, Parser};
use sha2::{Digest as _, Sha256};

use crate::{BodyDigest, Encoding, Reason};

pub(super) const CONTENT_DIGEST: HeaderName = HeaderName::from_static("content-digest");

/// The dictionary that a field is, over all its lines.
pub(super) fn dictionary(headers: &HeaderMap, name: &HeaderName) -> Result<Dictionary, Reason> {
    const MAX: usize = 8 * 1024;
    let mut joined = String::new();
    for value in headers.get_all(name) {
        let value = value.to_str().map_err(|_| Reason::Malformed)?;
        if joined.len() + value.len() > MAX {
            return Err(Reason::Malformed);
        }
        if !joined.is_empty() {
            joined.push_str(", ");
        }
        joined.push_str(value);
    }
    if joined.is_empty() {
        return Err(Reason::Missing);
    }
    Parser::new(joined.as_str())
        .parse()
        .map_err(|_| Reason::Malformed)
}

/// The digest that the field names: SHA-512 where it is there, else SHA-256. Others are not taken for one.
pub(super) fn named(headers: &HeaderMap) -> Result<BodyDigest, Reason> {
    let digests = dictionary(headers, &CONTENT_DIGEST)?;
    let bytes = |name: &str| match digests.get(name) {
        Some(ListEntry::Item(item)) => match &item.bare_item {
            BareItem::ByteSequence(bytes) => Some(bytes.as_slice()),
            _ => None,
        },
        _ => None,
    };
    let malformed = |_| Reason::Malformed;
    if let Some(bytes) = bytes("sha-512") {
        return bytes.try_into().map(BodyDigest::Sha512).map_err(malformed);
    }
    let bytes = bytes("sha-256").ok_or(Reason::Malformed)?;
    bytes.try_into().map(BodyDigest::Sha256).map_err(malformed)
}

/// The field for this body.
pub(super) fn of(body: &[u8]) -> String {
    format!(
        "sha-256=:{}:",
        Encoding::Base64.encode(&Sha256::digest(body))
    )
}
