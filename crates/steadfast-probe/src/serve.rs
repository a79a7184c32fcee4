//! `probe serve`.

mod app;
mod args;
mod canned;
mod clock;
mod handler;
mod keys;
mod runs;
mod server;
mod steering;
mod stop;
mod tenant;

use std::time::Duration;

use tokio::net::TcpListener;

use self::{app::App, server::Server};
pub(crate) use self::{args::Args, keys::KeysError};
use crate::{failure::Failure, lines};

/// How long running calls may take to end after the signal to stop.
const DRAIN: Duration = Duration::from_secs(10);

/// Serves until it is told to stop, and until what runs then has ended.
pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    if let Some(path) = &args.keys {
        keys::check(path).map_err(|error| Failure::Keys {
            path: path.clone(),
            error,
        })?;
    }
    let App { router, drain } = App::new(&args)?;

    // Whoever reads the first line may send the signal the next moment.
    let stop = stop::signal().map_err(Failure::Runtime)?;
    let address = args.listen;
    let bind = TcpListener::bind(address).await;
    let listener = bind.map_err(|error| Failure::Listen { address, error })?;
    let address = listener.local_addr().map_err(Failure::Runtime)?;
    lines::print_text(&format!("listening on {address}"))?;

    Server::new(router, args.http2)
        .serve(listener, stop, &drain, DRAIN)
        .await;
    Ok(())
}
