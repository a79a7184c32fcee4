//! Settings, and what the layer is made of.

use http::Request;
use steadfast_core::Body;
use steadfast_idempotency::{BoxStore, IdempotencyLayer, MemoryStore, Rejection, Scope, Timing};
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::kit::{Api, Content, Fault, Faulty, Op, answer, order, post, request, seconds};

#[tokio::test(start_paused = true)]
async fn i14_a_store_can_be_chosen_at_run_time() {
    let faulty = Faulty::default();
    let handler =
        service_fn(|_request: Request<Body<Content>>| async { Ok::<_, &str>(answer(201, "done")) });
    let layer = IdempotencyLayer::new(BoxStore::new(faulty.clone()), Scope::global());
    let service = layer.layer(handler);
    let call = || service.clone().oneshot(post("k1", "one"));

    faulty.once(Op::Claim, Fault::Error);
    let down = call().await.unwrap();
    assert_eq!(down.extensions().get(), Some(&Rejection::StoreUnavailable));
    assert!(
        !call()
            .await
            .unwrap()
            .headers()
            .contains_key("idempotent-replayed")
    );
    assert!(
        call()
            .await
            .unwrap()
            .headers()
            .contains_key("idempotent-replayed")
    );
}

#[tokio::test(start_paused = true)]
async fn i14_layers_that_share_a_store_replay_each_others_answers() {
    let store = Faulty::new(MemoryStore::new(10, 1024));
    let one = Api::on(store.clone(), |layer| layer, order);
    let two = Api::on(store, |layer| layer, order);
    one.post("k1", "one").await.assert_first(201, "order 1");
    two.post("k1", "one").await.assert_replay(201, "order 1");
    assert_eq!((one.runs(), two.runs()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_setter_changes_no_layer_that_was_made_before() {
    let layer = IdempotencyLayer::new(MemoryStore::new(10, 1024), Scope::global());
    let strict = layer.clone().require_key();
    let handler =
        service_fn(|_request: Request<Body<Content>>| async { Ok::<_, &str>(answer(200, "")) });
    let keyless = || request().body(Content::new(["one"])).unwrap();
    let lax = layer.layer(handler).oneshot(keyless()).await.unwrap();
    let strict = strict.layer(handler).oneshot(keyless()).await.unwrap();
    assert_eq!(
        (lax.status().as_u16(), strict.status().as_u16()),
        (200, 400)
    );
}

#[test]
fn i13_spans_that_make_no_sense_together_are_refused_before_the_first_call() {
    Timing::new(seconds(0), seconds(60)).unwrap_err();
    Timing::new(seconds(30), seconds(0)).unwrap_err();
    Timing::new(seconds(61), seconds(60)).unwrap_err();
    let timing = Timing::new(seconds(30), seconds(60)).unwrap();
    timing.wait_for(seconds(31)).unwrap_err();
    timing.wait_for(seconds(30)).unwrap();
}
