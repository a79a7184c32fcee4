use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Json,
    extract::{Path, State},
};
use serde::Serialize;

/// How many handlers can be told apart.
const MAX_NAMES: usize = 1_000_000;

/// How often the handler of each name began and ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    counts: Arc<Mutex<HashMap<Box<str>, Counts>>>,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Counts {
    starts: u64,
    finishes: u64,
}

impl Runs {
    /// Counts a start, and says which one of this name it is; `None` when there are too many names.
    pub(super) fn start(&self, name: &str) -> Option<u64> {
        let mut counts = self.lock();
        if counts.len() >= MAX_NAMES && !counts.contains_key(name) {
            return None;
        }
        let counts = counts.entry(name.into()).or_default();
        counts.starts += 1;
        Some(counts.starts)
    }

    pub(super) fn finish(&self, name: &str) {
        if let Some(counts) = self.lock().get_mut(name) {
            counts.finishes += 1;
        }
    }

    fn of(&self, name: &str) -> Counts {
        self.lock().get(name).copied().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Counts>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `GET /runs/{name}`.
pub(super) async fn get(State(runs): State<Runs>, Path(name): Path<String>) -> Json<Counts> {
    Json(runs.of(&name))
}
