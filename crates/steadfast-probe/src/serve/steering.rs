use std::{str::FromStr, time::Duration};

use axum::extract::FromRequestParts;
use http::{HeaderMap, StatusCode, request::Parts};

use super::canned::Canned;

/// What a request asks the handler to do.
#[derive(Debug)]
pub(super) struct Steering {
    pub(super) delay: Duration,
    pub(super) panics: bool,
    pub(super) status: Option<StatusCode>,
    pub(super) answer: Answer,
}

/// What the answer is made of.
#[derive(Debug)]
pub(super) enum Answer {
    Canned(Canned),
    Echo,
    Letters(u64),
    Run,
}

impl<S: Sync> FromRequestParts<S> for Steering {
    type Rejection = (StatusCode, String);

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Self::read(&parts.headers)
            .map_err(|name| (StatusCode::BAD_REQUEST, format!("bad {name}\n")))
    }
}

impl Steering {
    fn read(headers: &HeaderMap) -> Result<Self, &'static str> {
        let answer = if let Some(canned) = parse(headers, "x-resp")? {
            Answer::Canned(canned)
        } else if flag(headers, "x-echo")? {
            Answer::Echo
        } else if let Some(letters) = parse(headers, "x-body-bytes")? {
            Answer::Letters(letters)
        } else {
            Answer::Run
        };
        Ok(Self {
            delay: Duration::from_millis(parse(headers, "x-delay-ms")?.unwrap_or(0)),
            panics: flag(headers, "x-panic")?,
            status: parse(headers, "x-status")?,
            answer,
        })
    }
}

fn flag(headers: &HeaderMap, name: &'static str) -> Result<bool, &'static str> {
    match parse::<u8>(headers, name)? {
        None | Some(0) => Ok(false),
        Some(1) => Ok(true),
        Some(_) => Err(name),
    }
}

fn parse<T: FromStr>(headers: &HeaderMap, name: &'static str) -> Result<Option<T>, &'static str> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    let value = value.to_str().ok().and_then(|value| value.parse().ok());
    value.map(Some).ok_or(name)
}
