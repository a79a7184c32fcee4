use tokio::runtime::Builder;

/// Runs `work` in the context of a runtime, which layers that outlive their callers, and timers, ask for.
///
/// # Errors
///
/// When the runtime cannot be built.
pub fn in_runtime<T>(work: impl FnOnce() -> T) -> std::io::Result<T> {
    let runtime = Builder::new_current_thread().enable_time().build()?;
    let _entered = runtime.enter();
    Ok(work())
}
