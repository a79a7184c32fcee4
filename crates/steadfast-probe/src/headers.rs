use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use steadfast::headers::RetryAfter;

use crate::{failure::Failure, lines};

/// One response's headers, as they arrive on a line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Response {
    headers: Vec<(String, String)>,
    now_ms: u64,
    #[serde(rename = "dialect", default)]
    _dialect: Option<String>,
}

/// What they ask of a client.
#[derive(Debug, Serialize)]
struct Asked {
    retry_after_ms: Option<u64>,
    /// Rate-limit fields are not read yet.
    policies: [Value; 0],
}

/// Answers each line of headers with what they ask for.
pub(crate) async fn run() -> Result<(), Failure> {
    lines::answer(async |line| Ok(Response::deserialize(line)?.asked())).await
}

impl Response {
    fn asked(&self) -> Asked {
        let now = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(self.now_ms));
        let asked = now.and_then(|now| RetryAfter::from_headers(&self.map(), now));
        Asked {
            retry_after_ms: asked.map(|asked| millis(asked.delay())),
            policies: [],
        }
    }

    /// The headers that could have arrived. What no message can carry counts as absent.
    fn map(&self) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in &self.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            let value = HeaderValue::from_bytes(value.as_bytes());
            if let (Ok(name), Ok(value)) = (name, value)
                && map.try_append(name, value).is_err()
            {
                break;
            }
        }
        map
    }
}

/// Whole milliseconds, rounded up, so that nobody comes too early.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_started_millisecond_is_a_whole_one() {
        assert_eq!(millis(Duration::ZERO), 0);
        assert_eq!(millis(Duration::from_nanos(1)), 1);
        assert_eq!(millis(Duration::from_millis(7)), 7);
        assert_eq!(millis(Duration::MAX), u64::MAX);
    }
}
