use http::{Uri, request::Parts};

/// Gives the URI of a request as the client sent it.
///
/// The default is [`original_uri`]. A router that rewrites paths and is not axum needs one of its own.
pub type OriginalUriFn = fn(&Parts) -> &Uri;

/// The URI as the client sent it.
///
/// With feature `axum` (on by default) axum's `OriginalUri` is read, which holds what nested routers strip from the
/// path. Without it, and outside axum, it is the request's own URI.
#[must_use]
pub fn original_uri(parts: &Parts) -> &Uri {
    #[cfg(feature = "axum")]
    if let Some(original) = parts.extensions.get::<axum::extract::OriginalUri>() {
        return &original.0;
    }
    &parts.uri
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn a_request_outside_a_router_keeps_its_own_uri() {
        let (parts, ()) = Request::get("/a?b").body(()).unwrap().into_parts();
        assert_eq!(original_uri(&parts), "/a?b");
    }

    #[cfg(feature = "axum")]
    #[test]
    fn i10_a_nested_router_does_not_hide_the_path() {
        let (mut parts, ()) = Request::get("/orders").body(()).unwrap().into_parts();
        parts
            .extensions
            .insert(axum::extract::OriginalUri(Uri::from_static("/a/orders")));
        assert_eq!(original_uri(&parts), "/a/orders");
    }
}
