//! I07: which keys there are, and which of them are one key.

use http::{HeaderName, HeaderValue, Request};
use steadfast_headers::{KeyError, KeyForm, KeyRules};
use steadfast_idempotency::Rejection;

use crate::kit::{Api, Content, Layer, Reply, Retry, order, request};

fn keyed(key: &[u8]) -> Request<Content> {
    request()
        .header("idempotency-key", HeaderValue::from_bytes(key).unwrap())
        .body(Content::new(["one"]))
        .unwrap()
}

#[track_caller]
fn assert_invalid(reply: &Reply, error: KeyError) {
    reply.assert_refusal(
        400,
        "idempotency_key_invalid",
        Retry::No,
        Rejection::KeyInvalid(error),
    );
}

#[tokio::test(start_paused = true)]
async fn i07_a_key_is_the_same_raw_and_quoted_and_with_space_around_it() {
    let api = Api::new(order);
    api.send(keyed(b"k-1_A")).await.assert_first(201, "order 1");
    for spelling in [&b"\"k-1_A\""[..], b" k-1_A\t", b"\t\"k-1_A\" "] {
        let repeat = api.send(keyed(spelling)).await;
        repeat.assert_replay(201, "order 1");
    }
    assert_eq!(api.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn i07_a_key_is_another_one_in_other_case() {
    let api = Api::new(order);
    api.send(keyed(b"abc")).await.assert_first(201, "order 1");
    api.send(keyed(b"ABC")).await.assert_first(201, "order 2");
}

#[tokio::test(start_paused = true)]
async fn i07_a_key_has_at_most_64_bytes_without_its_quotes() {
    let api = Api::new(order);
    let longest = "k".repeat(64);
    let reply = api.send(keyed(longest.as_bytes())).await;
    reply.assert_first(201, "order 1");
    let quoted = format!("\"{longest}\"");
    let reply = api.send(keyed(quoted.as_bytes())).await;
    reply.assert_replay(201, "order 1");

    for too_long in ["k".repeat(65), format!("\"{}\"", "k".repeat(65))] {
        let reply = api.send(keyed(too_long.as_bytes())).await;
        assert_invalid(&reply, KeyError::TooLong);
    }
    assert_eq!(api.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn i07_a_bad_key_never_reaches_the_store() {
    let api = Api::new(order);
    for (key, error) in [
        (&b""[..], KeyError::Empty),
        (b"\"\"", KeyError::Empty),
        (b" \t", KeyError::Empty),
        (b"a b", KeyError::BadByte),
        (b"a,b", KeyError::BadByte),
        (b"a:b", KeyError::BadByte),
        (b"a\tb", KeyError::BadByte),
        (b"caf\xe9", KeyError::BadByte),
        ("ключ".as_bytes(), KeyError::BadByte),
        (b"a\\b", KeyError::BadByte),
        (b"a\"b", KeyError::BadByte),
        (b"a/b", KeyError::BadByte),
        (b"a+b", KeyError::BadByte),
        // Items of RFC 9651 that are no strings.
        (b":YWJj:", KeyError::BadByte),
        (b"%\"abc\"", KeyError::BadByte),
        (b"@1659578233", KeyError::BadByte),
        (b"abc;v=1", KeyError::BadByte),
        // Strings that are not alone, or not whole.
        (b"\"a\";v=1", KeyError::Malformed),
        (b"\"a\", \"b\"", KeyError::Malformed),
        (b"\"a", KeyError::Malformed),
        (b"\"", KeyError::Malformed),
        (b"\"a\\x\"", KeyError::Malformed),
        (b"\"caf\xe9\"", KeyError::Malformed),
    ] {
        let reply = api.send(keyed(key)).await;
        assert_eq!(
            reply.rejection(),
            Some(Rejection::KeyInvalid(error)),
            "{}",
            key.escape_ascii()
        );
        assert_invalid(&reply, error);
    }
    assert_eq!(api.runs(), 0);
    assert_eq!(api.store.log(), []);
}

#[test]
fn i07_no_header_can_carry_a_nul() {
    HeaderValue::from_bytes(b"a\0b").unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn i07_a_refusal_never_shows_the_key() {
    let api = Api::new(order);
    let reply = api.send(keyed(b"sk live 1")).await;
    let shown = format!(
        "{:?} {:?} {:?}",
        reply.headers, reply.body, reply.extensions
    );
    assert!(!shown.contains("sk live"), "{shown}");
    assert!(!shown.contains("live 1"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn i07_the_lines_of_differently_spelt_names_count_together() {
    let api = Api::new(order);
    let request = request()
        .header("Idempotency-Key", "k1")
        .header("IDEMPOTENCY-KEY", "\"k1\"")
        .body(Content::new(["one"]));
    let reply = api.send(request.unwrap()).await;
    assert_invalid(&reply, KeyError::Repeated);
    assert_eq!(api.store.log(), []);
}

#[tokio::test(start_paused = true)]
async fn i07_other_rules_and_another_header_can_be_set() {
    let loose = |layer: Layer| {
        layer
            .key_rules(KeyRules::LOOSE)
            .key_header(HeaderName::from_static("x-request-key"))
    };
    let api = Api::with(loose, order);
    let keyed = || {
        request()
            .header("x-request-key", "invoice:inv_4192")
            .header("idempotency-key", "not, a, key")
            .body(Content::new(["one"]))
            .unwrap()
    };
    api.send(keyed()).await.assert_first(201, "order 1");
    api.send(keyed()).await.assert_replay(201, "order 1");
}

#[tokio::test(start_paused = true)]
async fn i07_one_spelling_of_a_key_can_be_asked_for() {
    for (form, admitted, refused) in [
        (KeyForm::Raw, &b"k1"[..], &b"\"k1\""[..]),
        (KeyForm::Quoted, b"\"k1\"", b"k1"),
    ] {
        let rules = KeyRules::DEFAULT.form(form);
        let api = Api::with(|layer| layer.key_rules(rules), order);
        assert_invalid(&api.send(keyed(refused)).await, KeyError::WrongForm);
        api.send(keyed(admitted)).await.assert_first(201, "order 1");
    }
}
