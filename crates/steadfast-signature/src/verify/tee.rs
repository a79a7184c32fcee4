use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use pin_project_lite::pin_project;
use steadfast_core::Body;

use crate::{check::Check, scheme::Content};

pin_project! {
    /// A body whose data is verified on its way: it is hashed as it arrives, once.
    pub(super) struct Tee<'a, B>
    where
        B: http_body::Body,
    {
        #[pin]
        body: Body<B>,
        check: &'a mut Check,
        content: &'a Content,
    }
}

impl<'a, B: http_body::Body> Tee<'a, B> {
    pub(super) const fn new(body: B, check: &'a mut Check, content: &'a Content) -> Self {
        Self {
            body: Body::inner(body),
            check,
            content,
        }
    }
}

impl<B: http_body::Body> http_body::Body for Tee<'_, B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        let frame = ready!(this.body.poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            this.check.update(this.content, data);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
