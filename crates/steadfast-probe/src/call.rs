//! `probe call`.

mod answer;
mod args;
mod request;
mod signer;
mod stack;

use std::{pin::pin, time::Duration};

use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use steadfast::core::facts::CallReport;
use tokio::time::timeout;

use self::{
    answer::Answer,
    request::Call,
    stack::{Events, Stack},
};
pub(crate) use self::{args::Args, signer::SignerError};
use crate::{
    failure::Failure,
    lines::{self, BadLine, Lines},
};

/// Makes the calls on standard input, and answers each when it has ended.
pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    args.check()?;
    let stack = Stack::new(&args)?;
    let read = stream::unfold(Lines::stdin(), |mut lines| async {
        Some((lines.next().await.transpose()?, lines))
    });
    let answers = read
        .map(|line| async { Ok::<_, Failure>(answer(&stack, line?).await) })
        .buffer_unordered(args.concurrency.get());
    let mut answers = pin!(answers);
    let mut bad = 0;
    while let Some(answer) = answers.next().await {
        let answer = answer?;
        bad += u64::from(answer.is_bad_line);
        lines::print(&answer)?;
    }
    match bad {
        0 => Ok(()),
        bad => Err(Failure::BadLines(bad)),
    }
}

async fn answer(stack: &Stack, line: Result<Value, BadLine>) -> Answer {
    let call = match line {
        Ok(line) => {
            let id = line.get("id").cloned().unwrap_or_default();
            Call::read(line).map_err(|bad| Answer::bad_line(id, bad))
        }
        Err(bad) => Err(Answer::bad_line(Value::Null, bad)),
    };
    match call {
        Ok(call) => make(stack, call).await,
        Err(answer) => answer,
    }
}

async fn make(stack: &Stack, call: Call) -> Answer {
    let report = CallReport::new();
    let events = Events::default();
    let sent = stack.send(call.request, &report, &events);
    let limit = call.cancel_after_ms.map(Duration::from_millis);
    let ended = match limit {
        // Running out of time drops the call, and that is all there is to a cancel.
        Some(limit) => timeout(limit, sent).await.ok(),
        None => Some(sent.await),
    };
    let report = report.snapshot();
    match ended {
        Some(ended) => Answer::ended(call.id, ended, &report, events.take()),
        None => Answer::cancelled(call.id, &report),
    }
}
