use http::{HeaderMap, header};

/// Whether the content type is one whose body goes on for as long as the server likes: reading ahead to its end would
/// wait for ever.
#[must_use]
pub fn is_stream(headers: &HeaderMap) -> bool {
    const STREAMS: [&str; 2] = ["text/event-stream", "multipart/x-mixed-replace"];
    let Some(content_type) = headers.get(header::CONTENT_TYPE) else {
        return false;
    };
    let essence = content_type.as_bytes().split(|byte| *byte == b';').next();
    let essence = essence.unwrap_or_default().trim_ascii();
    STREAMS
        .iter()
        .any(|stream| essence.eq_ignore_ascii_case(stream.as_bytes()))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_stream_is_known_by_its_content_type() {
        let of = |content_type: &'static str| {
            let content_type = HeaderValue::from_static(content_type);
            is_stream(&HeaderMap::from_iter([(
                header::CONTENT_TYPE,
                content_type,
            )]))
        };
        assert!(of("text/event-stream"));
        assert!(of("Text/Event-Stream ; charset=utf-8"));
        assert!(of("multipart/x-mixed-replace; boundary=a"));
        assert!(!of("text/event-streams"));
        assert!(!of("application/json"));
        assert!(!is_stream(&HeaderMap::new()));
    }
}
