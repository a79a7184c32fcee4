use std::{
    fmt, mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// The body that steadfast's layers hand on and answer with.
    ///
    /// It is one of
    ///
    /// * the inner body, untouched;
    /// * bytes held in memory, ending in nothing, in trailers, or in the inner body's error;
    /// * bytes held in memory, followed by what is left of the inner body.
    ///
    /// The size hint is exact wherever the length is known, and [`is_end_stream`](http_body::Body::is_end_stream) is
    /// true as soon as nothing is left. A body that will end in an error never claims an exact size, so that no server
    /// announces a length which makes a cut body look whole.
    pub struct Body<B>
    where
        B: http_body::Body,
    {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[project = KindProj]
    enum Kind<B>
    where
        B: http_body::Body,
    {
        Inner { #[pin] body: B },
        Held { bytes: Bytes, end: End<B::Error> },
        Prefixed { bytes: Bytes, rest: Pin<Box<B>> },
    }
}

enum End<E> {
    Nothing,
    Trailers(Box<HeaderMap>),
    /// Trailers of a body that does not say how long it is.
    LateTrailers(Box<HeaderMap>),
    /// Held back for one poll: a server that meets the error before it has flushed what came before drops all of it,
    /// and its client sees no answer at all.
    Error {
        error: E,
        held_back: bool,
    },
}

impl<B: http_body::Body> Body<B> {
    /// Wraps the inner body without touching it.
    pub const fn inner(body: B) -> Self {
        Self {
            kind: Kind::Inner { body },
        }
    }

    /// A body of nothing.
    #[must_use]
    pub const fn empty() -> Self {
        Self::full(Bytes::new())
    }

    /// A body of these bytes.
    #[must_use]
    pub const fn full(bytes: Bytes) -> Self {
        Self::held(bytes, End::Nothing)
    }

    /// A body of these bytes, and these trailers when there are any.
    #[must_use]
    pub fn with_trailers(bytes: Bytes, trailers: Option<HeaderMap>) -> Self {
        let end = trailers.map_or(End::Nothing, |trailers| End::Trailers(Box::new(trailers)));
        Self::held(bytes, end)
    }

    /// A body of these bytes and these trailers that does not announce its length.
    ///
    /// HTTP/1 can send trailers only behind a body whose length was not announced: a body that had none before it was
    /// read into memory must not get one.
    #[must_use]
    pub fn with_late_trailers(bytes: Bytes, trailers: HeaderMap) -> Self {
        Self::held(bytes, End::LateTrailers(Box::new(trailers)))
    }

    /// A body that yields these bytes and then fails with `error`.
    #[must_use]
    pub const fn failing(bytes: Bytes, error: B::Error) -> Self {
        let end = End::Error {
            error,
            held_back: false,
        };
        Self::held(bytes, end)
    }

    /// A body of these bytes followed by `rest`.
    #[must_use]
    pub const fn prefixed(bytes: Bytes, rest: Pin<Box<B>>) -> Self {
        Self {
            kind: Kind::Prefixed { bytes, rest },
        }
    }

    const fn held(bytes: Bytes, end: End<B::Error>) -> Self {
        Self {
            kind: Kind::Held { bytes, end },
        }
    }

    /// Whether this body is held in memory and known to end in an error.
    #[must_use]
    pub const fn is_failing(&self) -> bool {
        matches!(
            self.kind,
            Kind::Held {
                end: End::Error { .. },
                ..
            }
        )
    }
}

impl<B: http_body::Body> Default for Body<B> {
    fn default() -> Self {
        Self::empty()
    }
}

impl<B: http_body::Body> From<Bytes> for Body<B> {
    fn from(bytes: Bytes) -> Self {
        Self::full(bytes)
    }
}

impl<B: http_body::Body> http_body::Body for Body<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().kind.project() {
            KindProj::Inner { body } => poll_bytes(body, cx),
            KindProj::Held { bytes, end } => {
                if !bytes.is_empty() {
                    return Poll::Ready(Some(Ok(Frame::data(mem::take(bytes)))));
                }
                if let End::Error { held_back, .. } = end
                    && !mem::replace(held_back, true)
                {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Ready(match mem::replace(end, End::Nothing) {
                    End::Nothing => None,
                    End::Trailers(trailers) | End::LateTrailers(trailers) => {
                        Some(Ok(Frame::trailers(*trailers)))
                    }
                    End::Error { error, .. } => Some(Err(error)),
                })
            }
            KindProj::Prefixed { bytes, rest } => {
                if !bytes.is_empty() {
                    return Poll::Ready(Some(Ok(Frame::data(mem::take(bytes)))));
                }
                poll_bytes(rest.as_mut(), cx)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Inner { body } => body.is_end_stream(),
            Kind::Held { bytes, end } => bytes.is_empty() && matches!(end, End::Nothing),
            Kind::Prefixed { bytes, rest } => bytes.is_empty() && rest.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Inner { body } => body.size_hint(),
            Kind::Held {
                bytes,
                end: End::Error { .. } | End::LateTrailers(_),
            } => at_least(bytes.len() as u64),
            Kind::Held { bytes, .. } => SizeHint::with_exact(bytes.len() as u64),
            Kind::Prefixed { bytes, rest } => after(bytes.len() as u64, &rest.size_hint()),
        }
    }
}

impl<B: http_body::Body> fmt::Debug for Body<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Inner { .. } => f.write_str("Body::Inner"),
            Kind::Held { bytes, end } => f
                .debug_struct("Body::Held")
                .field("len", &bytes.len())
                .field("end", &end.name())
                .finish(),
            Kind::Prefixed { bytes, .. } => f
                .debug_struct("Body::Prefixed")
                .field("len", &bytes.len())
                .finish_non_exhaustive(),
        }
    }
}

impl<E> End<E> {
    const fn name(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Trailers(_) | Self::LateTrailers(_) => "trailers",
            Self::Error { .. } => "error",
        }
    }
}

/// Polls a frame of any body and turns its data into `Bytes`, which copies only where the data is something else.
pub(crate) fn poll_bytes<B: http_body::Body>(
    body: Pin<&mut B>,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
    let frame = ready!(body.poll_frame(cx));
    Poll::Ready(frame.map(|frame| {
        frame.map(|frame| frame.map_data(|mut data| data.copy_to_bytes(data.remaining())))
    }))
}

fn at_least(lower: u64) -> SizeHint {
    let mut hint = SizeHint::new();
    hint.set_lower(lower);
    hint
}

fn after(prefix: u64, rest: &SizeHint) -> SizeHint {
    let mut hint = at_least(prefix.saturating_add(rest.lower()));
    if let Some(upper) = rest.upper().and_then(|upper| upper.checked_add(prefix)) {
        hint.set_upper(upper);
    }
    hint
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body::Body as _;
    use http_body_util::{BodyExt as _, Empty, Full};
    use tokio_test::{assert_pending, assert_ready, task};

    use super::*;

    fn trailers() -> HeaderMap {
        [(
            http::HeaderName::from_static("checksum"),
            "1".parse().unwrap(),
        )]
        .into_iter()
        .collect()
    }

    #[tokio::test]
    async fn held_bytes_announce_their_exact_size_and_keep_their_trailers() {
        let body = Body::<Empty<Bytes>>::with_trailers("abc".into(), Some(trailers()));
        assert_eq!(body.size_hint().exact(), Some(3));
        assert!(!body.is_end_stream());
        let collected = body.collect().await.unwrap();
        assert_eq!(collected.trailers(), Some(&trailers()));
        assert_eq!(collected.to_bytes(), "abc");
    }

    #[tokio::test]
    async fn late_trailers_come_behind_a_body_of_no_announced_length() {
        let body = Body::<Empty<Bytes>>::with_late_trailers("abc".into(), trailers());
        assert_eq!(body.size_hint().exact(), None);
        assert_eq!(body.size_hint().lower(), 3);
        let collected = body.collect().await.unwrap();
        assert_eq!(collected.trailers(), Some(&trailers()));
        assert_eq!(collected.to_bytes(), "abc");
    }

    #[tokio::test]
    async fn a_failing_body_never_claims_to_be_whole() {
        let mut body =
            Body::<http_body_util::Limited<Full<Bytes>>>::failing("abc".into(), "cut".into());
        assert!(body.is_failing());
        assert_eq!(body.size_hint().exact(), None);
        assert_eq!(body.size_hint().lower(), 3);
        assert_eq!(
            body.frame().await.unwrap().unwrap().into_data().unwrap(),
            "abc"
        );
        assert!(!body.is_end_stream());
        assert_eq!(body.frame().await.unwrap().unwrap_err().to_string(), "cut");
        assert!(body.frame().await.is_none());
    }

    #[test]
    fn an_error_lets_what_came_before_be_flushed() {
        let body =
            Body::<http_body_util::Limited<Full<Bytes>>>::failing("abc".into(), "cut".into());
        let mut body = task::spawn(body);
        let frame = assert_ready!(body.enter(|cx, body| body.poll_frame(cx)));
        assert_eq!(frame.unwrap().unwrap().into_data().unwrap(), "abc");
        assert_pending!(body.enter(|cx, body| body.poll_frame(cx)));
        assert!(body.is_woken());
        let error = assert_ready!(body.enter(|cx, body| body.poll_frame(cx)));
        assert_eq!(error.unwrap().unwrap_err().to_string(), "cut");
    }

    #[tokio::test]
    async fn a_prefix_is_followed_by_the_rest_and_counted_in_the_size() {
        let body = Body::prefixed("ab".into(), Box::pin(Full::new(Bytes::from("cde"))));
        assert_eq!(body.size_hint().exact(), Some(5));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "abcde");
    }

    #[test]
    fn the_empty_body_ends_at_once() {
        let body = Body::<Full<Bytes>>::empty();
        assert!(body.is_end_stream());
        assert_eq!(body.size_hint().exact(), Some(0));
    }

    #[test]
    fn an_inner_body_passes_through_unchanged() {
        let (mut sender, channel) = http_body_util::channel::Channel::<Bytes, Infallible>::new(1);
        let mut body = task::spawn(Body::inner(channel));
        assert_pending!(body.enter(|cx, body| body.poll_frame(cx)));
        sender.try_send(Frame::data("x".into())).unwrap();
        assert!(body.is_woken());
        let frame = assert_ready!(body.enter(|cx, body| body.poll_frame(cx)));
        assert_eq!(frame.unwrap().unwrap().into_data().unwrap(), "x");
    }

    #[test]
    fn a_size_that_would_overflow_is_unknown() {
        let hint = after(2, &SizeHint::with_exact(u64::MAX));
        assert_eq!(hint.upper(), None);
        assert_eq!(hint.lower(), u64::MAX);
    }
}
