mod endings;
mod keys;
mod lines;
mod repeats;
mod signs;

use serde_json::Value;

use crate::kit::Lines;

/// Makes one call.
fn call(flags: &[&str], line: &Value) -> Value {
    let args = [&["call"], flags].concat();
    Lines::of(&args, &[line.to_string()]).only()
}
