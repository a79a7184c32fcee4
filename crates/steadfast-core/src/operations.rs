use std::sync::Arc;

use http::Method;

use crate::facts::OperationClass;

/// A table of operations and what a second identical request to each of them means (R01).
///
/// The first route that matches decides. Clones share the table.
///
/// ```
/// use http::Method;
/// use steadfast_core::{Operations, RoutePattern, facts::OperationClass};
///
/// let cancel = RoutePattern::parse("/v1/emails/*/cancel")?;
/// let operations = Operations::new().route(Method::POST, cancel, OperationClass::NaturallyIdempotent);
/// assert_eq!(
///     operations.class_of(&Method::POST, "/v1/emails/em_1/cancel"),
///     Some(OperationClass::NaturallyIdempotent),
/// );
/// assert_eq!(operations.class_of(&Method::POST, "/v1/emails"), None);
/// # Ok::<(), steadfast_core::RoutePatternError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Operations {
    routes: Arc<Vec<Route>>,
}

#[derive(Clone, Debug)]
struct Route {
    method: Method,
    pattern: RoutePattern,
    class: OperationClass,
}

impl Operations {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a route behind those that are there.
    #[must_use]
    pub fn route(mut self, method: Method, pattern: RoutePattern, class: OperationClass) -> Self {
        Arc::make_mut(&mut self.routes).push(Route {
            method,
            pattern,
            class,
        });
        self
    }

    /// The class of the operation that this method and path name.
    #[must_use]
    pub fn class_of(&self, method: &Method, path: &str) -> Option<OperationClass> {
        self.routes
            .iter()
            .find(|route| route.method == *method && route.pattern.matches(path))
            .map(|route| route.class)
    }
}

/// A path with `*` for any one segment, or `**` as the last segment for any number of them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RoutePattern {
    segments: Vec<Segment>,
    open: bool,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Segment {
    Any,
    Exactly(Box<str>),
}

/// A pattern that is not a path.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RoutePatternError {
    /// The pattern does not start with a slash.
    #[error("a route pattern starts with a slash")]
    NoSlash,
    /// `**` stands before the end, or `*` inside a segment.
    #[error("a route pattern has `*` only as a whole segment and `**` only as the last one")]
    Wildcard,
}

impl RoutePattern {
    /// Parses a pattern such as `/v1/emails/*/cancel`.
    ///
    /// # Errors
    ///
    /// When it does not start with a slash, or has a wildcard where none can stand.
    pub fn parse(pattern: &str) -> Result<Self, RoutePatternError> {
        let path = pattern
            .strip_prefix('/')
            .ok_or(RoutePatternError::NoSlash)?;
        let (path, open) = match path.strip_suffix("**") {
            Some(path) => (path.strip_suffix('/').unwrap_or(path), true),
            None => (path, false),
        };
        if open && !(pattern.ends_with("/**")) {
            return Err(RoutePatternError::Wildcard);
        }
        let segments = match path {
            "" if open => Vec::new(),
            path => path
                .split('/')
                .map(Segment::parse)
                .collect::<Result<_, _>>()?,
        };
        Ok(Self { segments, open })
    }

    /// Whether a path, without its query, is one of this pattern.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        let Some(path) = path.strip_prefix('/') else {
            return false;
        };
        let mut segments = path.split('/');
        for expected in &self.segments {
            if !segments
                .next()
                .is_some_and(|segment| expected.matches(segment))
            {
                return false;
            }
        }
        self.open || segments.next().is_none()
    }
}

impl Segment {
    fn parse(segment: &str) -> Result<Self, RoutePatternError> {
        match segment {
            "*" => Ok(Self::Any),
            segment if segment.contains('*') => Err(RoutePatternError::Wildcard),
            segment => Ok(Self::Exactly(segment.into())),
        }
    }

    fn matches(&self, segment: &str) -> bool {
        match self {
            Self::Any => !segment.is_empty(),
            Self::Exactly(expected) => **expected == *segment,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        RoutePattern::parse(pattern).unwrap().matches(path)
    }

    #[test]
    fn r01_a_star_stands_for_one_segment() {
        assert!(matches("/v1/emails/*/cancel", "/v1/emails/1/cancel"));
        for path in [
            "/v1/emails/cancel",
            "/v1/emails//cancel",
            "/v1/emails/1/2/cancel",
            "/v1/emails/1/cancel/",
            "/v1/emails/1/cancelled",
            "v1/emails/1/cancel",
            "",
        ] {
            assert!(!matches("/v1/emails/*/cancel", path), "{path}");
        }
    }

    #[test]
    fn two_stars_stand_for_the_rest() {
        assert!(matches("/v1/**", "/v1/a/b"));
        assert!(matches("/v1/**", "/v1"));
        assert!(matches("/**", "/anything"));
        assert!(!matches("/v1/**", "/v2/a"));
    }

    #[test]
    fn the_root_is_a_route() {
        assert!(matches("/", "/"));
        assert!(!matches("/", "/a"));
    }

    #[test]
    fn the_first_route_that_matches_decides() {
        let operations = Operations::new()
            .route(
                Method::POST,
                RoutePattern::parse("/a/b").unwrap(),
                OperationClass::NotRepeatable,
            )
            .route(
                Method::POST,
                RoutePattern::parse("/a/*").unwrap(),
                OperationClass::NaturallyIdempotent,
            );
        let class = |path| operations.class_of(&Method::POST, path);
        assert_eq!(class("/a/b"), Some(OperationClass::NotRepeatable));
        assert_eq!(class("/a/c"), Some(OperationClass::NaturallyIdempotent));
        assert_eq!(operations.class_of(&Method::PUT, "/a/b"), None);
    }

    #[test]
    fn nonsense_does_not_parse() {
        assert_eq!(RoutePattern::parse("a"), Err(RoutePatternError::NoSlash));
        assert_eq!(RoutePattern::parse(""), Err(RoutePatternError::NoSlash));
        for pattern in ["/a*", "/**/a", "/a**", "/*a/b", "/a/***"] {
            assert_eq!(
                RoutePattern::parse(pattern),
                Err(RoutePatternError::Wildcard),
                "{pattern}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_path_without_stars_matches_itself(path in "(/[a-z%.]{0,5}){1,6}") {
            prop_assert!(matches(&path, &path));
        }

        #[test]
        fn no_text_panics(pattern in ".*", path in ".*") {
            let matches = RoutePattern::parse(&pattern).map(|pattern| pattern.matches(&path));
            prop_assert!(matches != Ok(true) || path.starts_with('/'));
        }
    }
}
