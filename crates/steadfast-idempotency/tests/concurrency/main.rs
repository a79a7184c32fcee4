//! Many calls at once: on several threads, and in random order against a model.

mod model;
mod races;
