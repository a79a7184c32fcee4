use std::{borrow::Cow, fmt, sync::Arc};

use http::request::Parts;
use sha2::{Digest as _, Sha256};
use steadfast_core::{KeyFrom, OriginalUriFn, Refusal, original_uri};

/// Within which bounds a key is one key (I10).
///
/// A record belongs to (tenant, method, endpoint, key). Whose requests count as one tenant's has to be said: two
/// customers who choose the same key must never see each other's answers.
///
/// ```
/// use http::request::Parts;
/// use steadfast_core::{Key, Refusal};
/// use steadfast_idempotency::Scope;
///
/// /// Put into the extensions by the layer that authenticates.
/// #[derive(Clone)]
/// struct Account(String);
///
/// let scope = Scope::tenant(|parts: &Parts| match parts.extensions.get() {
///     Some(Account(id)) => Ok(Key::from(id.clone())),
///     None => Err(Refusal::unauthorized()),
/// });
/// # let _ = scope;
/// ```
#[derive(Clone)]
pub struct Scope {
    tenant: Tenant,
    original: OriginalUriFn,
    endpoint: Option<EndpointFn>,
}

type EndpointFn = Arc<dyn Fn(&Parts) -> Cow<'_, str> + Send + Sync>;

#[derive(Clone)]
enum Tenant {
    Global,
    From(Arc<dyn KeyFrom>),
}

/// The SHA-256 digest of a tenant.
pub(super) type TenantDigest = [u8; 32];

impl Scope {
    /// One scope for each tenant that `key_from` names.
    pub fn tenant(key_from: impl KeyFrom) -> Self {
        Self::new(Tenant::From(Arc::new(key_from)))
    }

    /// One scope for everybody. Only where there is a single tenant, or where keys cannot collide: whoever knows a key
    /// and the request gets the stored answer.
    #[must_use]
    pub fn global() -> Self {
        Self::new(Tenant::Global)
    }

    fn new(tenant: Tenant) -> Self {
        Self {
            tenant,
            original: original_uri,
            endpoint: None,
        }
    }

    /// Sets what counts as the endpoint. Default: the full path as the client sent it.
    ///
    /// The path and the query are part of what a request is, whatever the endpoint: a matched route as endpoint makes
    /// the same key on two resources of that route a misuse that is refused, instead of two keys.
    #[must_use]
    pub fn endpoint<F>(mut self, endpoint: F) -> Self
    where
        F: Fn(&Parts) -> Cow<'_, str> + Send + Sync + 'static,
    {
        self.endpoint = Some(Arc::new(endpoint));
        self
    }

    /// Sets where the URI as the client sent it is read. Default: [`original_uri`], which knows axum's nested routers.
    #[must_use]
    pub fn original_uri(mut self, original: OriginalUriFn) -> Self {
        self.original = original;
        self
    }

    pub(super) fn tenant_of(&self, parts: &Parts) -> Result<TenantDigest, Refusal> {
        let (kind, key) = match &self.tenant {
            // Nobody's digest: no tenant's name hashes to it.
            Tenant::Global => return Ok([0; 32]),
            Tenant::From(key_from) => (b"tenant", key_from.key_from(parts)?),
        };
        Ok(Sha256::new()
            .chain_update(kind)
            .chain_update(key.as_bytes())
            .finalize()
            .into())
    }

    pub(super) fn uri_of<'a>(&self, parts: &'a Parts) -> &'a http::Uri {
        (self.original)(parts)
    }

    pub(super) fn endpoint_of<'a>(&self, parts: &'a Parts) -> Cow<'a, str> {
        match &self.endpoint {
            Some(endpoint) => endpoint(parts),
            None => Cow::Borrowed(self.uri_of(parts).path()),
        }
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenant = match self.tenant {
            Tenant::Global => "global",
            Tenant::From(_) => "from the request",
        };
        f.debug_struct("Scope")
            .field("tenant", &tenant)
            .finish_non_exhaustive()
    }
}
