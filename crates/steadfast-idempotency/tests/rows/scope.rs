//! I09 and I10: which calls share a key, and which of those are the same request.

use std::borrow::Cow;

use http::{Method, Request, request::Parts};
use steadfast_core::{Key, Refusal};
use steadfast_idempotency::Scope;

use crate::kit::{Api, Content, order};

fn call(method: &str, uri: &str, tenant: &str, body: &'static str) -> Request<Content> {
    Request::builder()
        .method(method)
        .uri(uri)
        .header("idempotency-key", "k1")
        .header("x-tenant", tenant)
        .body(Content::new([body]))
        .unwrap()
}

fn by_tenant() -> Scope {
    Scope::tenant(|parts: &Parts| match parts.headers.get("x-tenant") {
        Some(tenant) => Ok(Key::from(tenant.as_bytes())),
        None => Err(Refusal::unauthorized()),
    })
}

#[tokio::test(start_paused = true)]
async fn i10_a_key_belongs_to_tenant_method_and_endpoint() {
    let api = Api::scoped(by_tenant(), order);
    let calls = [
        ("POST", "/orders", "t1"),
        ("POST", "/orders", "t2"),
        ("PATCH", "/orders", "t1"),
        ("POST", "/orders/", "t1"),
        ("POST", "/orders/1", "t1"),
        ("POST", "/", "t1orders"),
    ];
    for replay in [false, true] {
        for (run, (method, uri, tenant)) in (1..).zip(calls) {
            let reply = api.send(call(method, uri, tenant, "one")).await;
            assert_eq!(reply.body, format!("order {run}"));
            assert_eq!(reply.is_replay(), replay);
        }
    }
    assert_eq!(api.runs(), calls.len());
}

#[tokio::test(start_paused = true)]
async fn i10_everybody_shares_the_keys_of_a_global_scope() {
    let api = Api::scoped(Scope::global(), order);
    let first = api.send(call("POST", "/orders", "t1", "one")).await;
    first.assert_first(201, "order 1");
    let other = api.send(call("POST", "/orders", "t2", "one")).await;
    other.assert_replay(201, "order 1");
}

#[tokio::test(start_paused = true)]
async fn i10_no_tenants_name_leads_into_the_global_scope() {
    let api = Api::scoped(Scope::global(), order);
    let first = api.send(call("POST", "/orders", "t1", "one")).await;
    first.assert_first(201, "order 1");
    for name in ["", "\0", "global", "tenant"] {
        let scope = Scope::tenant(move |_: &Parts| Ok(Key::from(name)));
        let layer = steadfast_idempotency::IdempotencyLayer::new(api.store.clone(), scope);
        let tenants = Api::on(api.store.clone(), |_global| layer, order);
        let reply = tenants.send(call("POST", "/orders", "t1", "one")).await;
        reply.assert_first(201, "order 1");
    }
}

#[tokio::test(start_paused = true)]
async fn i09_path_and_query_and_body_make_another_request() {
    let scope = Scope::global().endpoint(|_| Cow::Borrowed("/orders/{id}/cancel"));
    let api = Api::scoped(scope, order);
    let first = call("POST", "/orders/1/cancel?soft=1", "t1", "one");
    api.send(first).await.assert_first(201, "order 1");
    for (uri, body) in [
        // One route, two resources: a misuse that is refused instead of a second key.
        ("/orders/2/cancel?soft=1", "one"),
        ("/orders/1/cancel?soft=2", "one"),
        ("/orders/1/cancel", "one"),
        ("/orders/1/cancel?soft=1", "two"),
        ("/orders/1/cancel?soft=1", ""),
    ] {
        api.send(call("POST", uri, "t1", body)).await.assert_reuse();
    }
    let same = call("POST", "/orders/1/cancel?soft=1", "t1", "one");
    api.send(same).await.assert_replay(201, "order 1");
    assert_eq!(api.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn i09_how_a_body_is_cut_into_frames_does_not_matter() {
    let api = Api::new(order);
    let framed = |body: Content| {
        let request = crate::kit::request().header("idempotency-key", "k1");
        request.body(body).unwrap()
    };
    let first = api.send(framed(Content::new(["one"]).exact())).await;
    first.assert_first(201, "order 1");
    let again = api.send(framed(Content::new(["o", "", "ne"]))).await;
    again.assert_replay(201, "order 1");
}

#[tokio::test(start_paused = true)]
async fn i09_what_counts_as_content_can_be_set() {
    // Spaces do not matter here, and the currency header does.
    let api = Api::with(
        |layer| {
            layer.content(|parts, body| {
                let mut content: Vec<u8> = body.iter().copied().filter(|b| *b != b' ').collect();
                content.extend(parts.headers["x-currency"].as_bytes());
                Cow::Owned(content)
            })
        },
        order,
    );
    let call = |currency: &str, body: &'static str| {
        let mut request = call("POST", "/orders", "t1", body);
        let currency = http::HeaderValue::from_str(currency).unwrap();
        request.headers_mut().insert("x-currency", currency);
        request
    };
    api.send(call("EUR", "a b"))
        .await
        .assert_first(201, "order 1");
    api.send(call("EUR", "ab"))
        .await
        .assert_replay(201, "order 1");
    api.send(call("USD", "ab")).await.assert_reuse();
    api.send(call("EUR", "ac")).await.assert_reuse();
}

#[tokio::test(start_paused = true)]
async fn i10_the_uri_a_router_has_rewritten_can_be_read_from_elsewhere() {
    #[derive(Clone)]
    struct AsSent(http::Uri);

    let scope = Scope::global().original_uri(|parts| match parts.extensions.get::<AsSent>() {
        Some(AsSent(uri)) => uri,
        None => &parts.uri,
    });
    let api = Api::scoped(scope, order);
    let stripped = |from: &'static str| {
        let mut request = call("POST", "/orders", "t1", "one");
        let uri = http::Uri::from_static(from);
        request.extensions_mut().insert(AsSent(uri));
        request
    };
    api.send(stripped("/a/orders"))
        .await
        .assert_first(201, "order 1");
    api.send(stripped("/b/orders"))
        .await
        .assert_first(201, "order 2");
    api.send(stripped("/a/orders"))
        .await
        .assert_replay(201, "order 1");
}

#[tokio::test(start_paused = true)]
async fn only_the_covered_methods_are_covered() {
    let api = Api::new(order);
    for (run, method) in (1..).zip(["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"]) {
        for (again, key) in [(0, "k1"), (1, "not a key")] {
            let mut request = call(method, "/orders", "t1", "one");
            let key = http::HeaderValue::from_static(key);
            request.headers_mut().insert("idempotency-key", key);
            let reply = api.send(request).await;
            reply.assert_first(201, &format!("order {}", 2 * run - 1 + again));
            assert!(reply.headers.is_empty(), "{method}");
        }
    }
    assert_eq!(api.store.log(), []);

    let deleting = Api::with(|layer| layer.methods([Method::DELETE]), order);
    for replay in [false, true] {
        let reply = deleting.send(call("DELETE", "/orders", "t1", "")).await;
        assert_eq!(reply.is_replay(), replay);
        let reply = deleting.send(call("POST", "/orders", "t1", "")).await;
        assert!(!reply.is_replay());
    }
}
