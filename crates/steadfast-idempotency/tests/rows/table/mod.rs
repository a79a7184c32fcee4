//! The 31 rows, each test named after its row.

mod answer;
mod claim;
mod end;
mod request;
