use axum::{Router, routing::any};
use steadfast::{
    core::Clock,
    replay::{Drain, MemoryStore, ReplayGuardLayer},
};
use tower::ServiceBuilder;

use super::{args::Args, handler, runs::Runs, verify};
use crate::keys::Keys;

/// The scheme of `/oneshot/{name}`.
const ONE_SHOT: &str = "payments";

/// `ANY /oneshot/{name}` and `ANY /event/{scheme}/{name}`, and the handle that waits for events in work.
pub(super) fn routes(args: &Args, keys: &Keys, clock: &Clock) -> (Router<Runs>, Drain) {
    let store = || MemoryStore::new(args.store_capacity.get());
    let one_shot = ReplayGuardLayer::one_shot(store());
    let events = ReplayGuardLayer::events(store()).lease(args.lease);
    let mut router = Router::new();
    for (name, verify) in verify::layers(args, keys, clock) {
        if name == ONE_SHOT {
            let layers = ServiceBuilder::new()
                .layer(verify.clone())
                .layer(one_shot.clone());
            router = router.route("/oneshot/{name}", any(handler::steered).layer(layers));
        }
        let path = format!("/event/{name}/{{name}}");
        let layers = ServiceBuilder::new().layer(verify).layer(events.clone());
        router = router.route(&path, any(handler::steered).layer(layers));
    }
    (router, events.drain())
}
