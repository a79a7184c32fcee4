use std::time::{Duration, SystemTime};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderValue, Request, Uri, request::Parts};
use proptest::prelude::*;
use sfv::{ListEntry, Parser};
use steadfast_core::Clock;

use super::{
    component::{Component, Head},
    digest::{dictionary, named, of},
    scheme::base,
};
use crate::{
    Algorithm, BodyDigest, MessageSignatureError, MessageSignatures, Reason, Scheme as _, Secret,
    SignError, SigningKey, Stamp, Tolerance, scheme::Content, verify,
};

const NOW: u64 = 1_700_000_000;

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn secret() -> Secret {
    Secret::from_bytes("a secret of 26 bytes or so").unwrap()
}

fn post(uri: &str) -> Parts {
    Request::post(uri).body(()).unwrap().into_parts().0
}

fn signed(scheme: &MessageSignatures, body: &'static str) -> Parts {
    let mut head = post("https://example.com/foo?a=b");
    let key = SigningKey::new("default", secret());
    scheme
        .sign(&mut head, &body.into(), &key, &Stamp::random(at(NOW)))
        .unwrap();
    head
}

fn judge_at(
    scheme: &MessageSignatures,
    head: &Parts,
    body: &'static str,
    now: u64,
) -> Result<(), Reason> {
    let clock = Clock::from_fn(move || at(now));
    verify(scheme, &secret().into(), head, &body.into(), &clock).map(|_| ())
}

fn judge(scheme: &MessageSignatures, head: &Parts, body: &'static str) -> Result<(), Reason> {
    judge_at(scheme, head, body, NOW)
}

fn set(head: &mut Parts, name: &'static str, value: &str) {
    head.headers
        .insert(name, HeaderValue::from_str(value).unwrap());
}

#[test]
fn v23_rfc_9421_b_2_5() {
    let key =
        "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ==";
    let secret = Secret::from_bytes(STANDARD.decode(key).unwrap()).unwrap();
    let mut head = post("/foo?param=Value&Pet=dog");
    set(&mut head, "host", "example.com");
    set(&mut head, "date", "Tue, 20 Apr 2021 02:07:55 GMT");
    set(&mut head, "content-type", "application/json");
    set(
        &mut head,
        "signature-input",
        r#"sig-b25=("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret""#,
    );
    let inputs = dictionary(&head.headers, &"signature-input".parse().unwrap()).unwrap();
    let ListEntry::InnerList(input) = &inputs["sig-b25"] else {
        panic!("it is an inner list");
    };
    let covered = ["date", "@authority", "content-type"];
    let covered = covered.map(|name| Component::parse(name).unwrap());
    let parts = Head {
        method: &head.method,
        uri: &head.uri,
        headers: &head.headers,
    };
    let base = base(&covered, input, parts).unwrap();
    assert_eq!(
        base,
        "\"date\": Tue, 20 Apr 2021 02:07:55 GMT\n\
         \"@authority\": example.com\n\
         \"content-type\": application/json\n\
         \"@signature-params\": (\"date\" \"@authority\" \"content-type\");created=1618884473;keyid=\"test-shared-secret\""
    );
    let signature = Content::head(base.into()).signature(Algorithm::HmacSha256, &secret, b"");
    assert_eq!(
        STANDARD.encode(signature.unwrap().signature()),
        "pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8="
    );
}

#[test]
fn v25_rfc_9530() {
    let body = r#"{"hello": "world"}"#;
    let mut head = post("/");
    let sha256 = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:";
    assert_eq!(of(body.as_bytes()), sha256);
    let sha512 = "sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:";
    set(&mut head, "content-digest", sha256);
    assert!(matches!(named(&head.headers), Ok(BodyDigest::Sha256(_))));
    set(&mut head, "content-digest", &format!("{sha256}, {sha512}"));
    assert!(matches!(named(&head.headers), Ok(BodyDigest::Sha512(_))));
    for bad in [
        "md5=:AAAA:",
        "sha-256=:AAAA:",
        "sha-256=abc",
        "sha-256",
        "(",
    ] {
        set(&mut head, "content-digest", bad);
        assert_eq!(named(&head.headers), Err(Reason::Malformed), "{bad}");
    }
}

#[test]
fn what_is_signed_is_verified_and_the_body_counts() {
    let scheme = MessageSignatures::hmac_sha256();
    let head = signed(&scheme, "one");
    assert_eq!(judge(&scheme, &head, "one"), Ok(()));
    // Pitfall 31: a digest that is listed is computed again.
    assert_eq!(judge(&scheme, &head, "two"), Err(Reason::Mismatch));
    let mut swapped = head.clone();
    set(&mut swapped, "content-digest", &of(b"two"));
    assert_eq!(judge(&scheme, &swapped, "two"), Err(Reason::Mismatch));
    for uri in [
        "https://example.com/fo?a=b",
        "https://example.com/foo?a=c",
        "https://example.org/foo?a=b",
    ] {
        let mut other = head.clone();
        other.uri = uri.parse::<Uri>().unwrap();
        assert_eq!(
            judge(&scheme, &other, "one"),
            Err(Reason::Mismatch),
            "{uri}"
        );
    }
    // As a server sees it, behind whatever ended TLS.
    let mut received = head;
    received.uri = "/foo?a=b".parse::<Uri>().unwrap();
    assert_eq!(judge(&scheme, &received, "one"), Err(Reason::Missing));
    set(&mut received, "host", "EXAMPLE.com:443");
    assert_eq!(judge(&scheme, &received, "one"), Ok(()));
    received
        .headers
        .append("host", HeaderValue::from_static("example.com"));
    assert_eq!(judge(&scheme, &received, "one"), Err(Reason::Malformed));
}

#[test]
fn sha_512_is_computed_again_too() {
    use sha2::Digest as _;
    let scheme = MessageSignatures::hmac_sha256();
    let mut head = signed(&scheme, "one");
    let input = head.headers["signature-input"].to_str().unwrap()["sig1=".len()..].to_owned();
    let digest = STANDARD.encode(sha2::Sha512::digest("one"));
    set(&mut head, "content-digest", &format!("sha-512=:{digest}:"));
    let list: sfv::List = Parser::new(input.as_str()).parse().unwrap();
    let [ListEntry::InnerList(list)] = list.as_slice() else {
        panic!("it is one inner list");
    };
    let covered: Vec<_> = ["@method", "@authority", "@path", "@query", "content-digest"]
        .map(|name| Component::parse(name).unwrap())
        .into();
    let parts = Head {
        method: &head.method,
        uri: &head.uri,
        headers: &head.headers,
    };
    let base = base(&covered, list, parts).unwrap();
    let signature = Content::head(base.into()).signature(Algorithm::HmacSha256, &secret(), b"");
    let signature = STANDARD.encode(signature.unwrap().signature());
    set(&mut head, "signature", &format!("sig1=:{signature}:"));
    assert_eq!(judge(&scheme, &head, "one"), Ok(()));
    assert_eq!(judge(&scheme, &head, "two"), Err(Reason::Mismatch));
}

#[test]
fn created_and_expires_are_judged() {
    let tolerance = Tolerance::new(Duration::from_secs(10), Duration::from_secs(2));
    let scheme = MessageSignatures::hmac_sha256().tolerance(tolerance);
    let head = signed(&scheme, "one");
    assert_eq!(judge_at(&scheme, &head, "one", NOW + 10), Ok(()));
    assert_eq!(
        judge_at(&scheme, &head, "one", NOW + 11),
        Err(Reason::Stale)
    );
    assert_eq!(judge_at(&scheme, &head, "one", NOW - 2), Ok(()));
    assert_eq!(judge_at(&scheme, &head, "one", NOW - 3), Err(Reason::Early));
    let params = |params: &str| {
        let text = format!("(){params}");
        let list: sfv::List = Parser::new(text.as_str()).parse().unwrap();
        let [ListEntry::InnerList(list)] = list.as_slice() else {
            panic!("it is one inner list");
        };
        scheme.window_of(list).map(|window| window.until())
    };
    assert_eq!(params(";created=100;expires=105"), Ok(at(105)));
    assert_eq!(params(";created=100;expires=200"), Ok(at(110)));
    assert_eq!(params(";created=100;expires=99"), Err(Reason::Malformed));
    assert_eq!(params(";created=-1"), Err(Reason::Malformed));
    assert_eq!(params(";created=\"100\""), Err(Reason::Malformed));
    assert_eq!(params(";expires=100"), Err(Reason::Missing));
}

#[test]
fn pitfalls_5_6_33_what_is_missing_doubled_or_unknown_is_refused() {
    let scheme = MessageSignatures::hmac_sha256();
    let head = signed(&scheme, "one");
    let input = head.headers["signature-input"].to_str().unwrap().to_owned();
    let signature = head.headers["signature"].to_str().unwrap().to_owned();
    for name in ["signature", "signature-input", "content-digest"] {
        let mut without = head.clone();
        without.headers.remove(name);
        assert_eq!(
            judge(&scheme, &without, "one"),
            Err(Reason::Missing),
            "{name}"
        );
    }
    for (bad, reason) in [
        (input.replace("\"@method\" ", ""), Reason::Missing),
        (
            input.replace("\"@method\" ", "\"@method\" \"@method\" "),
            Reason::Malformed,
        ),
        (
            input.replace("\"@method\"", "\"@method\";req"),
            Reason::Malformed,
        ),
        (
            input.replace("\"@method\"", "\"@method\" \"@status\""),
            Reason::Malformed,
        ),
        (
            input.replace("\"@method\"", "\"@method\" \"Date\""),
            Reason::Malformed,
        ),
        (
            input.replace("\"@method\"", "\"@method\" \"signature\""),
            Reason::Malformed,
        ),
        (
            input.replace("\"@method\"", "\"@method\" \"date\""),
            Reason::Missing,
        ),
        (input.replace("\"@method\"", "@method"), Reason::Malformed),
        (input.replace("hmac-sha256", "ed25519"), Reason::Malformed),
        (input.replace("sig1", "sig2"), Reason::Missing),
        (format!("{input}, sig2=()"), Reason::Malformed),
        ("sig1=1".to_owned(), Reason::Malformed),
        (input.replace("nonce=\"", "nonce=\"x"), Reason::Mismatch),
    ] {
        let mut other = head.clone();
        set(&mut other, "signature-input", &bad);
        assert_eq!(judge(&scheme, &other, "one"), Err(reason), "{bad}");
    }
    for bad in ["sig1=:AAAA:", "sig1=\"x\"", "sig1=()", "sig1"] {
        let mut other = head.clone();
        set(&mut other, "signature", bad);
        assert_eq!(
            judge(&scheme, &other, "one"),
            Err(Reason::Malformed),
            "{bad}"
        );
    }
    // A label picks one of several.
    let labelled = scheme.label("sig1").unwrap();
    let mut several = head;
    set(
        &mut several,
        "signature-input",
        &format!("proxy=();created=1, {input}"),
    );
    set(
        &mut several,
        "signature",
        &format!("proxy=:AAAA:, {signature}"),
    );
    assert_eq!(judge(&labelled, &several, "one"), Ok(()));
}

#[test]
fn what_else_is_covered_has_to_be_there() {
    let scheme = MessageSignatures::hmac_sha256;
    let more = scheme().also_covered(["x-tenant"]).unwrap();
    let mut head = post("https://example.com/");
    let stamp = Stamp::random(at(NOW));
    let sign = |head: &mut Parts| more.sign(head, &Bytes::new(), &secret().into(), &stamp);
    assert_eq!(sign(&mut head).unwrap_err(), SignError::MissingHeader);
    set(&mut head, "x-tenant", "t1");
    sign(&mut head).unwrap();
    assert_eq!(judge(&more, &head, ""), Ok(()));
    set(&mut head, "x-tenant", "t2");
    assert_eq!(judge(&more, &head, ""), Err(Reason::Mismatch));
    assert_eq!(
        judge(&more, &signed(&scheme(), "one"), "one"),
        Err(Reason::Missing)
    );
    for bad in ["@method", "X-Tenant", "@status", "signature", ""] {
        let error = scheme().also_covered([bad]).unwrap_err();
        assert_eq!(error, MessageSignatureError::Component, "{bad}");
    }
    assert_eq!(
        scheme().label("Sig").unwrap_err(),
        MessageSignatureError::Label
    );
}

#[cfg(feature = "ed25519")]
#[test]
fn ed25519_signs_with_one_key_and_is_verified_with_the_other() {
    let scheme = MessageSignatures::ed25519();
    let public = ed25519_dalek::SigningKey::from_bytes(&[3; 32]).verifying_key();
    let public = Secret::ed25519_public(&public.to_bytes()).unwrap();
    let key = SigningKey::new("default", Secret::ed25519_private(&[3; 32]));
    let mut head = post("https://example.com/foo");
    scheme
        .sign(&mut head, &"one".into(), &key, &Stamp::random(at(NOW)))
        .unwrap();
    let clock = Clock::from_fn(|| at(NOW));
    let judge = |secret: &Secret, body: &'static str| {
        verify(&scheme, &secret.clone().into(), &head, &body.into(), &clock).map(|_| ())
    };
    assert_eq!(judge(&public, "one"), Ok(()));
    assert_eq!(judge(&public, "two"), Err(Reason::Mismatch));
    assert_eq!(
        judge(&secret(), "one"),
        Err(Reason::Mismatch),
        "a MAC key is none"
    );
}

proptest! {
    #[test]
    fn no_header_panics(input: Vec<u8>, signature: Vec<u8>, digest: Vec<u8>) {
        let mut head = post("/");
        for (name, value) in [
            ("signature-input", input), ("signature", signature), ("content-digest", digest),
        ] {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                head.headers.insert(name, value);
            }
        }
        prop_assert!(judge(&MessageSignatures::hmac_sha256(), &head, "").is_err());
    }

    #[test]
    fn no_input_panics(
        items in r#"("[@a-z-]{0,12}"(;[a-z]{1,3})? ?){0,6}"#,
        params in r#"(;[a-z]{1,7}(=("[a-z]{0,4}"|-?[0-9]{1,15}|:[A-Za-z+/]{0,8}=?:))?){0,4}"#,
    ) {
        let scheme = MessageSignatures::hmac_sha256();
        let mut head = signed(&scheme, "one");
        set(&mut head, "signature-input", &format!("sig1=({items}){params}"));
        prop_assert!(judge(&scheme, &head, "one").is_err());
    }
}
