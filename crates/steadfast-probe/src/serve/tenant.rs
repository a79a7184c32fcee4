use http::{HeaderMap, HeaderName, StatusCode, request::Parts};
use steadfast::core::{Key, MakeRejection as _, Problem, ProblemJson, Refusal};

const X_TENANT: HeaderName = HeaderName::from_static("x-tenant");

/// The tenant whom nobody lets in.
const REFUSED: &[u8] = b"refuse me";

/// The tenant a request names.
pub(super) fn name(headers: &HeaderMap) -> &[u8] {
    headers
        .get(X_TENANT)
        .map_or(b"t0", |tenant| tenant.as_bytes())
}

/// The tenant as the layers want it.
pub(super) fn key_from(parts: &Parts) -> Result<Key, Refusal> {
    match name(&parts.headers) {
        REFUSED => Err(refusal()),
        tenant => Ok(Key::from(tenant)),
    }
}

fn refusal() -> Refusal {
    let problem = Problem::new(
        StatusCode::FORBIDDEN,
        "tenant_refused",
        "The tenant asked to be refused",
    );
    ProblemJson::default().make_rejection(&problem).into()
}
