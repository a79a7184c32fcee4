use std::{
    mem,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Extensions, Method, Request, Response};
use steadfast_core::{
    Body,
    facts::{CallReport, KeyCreated, OperationClass},
};
use steadfast_headers::IdempotencyKey;
use tower_service::Service;

use super::{future::ResponseFuture, layer::Config, rejection::KeyRejection};

/// Middleware that gives each logical call one idempotency key (I01–I05).
///
/// Made by [`IdempotencyKeyLayer`](crate::IdempotencyKeyLayer).
///
/// A key of the caller's own, an [`IdempotencyKey`] in the request's extensions or a header, wins: it is validated,
/// sent as it is, and never replaced. A bad one is answered with 400, and nothing is sent.
///
/// The request's extensions then hold the [`IdempotencyKey`], the [`OperationClass`] and, for a minted key, its
/// [`KeyCreated`]; those of the response hold the key and [`Replayed`](steadfast_core::facts::Replayed). The caller's
/// [`CallReport`], if there is one, holds the key too, so that the call can be made again after an error.
///
/// # Readiness
///
/// Ready when the inner service is. A call that is refused gives the inner service's reservation back.
#[derive(Clone, Debug)]
pub struct SetIdempotencyKey<S> {
    inner: S,
    config: Arc<Config>,
}

impl<S> SetIdempotencyKey<S> {
    pub(super) const fn new(inner: S, config: Arc<Config>) -> Self {
        Self { inner, config }
    }
}

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for SetIdempotencyKey<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone,
    ResBody: http_body::Body,
{
    type Response = Response<Body<ResBody>>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, ResBody>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<ReqBody>) -> Self::Future {
        match self.config.prepare(&mut request) {
            Ok(None) => ResponseFuture::forward(self.inner.call(request)),
            Ok(Some(key)) => {
                let replayed = self.config.replayed.clone();
                ResponseFuture::keyed(self.inner.call(request), key, replayed)
            }
            Err(rejection) => {
                // Else an idle client would keep what others wait for.
                let clone = self.inner.clone();
                drop(mem::replace(&mut self.inner, clone));
                ResponseFuture::rejected(self.config.reject(rejection))
            }
        }
    }
}

impl Config {
    /// Sets what the call lacks, and says which key it carries.
    fn prepare<B>(&self, request: &mut Request<B>) -> Result<Option<IdempotencyKey>, KeyRejection> {
        let own = self.own_key(request)?;
        let class = self.class_of(request);
        let key = match own {
            Some(key) => key,
            None if self.mints(request, class) => {
                let key = self.mint();
                let extensions = request.extensions_mut();
                extensions.insert(KeyCreated(self.clock.now()));
                extensions.insert(key.clone());
                self.set_header(request, &key);
                key
            }
            None => {
                declare(request.extensions_mut(), class);
                return Ok(None);
            }
        };
        let class = class.or_else(|| self.class_of_keyed(request.method()));
        declare(request.extensions_mut(), class);
        if let Some(report) = request.extensions().get::<CallReport>() {
            report.update(|report| report.key = Some(key.clone()));
        }
        Ok(Some(key))
    }

    /// The caller's own key, in the extensions and in the header.
    fn own_key<B>(&self, request: &mut Request<B>) -> Result<Option<IdempotencyKey>, KeyRejection> {
        let sent = self
            .rules
            .from_headers(request.headers(), &self.header)
            .map_err(KeyRejection::Invalid)?;
        let given = request.extensions().get::<IdempotencyKey>().cloned();
        match (given, sent) {
            (None, None) => Ok(None),
            (None, Some(sent)) => {
                request.extensions_mut().insert(sent.clone());
                Ok(Some(sent))
            }
            (Some(given), None) => {
                let checked = IdempotencyKey::new(given.as_bytes(), &self.rules);
                let given = checked.map_err(KeyRejection::Invalid)?;
                self.set_header(request, &given);
                Ok(Some(given))
            }
            (Some(given), Some(sent)) if given == sent => Ok(Some(sent)),
            (Some(_), Some(_)) => Err(KeyRejection::Differs),
        }
    }

    fn set_header<B>(&self, request: &mut Request<B>, key: &IdempotencyKey) {
        let value = if self.quoted {
            key.to_quoted_header_value()
        } else {
            key.to_header_value()
        };
        request.headers_mut().insert(self.header.clone(), value);
    }

    /// What the caller, or else the table, says of the operation.
    fn class_of<B>(&self, request: &Request<B>) -> Option<OperationClass> {
        let said = request.extensions().get::<OperationClass>().copied();
        said.or_else(|| {
            let operations = self.operations.as_ref()?;
            operations.class_of(request.method(), request.uri().path())
        })
    }

    /// What a key makes of an operation of which nothing else is said.
    fn class_of_keyed(&self, method: &Method) -> Option<OperationClass> {
        if !self.only_where_listed {
            return Some(OperationClass::RepeatableWithKey);
        }
        // A key that the server ignores licenses nothing.
        (!method.is_safe()).then_some(OperationClass::NotRepeatable)
    }

    fn mints<B>(&self, request: &Request<B>, class: Option<OperationClass>) -> bool {
        let listed = class == Some(OperationClass::RepeatableWithKey);
        listed || (!self.only_where_listed && self.methods.contains(request.method()))
    }
}

fn declare(extensions: &mut Extensions, class: Option<OperationClass>) {
    if let Some(class) = class {
        extensions.insert(class);
    }
}
