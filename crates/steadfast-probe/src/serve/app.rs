use axum::{
    Router,
    routing::{any, get, post},
};
use steadfast::idempotency::{IdempotencyLayer, MemoryStore, Scope};
use tower_http::catch_panic::CatchPanicLayer;

use super::{
    args::{Args, Store},
    clock::{self, WallClock},
    guard, handler,
    running::Running,
    runs::{self, Runs},
    tenant, verify,
};
use crate::{failure::Failure, keys::Keys};

/// What the answers in the memory store may take in all.
const STORE_BYTES: usize = 256 * 1024 * 1024;

/// The routes, and the handle on what runs behind them.
pub(super) struct App {
    pub(super) router: Router,
    pub(super) running: Running,
}

impl App {
    pub(super) fn new(args: &Args, keys: &Keys) -> Result<Self, Failure> {
        let runs = Runs::default();
        let clock = WallClock::new(args.now);
        let layer = idempotency(args)?;
        let calls = layer.drain();
        let (guarded, events) = guard::routes(args, keys, &clock.clock());
        let probe = Router::new()
            .route("/probe/{name}", any(handler::steered))
            .route_layer(layer)
            .with_state(runs.clone());
        let router = Router::new()
            .merge(probe.clone())
            .nest("/nested/a", probe.clone())
            .nest("/nested/b", probe)
            .merge(guarded)
            .route("/runs/{name}", get(runs::get))
            .with_state(runs)
            .merge(verify::routes(args, keys, &clock.clock()))
            .merge(setting(clock))
            .layer(CatchPanicLayer::new());
        let running = Running { calls, events };
        Ok(Self { router, running })
    }
}

fn idempotency(args: &Args) -> Result<IdempotencyLayer<MemoryStore>, Failure> {
    let store = match args.store {
        Store::Memory => MemoryStore::new(args.store_capacity.get(), STORE_BYTES),
        Store::Other => {
            return Err(Failure::NotYet(
                "probe serve with a store that is not `memory`",
            ));
        }
    };
    let layer = IdempotencyLayer::new(store, Scope::tenant(tenant::key_from))
        .timing(args.timing()?)
        .on_failure(args.on_failure.into())
        .reuse_status(args.mismatch_status.into())
        .key_rules(args.key_rule.into())
        .max_body(args.max_body)
        .max_stored_body(args.max_stored);
    Ok(match args.require_key {
        true => layer.require_key(),
        false => layer,
    })
}

fn setting(clock: WallClock) -> Router {
    Router::new()
        .route("/clock", post(clock::set))
        .with_state(clock)
}
