//! A memory store that has come to its bounds.

use futures_util::join;
use http::request::Parts;
use steadfast_core::{Key, Refusal};
use steadfast_idempotency::{IdempotencyLayer, MemoryStore, Rejection, Scope, TombstoneReason};
use tokio::time::sleep;

use crate::kit::{Api, Faulty, State, answer, order, pass, post, seconds, slow_order};

#[tokio::test(start_paused = true)]
async fn calls_that_failed_leave_their_room() {
    let store = Faulty::new(MemoryStore::new(1, 1024));
    let api = Api::on(store, |layer| layer, |_| async { Ok(answer(500, "no")) });
    for key in ["k1", "k2", "k3"] {
        api.post(key, "one").await.assert_first(500, "no");
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_store_still_serves_the_calls_that_run() {
    let store = Faulty::new(MemoryStore::new(1, 1024));
    let api = Api::on(store, |layer| layer, slow_order);
    let (first, ()) = join!(api.post("k1", "one"), async {
        sleep(seconds(1)).await;
        let refused = api.post("k2", "one").await;
        assert_eq!(refused.rejection(), Some(Rejection::StoreFull));
        api.post("k1", "one").await.assert_in_progress();
        api.post("k1", "two").await.assert_reuse();
    });
    first.assert_first(201, "order 1");
    api.post("k1", "one").await.assert_replay(201, "order 1");
    assert_eq!(api.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_for_which_there_are_no_bytes_is_remembered_as_done() {
    let store = Faulty::new(MemoryStore::new(10, 20));
    let api = Api::on(
        store,
        |layer| layer,
        |_| async { Ok(answer(201, "more than twenty bytes")) },
    );
    let first = api.post("k1", "one").await;
    first.assert_first(201, "more than twenty bytes");
    let gone = State::Gone(201, TombstoneReason::NotSaved);
    assert_eq!(api.store.state().await, gone);
    api.post("k1", "one").await.assert_gone(201, "not_saved");
    assert_eq!(api.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_bytes_of_an_expired_answer_are_used_again() {
    let store = Faulty::new(MemoryStore::new(10, 30));
    let api = Api::on(
        store,
        |layer| layer,
        |_| async { Ok(answer(201, "twenty bytes and two..")) },
    );
    let body = "twenty bytes and two..";
    api.post("k1", "one").await.assert_first(201, body);
    api.post("k2", "one").await.assert_first(201, body);
    api.post("k2", "one").await.assert_gone(201, "not_saved");
    pass(seconds(24 * 3600)).await;
    api.post("k1", "one").await.assert_first(201, body);
    api.post("k1", "one").await.assert_replay(201, body);
}

#[tokio::test(start_paused = true)]
async fn a_tenant_cannot_take_the_room_of_others() {
    let store = Faulty::new(MemoryStore::with_tenant_cap(10, 10_000, 2));
    let scope = Scope::tenant(|parts: &Parts| match parts.headers.get("x-tenant") {
        Some(tenant) => Ok(Key::from(tenant.as_bytes())),
        None => Err(Refusal::unauthorized()),
    });
    let layer = IdempotencyLayer::new(store.clone(), scope);
    let api = Api::on(store, |_global| layer, order);
    let call = |tenant: &str, key: &str| {
        let mut request = post(key, "one");
        let tenant = http::HeaderValue::from_str(tenant).unwrap();
        request.headers_mut().insert("x-tenant", tenant);
        api.send(request)
    };
    for key in ["k1", "k2"] {
        assert_eq!(call("greedy", key).await.status, 201);
    }
    let refused = call("greedy", "k3").await;
    assert_eq!(refused.rejection(), Some(Rejection::StoreFull));
    assert!(call("greedy", "k1").await.is_replay());
    for key in ["k1", "k2"] {
        assert_eq!(call("modest", key).await.status, 201);
    }
    assert_eq!(api.runs(), 4);
}
