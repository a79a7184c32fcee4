use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    thread,
};

use futures_util::FutureExt as _;
use http::{Method, Response, StatusCode, response};
use steadfast_core::{Body, Capped, is_stream, read_capped};

use super::{
    disposition::{Disposition, DoNotStore},
    lease::Lease,
    owner::Owner,
    record,
    renewal::Renewal,
    save::End,
};
use crate::store::{Store, Tombstone, TombstoneReason};

impl<St: Store> Owner<St> {
    /// Runs the handler under the lease and ends the claim with what comes of it.
    pub(super) async fn run<B, E>(
        &self,
        lease: &Lease,
        method: &Method,
        handler: Pin<Box<impl Future<Output = Result<Response<B>, ServiceError<E>>>>>,
    ) -> Result<Response<Body<B>>, E>
    where
        B: http_body::Body,
    {
        let (end, outcome) = self
            .renewing(lease, Renewal::Told, self.work(method, handler))
            .await;
        self.settle(lease, end).await;
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Runs the handler and reads its answer as far as it is to be stored. A panic goes on unwinding, but not before the
    /// claim has been ended: whatever unwinds through here is not looked at again, so nothing broken is seen.
    async fn work<B, E>(
        &self,
        method: &Method,
        handler: Pin<Box<impl Future<Output = Result<Response<B>, ServiceError<E>>>>>,
    ) -> (End, Outcome<B, E>)
    where
        B: http_body::Body,
    {
        let (head, body) = match AssertUnwindSafe(handler).catch_unwind().await {
            Ok(Ok(response)) => response.into_parts(),
            Ok(Err(ServiceError::NotReady(error))) => return (End::Release, Ok(Err(error))),
            Ok(Err(ServiceError::Called(error))) => return (self.end_of_crash(), Ok(Err(error))),
            Err(panic) => return (self.end_of_crash(), Err(panic)),
        };
        let end = match catch_unwind(AssertUnwindSafe(|| self.dispose(method, &head))) {
            Ok(Disposal::Keep) => return self.keep(head, body).await,
            Ok(Disposal::End(end)) => end,
            // What the answer means is not known: it may be that of an operation that was done.
            Err(panic) => return (End::Hold, Err(panic)),
        };
        (end, Ok(Ok(Response::from_parts(head, Body::inner(body)))))
    }

    /// Reads the body to be stored with its head, or learns why the answer cannot be stored (rows 18, 24 and 26).
    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn has room for its arguments twice"
    )]
    fn keep<B, E>(
        &self,
        head: response::Parts,
        body: B,
    ) -> impl Future<Output = (End, Outcome<B, E>)>
    where
        B: http_body::Body,
    {
        async move {
            // The first look at the body belongs to it as much as the others: any of them may panic.
            let reading = async {
                let announced = body.size_hint().exact().is_some();
                let read = read_capped(body, self.config.max_stored_body).await;
                (read, announced)
            };
            let done = |reason| {
                End::Tombstone(Tombstone {
                    status: head.status.as_u16(),
                    reason,
                })
            };
            let (read, announced) = match AssertUnwindSafe(reading).catch_unwind().await {
                Ok(read) => read,
                Err(panic) => return (done(TombstoneReason::BodyError), Err(panic)),
            };
            let end = match &read {
                Capped::Over { .. } => done(TombstoneReason::TooLarge),
                Capped::Failed { .. } => done(TombstoneReason::BodyError),
                Capped::Complete { bytes, .. } => {
                    match record::encode(&head, bytes, &self.config.stored_headers) {
                        Some(record) => End::Complete {
                            record,
                            status: head.status.as_u16(),
                        },
                        None => done(TombstoneReason::TooLarge),
                    }
                }
            };
            let body = match read {
                Capped::Complete {
                    bytes,
                    trailers: Some(trailers),
                } if !announced => Body::with_late_trailers(bytes, trailers),
                read => read.into_body(),
            };
            (end, Ok(Ok(Response::from_parts(head, body))))
        }
    }

    fn dispose(&self, method: &Method, head: &response::Parts) -> Disposal {
        let status = head.status;
        let tunnel = status == StatusCode::SWITCHING_PROTOCOLS
            || (*method == Method::CONNECT && status.is_success());
        let disposition = match &self.config.classify {
            Some(classify) => classify(head),
            None => self.config.on_failure.of_status(status),
        };
        let streamed = is_stream(&head.headers) || head.extensions.get::<DoNotStore>().is_some();
        match disposition {
            _ if tunnel => Disposal::streamed(status),
            Disposition::Store if streamed => Disposal::streamed(status),
            Disposition::Store => Disposal::Keep,
            Disposition::Hold => Disposal::End(End::Hold),
            Disposition::Release => Disposal::End(End::Release),
        }
    }

    fn end_of_crash(&self) -> End {
        match self.config.on_failure.of_crash() {
            Disposition::Hold => End::Hold,
            Disposition::Release | Disposition::Store => End::Release,
        }
    }
}

/// An error of the service inside.
pub(super) enum ServiceError<E> {
    /// It was called, and may have done anything.
    Called(E),
    /// It was never called: it is dead.
    NotReady(E),
}

impl<E> ServiceError<E> {
    pub(super) fn into_inner(self) -> E {
        match self {
            Self::Called(error) | Self::NotReady(error) => error,
        }
    }
}

/// What a handler came to: its answer, its error, or its panic.
type Outcome<B, E> = thread::Result<Result<Response<Body<B>>, E>>;

/// What is to be done with an answer.
enum Disposal {
    /// Its claim ends so, whatever the body.
    End(End),
    /// Its body is read first.
    Keep,
}

impl Disposal {
    const fn streamed(status: StatusCode) -> Self {
        Self::End(End::Tombstone(Tombstone {
            status: status.as_u16(),
            reason: TombstoneReason::Streamed,
        }))
    }
}
