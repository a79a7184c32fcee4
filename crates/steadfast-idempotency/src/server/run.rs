use std::{
    convert::Infallible,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::{Pin, pin},
};

use futures_util::FutureExt as _;
use http::{Method, Response, StatusCode, response};
use steadfast_core::{Body, Capped, is_stream, read_capped};

use super::{
    disposition::{Disposition, DoNotStore},
    lease::Lease,
    owner::Owner,
    record,
    save::End,
};
use crate::store::{Store, Tombstone, TombstoneReason};

impl<St: Store> Owner<St> {
    /// Runs the handler under the lease and ends the claim with what comes of it.
    pub(super) async fn run<B, E>(
        &self,
        lease: &Lease,
        method: &Method,
        handler: Pin<&mut impl Future<Output = Result<Response<B>, ServiceError<E>>>>,
    ) -> Result<Response<Body<B>>, E>
    where
        B: http_body::Body,
    {
        // A panic goes on unwinding, but not before the claim has been ended. Whatever is unwinding through here
        // afterwards is not looked at again, so nothing broken is seen.
        let handled = pin!(AssertUnwindSafe(handler).catch_unwind());
        let mut renewal = pin!(self.renew_forever(lease));
        let (head, body) = match renewing(renewal.as_mut(), handled).await {
            Ok(Ok(response)) => response.into_parts(),
            Ok(Err(ServiceError::NotReady(error))) => {
                self.settle(lease, End::Release).await;
                return Err(error);
            }
            Ok(Err(ServiceError::Called(error))) => {
                self.settle(lease, self.end_of_crash()).await;
                return Err(error);
            }
            Err(panic) => {
                self.settle(lease, self.end_of_crash()).await;
                resume_unwind(panic)
            }
        };
        let disposal = match catch_unwind(AssertUnwindSafe(|| self.dispose(method, &head))) {
            Ok(disposal) => disposal,
            // What the answer means is not known: it may be that of an operation that was done.
            Err(panic) => {
                self.settle(lease, End::Hold).await;
                resume_unwind(panic)
            }
        };
        let end = match disposal {
            Disposal::End(end) => end,
            Disposal::Keep => return Ok(self.keep(lease, renewal, head, body).await),
        };
        self.settle(lease, end).await;
        Ok(Response::from_parts(head, Body::inner(body)))
    }

    /// Reads the body and stores the answer, or remembers why it could not be stored (rows 18, 24 and 26).
    async fn keep<B: http_body::Body>(
        &self,
        lease: &Lease,
        renewal: Pin<&mut impl Future<Output = Infallible>>,
        head: response::Parts,
        body: B,
    ) -> Response<Body<B>> {
        // The first look at the body belongs to it as much as the others: any of them may panic.
        let reading = async {
            let announced = body.size_hint().exact().is_some();
            let read = read_capped(body, self.config.max_stored_body).await;
            (read, announced)
        };
        let reading = pin!(AssertUnwindSafe(reading).catch_unwind());
        let done = |reason| {
            End::Tombstone(Tombstone {
                status: head.status.as_u16(),
                reason,
            })
        };
        let (read, announced) = match renewing(renewal, reading).await {
            Ok(read) => read,
            Err(panic) => {
                self.settle(lease, done(TombstoneReason::BodyError)).await;
                resume_unwind(panic)
            }
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
        self.settle(lease, end).await;
        let body = match read {
            Capped::Complete {
                bytes,
                trailers: Some(trailers),
            } if !announced => Body::with_late_trailers(bytes, trailers),
            read => read.into_body(),
        };
        Response::from_parts(head, body)
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

/// Polls `work`, and renews the lease whenever it is due.
pub(super) async fn renewing<F: Future>(
    renewal: Pin<&mut impl Future<Output = Infallible>>,
    work: Pin<&mut F>,
) -> F::Output {
    tokio::select! {
        biased;
        output = work => output,
        never = renewal => match never {},
    }
}

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
