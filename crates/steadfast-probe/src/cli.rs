use clap::{Parser, Subcommand};

use crate::{call, serve};

/// Drives steadfast's layers from outside, over sockets and standard input.
#[derive(Debug, Parser)]
#[command(name = "probe", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serves a steered handler behind the server's layers
    Serve(serve::Args),
    /// Sends the requests on standard input through the client's layers
    Call(call::Args),
    /// Reads what the response headers on standard input ask of a client
    Headers,
    /// Judges webhook URLs (not there yet)
    Url,
    /// Judges addresses (not there yet)
    Ip,
    /// Runs sliding windows (not there yet)
    Window,
    /// Signs the requests on standard input
    Sign,
    /// Verifies the signed requests on standard input
    Verify,
}
