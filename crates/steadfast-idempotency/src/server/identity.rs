use http::request::Parts;
use sha2::{Digest as _, Sha256};
use steadfast_headers::IdempotencyKey;

use super::scope::{Scope, TenantDigest};
use crate::store::{Fingerprint, RecordId};

/// Part of what is hashed, so that no version mistakes another version's record for its own.
const VERSION: &[u8] = b"steadfast-idempotency 1";

/// The record that a key names: (tenant, method, endpoint, key), each with its length in front, so that no two of them
/// run into each other (I10).
pub(super) fn record_id(
    scope: &Scope,
    tenant: TenantDigest,
    parts: &Parts,
    key: &IdempotencyKey,
) -> RecordId {
    let digest = Fields::new()
        .field(&tenant)
        .field(parts.method.as_str().as_bytes())
        .field(scope.endpoint_of(parts).as_bytes())
        .field(key.as_bytes())
        .digest();
    RecordId::new(tenant, digest)
}

/// What a request asks for: method, endpoint, path and query as the client sent them, and the content.
pub(super) fn fingerprint(scope: &Scope, parts: &Parts, content: &[u8]) -> Fingerprint {
    let uri = scope.uri_of(parts);
    let digest = Fields::new()
        .field(parts.method.as_str().as_bytes())
        .field(scope.endpoint_of(parts).as_bytes())
        .field(uri.path().as_bytes())
        .field(uri.query().unwrap_or_default().as_bytes())
        .field(content)
        .digest();
    Fingerprint::new(digest)
}

struct Fields(Sha256);

impl Fields {
    fn new() -> Self {
        Self(Sha256::new()).field(VERSION)
    }

    fn field(mut self, field: &[u8]) -> Self {
        self.0.update((field.len() as u64).to_be_bytes());
        self.0.update(field);
        self
    }

    fn digest(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use http::Request;
    use proptest::prelude::*;
    use steadfast_headers::KeyRules;

    use super::*;

    fn parts(method: &str, uri: &str) -> Parts {
        let request = Request::builder().method(method).uri(uri);
        request.body(()).unwrap().into_parts().0
    }

    fn key(key: &str) -> IdempotencyKey {
        IdempotencyKey::new(key, &KeyRules::LOOSE).unwrap()
    }

    #[test]
    fn i10_tenant_method_endpoint_and_key_each_make_another_record() {
        let scope = Scope::global();
        let id =
            |tenant, method, uri, k| record_id(&scope, [tenant; 32], &parts(method, uri), &key(k));
        let one = id(1, "POST", "/a", "k");
        assert_eq!(one, id(1, "POST", "/a", "k"));
        for other in [
            id(2, "POST", "/a", "k"),
            id(1, "PATCH", "/a", "k"),
            id(1, "POST", "/b", "k"),
            id(1, "POST", "/a", "K"),
        ] {
            assert!(one != other);
        }
        assert_eq!(one.tenant(), &[1; 32]);
    }

    #[test]
    fn i10_fields_do_not_run_into_each_other() {
        let scope = Scope::global();
        let id = |uri, k| record_id(&scope, [0; 32], &parts("POST", uri), &key(k));
        assert!(id("/a", "bc") != id("/ab", "c"));
    }

    #[test]
    fn i09_path_query_and_body_make_another_request() {
        let scope = Scope::global().endpoint(|_| Cow::Borrowed("orders"));
        let of = |uri, body: &str| fingerprint(&scope, &parts("POST", uri), body.as_bytes());
        let one = of("/orders/1?a", "x");
        assert_eq!(one, of("/orders/1?a", "x"));
        for other in [
            of("/orders/2?a", "x"),
            of("/orders/1?b", "x"),
            of("/orders/1?a", "y"),
        ] {
            assert!(one != other);
        }
    }

    proptest! {
        #[test]
        fn i09_different_bodies_have_different_fingerprints(a: Vec<u8>, b: Vec<u8>) {
            let scope = Scope::global();
            let parts = parts("POST", "/");
            let same = fingerprint(&scope, &parts, &a) == fingerprint(&scope, &parts, &b);
            prop_assert_eq!(same, a == b);
        }
    }
}
