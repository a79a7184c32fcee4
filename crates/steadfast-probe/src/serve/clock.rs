use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use axum::{Json, body::Bytes, extract::State};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use steadfast::core::Clock;

/// The wall clock of the layers that read one. It goes with the system's until it is set; then it stands still.
#[derive(Clone, Default)]
pub(super) struct WallClock {
    frozen: Arc<Mutex<Option<SystemTime>>>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Now {
    now: u64,
}

impl WallClock {
    pub(super) fn new(frozen: Option<SystemTime>) -> Self {
        Self {
            frozen: Arc::new(Mutex::new(frozen)),
        }
    }

    /// The clock as the layers take it.
    pub(super) fn clock(&self) -> Clock {
        let frozen = Arc::clone(&self.frozen);
        let system = Clock::system();
        Clock::from_fn(move || {
            let frozen = *frozen.lock().unwrap_or_else(PoisonError::into_inner);
            frozen.unwrap_or_else(|| system.now())
        })
    }

    fn set(&self, now: SystemTime) {
        *self.frozen.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WallClock")
            .field(&self.clock().now())
            .finish()
    }
}

/// The time so many seconds after the beginning of 1970.
pub(super) fn at(seconds: u64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

/// `POST /clock`: the body is JSON, whatever its `Content-Type` says.
pub(super) async fn set(
    State(clock): State<WallClock>,
    body: Bytes,
) -> Result<Json<Now>, (StatusCode, String)> {
    let bad = |error: String| (StatusCode::BAD_REQUEST, error);
    let Now { now } = serde_json::from_slice(&body).map_err(|error| bad(error.to_string()))?;
    let time = at(now).ok_or_else(|| bad("past the end of time".to_owned()))?;
    clock.set(time);
    let since = clock.clock().now().duration_since(SystemTime::UNIX_EPOCH);
    Ok(Json(Now {
        now: since.unwrap_or_default().as_secs(),
    }))
}
