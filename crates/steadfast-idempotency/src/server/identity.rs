use http::request::Parts;
use sha2::{Digest as _, Sha256};
use steadfast_headers::IdempotencyKey;

use super::scope::{Scope, TenantDigest};
use crate::store::{Fingerprint, RecordId};

/// Part of what is hashed, so that no version mistakes another version's record for its own.
const VERSION: u8 = 1;

/// The record that a key names: (tenant, method, endpoint, key) (I10).
pub(super) fn record_id(
    scope: &Scope,
    tenant: TenantDigest,
    parts: &Parts,
    key: &IdempotencyKey,
) -> RecordId {
    RecordId::new(
        tenant,
        digest([
            &tenant,
            parts.method.as_str().as_bytes(),
            scope.endpoint_of(parts).as_bytes(),
            key.as_bytes(),
        ]),
    )
}

/// What a request asks for: method, endpoint, path and query as the client sent them, and the content.
pub(super) fn fingerprint(scope: &Scope, parts: &Parts, content: &[u8]) -> Fingerprint {
    let uri = scope.uri_of(parts);
    Fingerprint::new(digest([
        parts.method.as_str().as_bytes(),
        scope.endpoint_of(parts).as_bytes(),
        uri.path().as_bytes(),
        uri.query().unwrap_or_default().as_bytes(),
        content,
    ]))
}

/// The lengths of all fields come first, so that no two fields run into each other.
fn digest<const N: usize>(fields: [&[u8]; N]) -> [u8; 32] {
    let lengths = fields.map(|field| (field.len() as u64).to_be_bytes());
    let mut hash = Sha256::new();
    hash.update([VERSION]);
    hash.update(lengths.as_flattened());
    for field in fields {
        hash.update(field);
    }
    hash.finalize().into()
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
