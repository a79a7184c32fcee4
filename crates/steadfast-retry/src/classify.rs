use std::{any::Any, error::Error, io};

use steadfast_core::BoxError;

/// What kind of failure an error of the inner service is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorClass {
    /// No connection came about: the server has seen nothing.
    Connect,
    /// A repeat cannot help: the call ends with this error.
    Final,
    /// No answer in time. The server may have acted.
    Timeout,
    /// Anything else. The server may have acted.
    Unknown,
}

impl ErrorClass {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Final => "final",
            Self::Timeout => "timeout",
            Self::Unknown => "network",
        }
    }
}

/// Tells what kind of failure an error is. A closure `Fn(&E) -> ErrorClass` does.
///
/// All classes but [`ErrorClass::Final`] are repeated where the call may be; the class is in the logs.
pub trait ClassifyError<E> {
    /// Classifies `error`.
    fn classify_error(&self, error: &E) -> ErrorClass;
}

impl<E, F> ClassifyError<E> for F
where
    F: Fn(&E) -> ErrorClass,
{
    fn classify_error(&self, error: &E) -> ErrorClass {
        self(error)
    }
}

/// Recognises the errors of the clients and layers in use, also inside a boxed error and as the source of another one.
///
/// * tower's and tokio's `Elapsed`, and `io::ErrorKind::TimedOut`: [`ErrorClass::Timeout`];
/// * hyper-util's failed connects (feature `hyper-util`): [`ErrorClass::Connect`];
/// * reqwest's timeouts and failed connects, and as [`ErrorClass::Final`] its requests that cannot be built and redirects
///   that it refuses to follow (feature `reqwest`);
/// * everything else: [`ErrorClass::Unknown`].
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a classifier of one's own falls back on it"
)]
pub struct KnownErrors;

impl<E: 'static> ClassifyError<E> for KnownErrors {
    fn classify_error(&self, error: &E) -> ErrorClass {
        let mut next = known_type(error);
        while let Some(error) = next {
            if let Some(class) = class_of(error) {
                return class;
            }
            next = cause_of(error);
        }
        ErrorClass::Unknown
    }
}

fn known_type(error: &dyn Any) -> Option<&(dyn Error + 'static)> {
    if let Some(boxed) = error.downcast_ref::<BoxError>() {
        return Some(&**boxed);
    }
    #[cfg(feature = "hyper-util")]
    if let Some(error) = error.downcast_ref::<hyper_util::client::legacy::Error>() {
        return Some(error);
    }
    #[cfg(feature = "reqwest")]
    if let Some(error) = error.downcast_ref::<reqwest::Error>() {
        return Some(error);
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return Some(error);
    }
    None
}

/// An `io::Error` made of another error hides that one from its own `source`.
fn cause_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref)
    {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

fn class_of(error: &(dyn Error + 'static)) -> Option<ErrorClass> {
    if error.is::<tower::timeout::error::Elapsed>() || error.is::<tokio::time::error::Elapsed>() {
        return Some(ErrorClass::Timeout);
    }
    #[cfg(feature = "hyper-util")]
    if let Some(error) = error.downcast_ref::<hyper_util::client::legacy::Error>() {
        return error.is_connect().then_some(ErrorClass::Connect);
    }
    #[cfg(feature = "reqwest")]
    if let Some(error) = error.downcast_ref::<reqwest::Error>() {
        return of_reqwest(error);
    }
    match error.downcast_ref::<io::Error>()?.kind() {
        io::ErrorKind::TimedOut => Some(ErrorClass::Timeout),
        _ => None,
    }
}

#[cfg(feature = "reqwest")]
fn of_reqwest(error: &reqwest::Error) -> Option<ErrorClass> {
    if error.is_builder() || error.is_redirect() {
        Some(ErrorClass::Final)
    } else if error.is_connect() {
        Some(ErrorClass::Connect)
    } else if error.is_timeout() {
        Some(ErrorClass::Timeout)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tower::timeout::error::Elapsed;

    use super::*;

    #[test]
    fn a_timeout_is_recognised_wherever_it_hides() {
        let boxed: BoxError = Elapsed::new().into();
        assert_eq!(KnownErrors.classify_error(&boxed), ErrorClass::Timeout);
        let wrapped: BoxError = io::Error::other(Elapsed::new()).into();
        assert_eq!(KnownErrors.classify_error(&wrapped), ErrorClass::Timeout);
        let io = io::Error::from(io::ErrorKind::TimedOut);
        assert_eq!(KnownErrors.classify_error(&io), ErrorClass::Timeout);
    }

    #[test]
    fn an_error_that_nobody_knows_is_a_network_failure() {
        assert_eq!(KnownErrors.classify_error(&"reset"), ErrorClass::Unknown);
        let reset = io::Error::from(io::ErrorKind::ConnectionReset);
        assert_eq!(KnownErrors.classify_error(&reset), ErrorClass::Unknown);
        fn accepts<C: ClassifyError<Infallible>>(_: C) {}
        accepts(KnownErrors);
    }

    #[test]
    fn a_closure_classifies() {
        let closure = |error: &&str| {
            if *error == "bad url" {
                ErrorClass::Final
            } else {
                ErrorClass::Unknown
            }
        };
        assert_eq!(closure.classify_error(&"bad url"), ErrorClass::Final);
    }
}
