//! Schemes that are a recipe: where what stands, and what is signed in which order.

mod builder;
mod error;
mod fields;
mod format;
mod presets;
mod scheme;
mod segment;
#[cfg(test)]
mod tests;

pub(crate) use self::fields::only;
pub use self::{
    builder::HmacSchemeBuilder, error::SchemeError, format::SignatureFormat, scheme::HmacScheme,
    segment::Segment,
};
