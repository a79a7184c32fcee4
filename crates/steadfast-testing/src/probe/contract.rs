//! What the compiler can check.

use std::future::Future;

use tower_service::Service;

/// Checks, by compiling, that `S` is `Clone + Send + Sync + 'static` and that its futures are `Send + 'static`.
///
/// ```
/// # use http::{Request, Response};
/// # use http_body_util::Full;
/// # use steadfast_testing::{ServiceProbe, assert_service_contract};
/// # use bytes::Bytes;
/// let service = ServiceProbe::respond(|_| Response::new(Full::<Bytes>::default()));
/// assert_service_contract::<_, Request<()>>(&service);
/// ```
pub const fn assert_service_contract<S, Req>(_service: &S)
where
    S: Service<Req> + Clone + Send + Sync + 'static,
    S::Future: Future<Output = Result<S::Response, S::Error>> + Send + 'static,
{
}

/// Checks, by compiling, that the error of `S` is exactly `E`.
///
/// ```
/// # use std::convert::Infallible;
/// # use http::{Request, Response};
/// # use http_body_util::Full;
/// # use steadfast_testing::{ServiceProbe, assert_error};
/// # use bytes::Bytes;
/// let service = ServiceProbe::respond(|_| Response::new(Full::<Bytes>::default()));
/// assert_error::<_, Request<()>, Infallible>(&service);
/// ```
pub const fn assert_error<S, Req, E>(_service: &S)
where
    S: Service<Req, Error = E>,
{
}
