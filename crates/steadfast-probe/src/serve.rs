//! `probe serve`.

mod app;
mod args;
mod canned;
mod clock;
mod guard;
mod handler;
mod running;
mod runs;
mod server;
mod steering;
mod stop;
mod tenant;
mod verify;

use std::time::Duration;

use tokio::net::TcpListener;

pub(crate) use self::args::Args;
use self::{app::App, server::Server};
use crate::{failure::Failure, keys::Keys, lines};

/// How long running calls may take to end after the signal to stop.
const DRAIN: Duration = Duration::from_secs(10);

/// Serves until it is told to stop, and until what runs then has ended.
pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    let keys = match &args.keys {
        Some(path) => Keys::read(path).map_err(|error| Failure::Keys {
            path: path.clone(),
            error,
        })?,
        None => Keys::default(),
    };
    let App { router, running } = App::new(&args, &keys)?;

    // Whoever reads the first line may send the signal the next moment.
    let stop = stop::signal().map_err(Failure::Runtime)?;
    let address = args.listen;
    let bind = TcpListener::bind(address).await;
    let listener = bind.map_err(|error| Failure::Listen { address, error })?;
    let address = listener.local_addr().map_err(Failure::Runtime)?;
    lines::print_text(&format!("listening on {address}"))?;

    Server::new(router, args.http2)
        .serve(listener, stop, &running, DRAIN)
        .await;
    Ok(())
}
