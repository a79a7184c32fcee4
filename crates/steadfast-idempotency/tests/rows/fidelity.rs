//! I08: what is stored of an answer comes back as it was.

use http::{HeaderMap, HeaderName, HeaderValue, Response};
use steadfast_core::ErrorEnvelope;
use steadfast_idempotency::{Rejection, StoredHeaders};

use crate::kit::{Api, Content, Fault, Layer, Op, Reply, order};

/// The first answer with these headers, and its replay.
async fn answered_twice(
    configure: impl FnOnce(Layer) -> Layer,
    headers: &'static [(&'static str, &'static [u8])],
) -> (Reply, Reply) {
    let api = Api::with(configure, move |_| async move {
        let mut response = Response::new(Content::new([&b"\xff\x00\x80"[..]]).exact());
        *response.status_mut() = http::StatusCode::CREATED;
        for (name, value) in headers {
            let value = HeaderValue::from_bytes(value).unwrap();
            let name = HeaderName::from_static(name);
            response.headers_mut().append(name, value);
        }
        Ok(response)
    });
    let replies = (api.post("k1", "one").await, api.post("k1", "one").await);
    assert_eq!(api.runs(), 1);
    replies
}

/// The headers in order, without those that mark a replay.
fn stored(headers: &HeaderMap) -> Vec<(&str, &[u8])> {
    headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .filter(|(name, _)| !["idempotent-replayed", "cache-control"].contains(name))
        .collect()
}

const KEPT: &[(&str, &[u8])] = &[
    ("location", b"/o/1"),
    ("link", b"</a>; rel=\"next\""),
    ("link", b"</b>; rel=\"last\""),
    ("content-type", b"application/octet-stream"),
    ("content-encoding", b"gzip"),
    ("content-disposition", b"attachment; filename=\"a, b.txt\""),
    ("content-language", b"de"),
    ("etag", b"\"v1\""),
    ("vary", b"accept"),
    ("x-latin", b"caf\xe9"),
    ("x-empty", b""),
    ("x-list", b"1"),
    ("x-list", b"2"),
    ("x-list", b"1"),
];

#[tokio::test(start_paused = true)]
async fn i08_status_headers_in_order_and_bytes_come_back() {
    let (first, repeat) = answered_twice(|layer| layer, KEPT).await;
    assert_eq!((first.status, repeat.status), (201, 201));
    assert_eq!(stored(&first.headers), KEPT);
    assert_eq!(stored(&repeat.headers), KEPT);
    assert_eq!(first.body, &b"\xff\x00\x80"[..]);
    assert_eq!(repeat.body, first.body);
    assert!(!first.is_replay() && repeat.is_replay());
}

const LEFT_OUT: &[(&str, &[u8])] = &[
    (
        "set-cookie",
        b"session=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT",
    ),
    ("set-cookie", b"theme=dark"),
    ("set-cookie2", b"a=1"),
    ("www-authenticate", b"Basic"),
    ("proxy-authenticate", b"Basic"),
    ("proxy-authentication-info", b"a=1"),
    ("authentication-info", b"a=1"),
    ("connection", b"close, X-Hop"),
    ("x-hop", b"1"),
    ("keep-alive", b"timeout=5"),
    ("te", b"trailers"),
    ("trailer", b"x-sum"),
    ("transfer-encoding", b"chunked"),
    ("upgrade", b"h2c"),
    ("content-length", b"3"),
    ("date", b"Wed, 21 Oct 2026 07:28:00 GMT"),
    ("age", b"1"),
    ("via", b"1.1 a"),
    ("server-timing", b"db;dur=1"),
    ("retry-after", b"1"),
    ("ratelimit", b"\"a\";r=1"),
    ("ratelimit-policy", b"\"a\";q=1"),
    ("ratelimit-remaining", b"1"),
    ("x-ratelimit-limit", b"1"),
    ("x-request-id", b"r1"),
    ("traceparent", b"00-0-0-00"),
    ("alt-svc", b"h3"),
    ("strict-transport-security", b"max-age=1"),
    ("access-control-allow-origin", b"*"),
    ("access-control-expose-headers", b"etag"),
];

#[tokio::test(start_paused = true)]
async fn i08_what_belongs_to_one_exchange_or_one_recipient_is_not_replayed() {
    let (first, repeat) = answered_twice(|layer| layer, LEFT_OUT).await;
    assert_eq!(
        stored(&first.headers),
        LEFT_OUT,
        "the first client gets it all"
    );
    assert_eq!(stored(&repeat.headers), []);
}

#[tokio::test(start_paused = true)]
async fn i08_a_list_of_headers_can_be_named_and_does_not_admit_what_is_never_stored() {
    let named = ["location", "set-cookie", "x-list", "content-length"];
    let only = StoredHeaders::only(named.map(HeaderName::from_static));
    let all: &[(&str, &[u8])] = &[
        ("location", b"/o/1"),
        ("set-cookie", b"a=1"),
        ("x-list", b"1"),
        ("x-list", b"2"),
        ("etag", b"\"v1\""),
        ("content-length", b"3"),
    ];
    let (_, repeat) = answered_twice(|layer| layer.stored_headers(only), all).await;
    let expected: &[(&str, &[u8])] = &[("location", b"/o/1"), ("x-list", b"1"), ("x-list", b"2")];
    assert_eq!(stored(&repeat.headers), expected);
}

#[tokio::test(start_paused = true)]
async fn i08_a_replay_is_never_cached_whatever_the_first_answer_allowed() {
    let cached: &[(&str, &[u8])] = &[("cache-control", b"public, max-age=60")];
    let (first, repeat) = answered_twice(|layer| layer, cached).await;
    assert_eq!(first.header("cache-control"), Some("public, max-age=60"));
    let values: Vec<_> = repeat.headers.get_all("cache-control").iter().collect();
    assert_eq!(values, ["no-store"]);
}

#[tokio::test(start_paused = true)]
async fn i08_the_mark_of_a_replay_can_be_another_and_a_handler_cannot_forge_it() {
    let name = HeaderName::from_static("x-replayed");
    let mark = HeaderValue::from_static("true");
    let api = Api::with(
        |layer| layer.replayed_header(name, mark),
        |_| async {
            let head = Response::builder().header("x-replayed", "no");
            Ok(head.body(Content::new(["done"])).unwrap())
        },
    );
    drop(api.post("k1", "one").await);
    let repeat = api.post("k1", "one").await;
    let marks: Vec<_> = repeat.headers.get_all("x-replayed").iter().collect();
    assert_eq!(marks, ["true"]);
    assert!(!repeat.headers.contains_key("idempotent-replayed"));
}

#[tokio::test(start_paused = true)]
async fn refusals_can_be_written_otherwise_and_say_the_same() {
    let api = Api::with(
        |layer| layer.make_rejection(ErrorEnvelope::default()).require_key(),
        order,
    );
    let keyless = crate::kit::request().body(Content::new(["one"])).unwrap();
    let reply = api.send(keyless).await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.rejection(), Some(Rejection::KeyMissing));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(body["error"]["code"], "idempotency_key_missing");

    api.store.once(Op::Claim, Fault::Error);
    let reply = api.post("k1", "one").await;
    assert_eq!(
        (reply.status, reply.header("retry-after")),
        (503, Some("1"))
    );
}
