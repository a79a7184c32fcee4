//! Inside the retry layer, against a server that verifies.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use steadfast_core::{Body, ReplayBody, facts::RetryReport};
use steadfast_retry::{Profile, RateLimitAwareRetryLayer};
use steadfast_signature::{
    HmacScheme, KeyRing, RefreshingKeys, Secret, SignRequestLayer, SignatureVerifyLayer, SigningKey,
};
use tower::{ServiceBuilder, ServiceExt as _, service_fn};

type Sent = ReplayBody<Full<Bytes>>;

fn secret(text: &str) -> Secret {
    Secret::from_bytes(format!("the secret of {text}")).unwrap()
}

/// Sends one request through the whole stack. The key is another one each time it is fetched.
async fn send(known: &'static str) -> (u16, u32, u32) {
    let fetched = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&fetched);
    let keys = RefreshingKeys::new(move || {
        let id = format!("key_{}", count.fetch_add(1, Ordering::SeqCst));
        let secret = secret(&id);
        async move { Ok::<_, Infallible>(SigningKey::new(id, secret)) }
    });
    let ring = KeyRing::new([(known, secret(known).into())]).unwrap();
    let client = ServiceBuilder::new()
        .layer(RateLimitAwareRetryLayer::with_profile(Profile::payments()))
        .layer(SignRequestLayer::new(
            HmacScheme::payments(),
            keys.min_interval(Duration::ZERO),
        ))
        .layer(SignatureVerifyLayer::new(HmacScheme::payments(), ring))
        .service(service_fn(|_: Request<Body<Body<Sent>>>| async {
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("done"))))
        }));
    let request = Request::get("/orders").body(Full::default()).unwrap();
    let response = client.oneshot(request).await.unwrap();
    let report = response.extensions().get::<RetryReport>().unwrap();
    let attempts = report.attempts;
    (
        response.status().as_u16(),
        attempts,
        fetched.load(Ordering::SeqCst),
    )
}

#[tokio::test(start_paused = true)]
async fn r03_r12_a_401_fetches_the_key_anew_and_signs_once_more() {
    assert_eq!(send("key_0").await, (200, 1, 1));
    assert_eq!(send("key_1").await, (200, 2, 2));
    assert_eq!(send("key_2").await, (401, 2, 2));
}
