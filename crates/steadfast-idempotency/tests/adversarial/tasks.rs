//! Tasks that are aborted and runtimes that shut down under a call.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use steadfast_core::Body;
use steadfast_idempotency::{Drained, IdempotencyLayer, MemoryStore, Scope, Timing};
use tokio::{
    runtime::Builder,
    sync::{Semaphore, mpsc},
    time::sleep,
};
use tower::{Layer as _, ServiceExt as _, service_fn};

use super::kit::{Api, answer, millis, seconds};

#[tokio::test(start_paused = true)]
async fn i15_a_call_whose_task_is_aborted_again_and_again_is_made_once() {
    let api = Api::new(
        |layer| layer,
        || async {
            sleep(seconds(5)).await;
            answer(201)
        },
    );
    for _ in 0..20 {
        let task = tokio::spawn(api.call());
        sleep(millis(100)).await;
        task.abort();
        // A duplicate has had its answer; the call itself is cut off.
        drop(task.await);
    }
    sleep(seconds(10)).await;
    assert!(api.post().await.is_replay());
    assert_eq!(api.runs(), 1);
}

#[test]
fn i13_a_call_waits_out_the_lease_of_a_runtime_that_is_gone() {
    let runs = Arc::new(AtomicUsize::new(0));
    let go = Arc::new(Semaphore::new(0));
    let (begin, mut begun) = mpsc::unbounded_channel();
    let handler = {
        let (runs, go) = (Arc::clone(&runs), Arc::clone(&go));
        service_fn(move |_: Request<Body<Full<Bytes>>>| {
            let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
            begin.send(()).unwrap();
            let go = Arc::clone(&go);
            async move {
                go.acquire().await.unwrap().forget();
                Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(run.to_string())))
            }
        })
    };
    let timing = Timing::new(seconds(30), seconds(300)).unwrap();
    let timing = timing.wait_for(seconds(30)).unwrap();
    let layer = IdempotencyLayer::new(MemoryStore::new(10, 10_000), Scope::global());
    let layer = layer.timing(timing);
    let (service, drain) = (layer.layer(handler), layer.drain());
    let post = || {
        let request = Request::post("/").header("idempotency-key", "k1");
        request.body(Full::from("one")).unwrap()
    };
    let runtime = || {
        let mut builder = Builder::new_current_thread();
        builder.enable_all().start_paused(true).build().unwrap()
    };

    let first = runtime();
    let call = service.clone().oneshot(post());
    first.block_on(async {
        drop(tokio::spawn(call));
        begun.recv().await.unwrap();
    });
    drop(first);
    assert_eq!(drain.running(), 0);

    go.add_permits(1);
    let second = runtime();
    second.block_on(async {
        let response = service.oneshot(post()).await.unwrap();
        assert!(!response.headers().contains_key("idempotent-replayed"));
        assert_eq!(drain.wait(seconds(1)).await, Drained::All);
    });
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}
