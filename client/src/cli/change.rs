//! What the commands that change files share: how they end, and what they say about a change that succeeded.

use filectx_client::Error;
use filectx_openapi::Warning;
use serde::Serialize;

use super::Context;
use super::exit::{Exit, Failure};

/// Prints what a change came to: with `json` the contract's answer, a refusal's Problem too.
pub(crate) fn finish<T: Serialize>(
    result: Result<T, Error>,
    json: bool,
    context: &mut Context,
    show: impl FnOnce(&T, &mut Context) -> Result<(), Failure>,
) -> Result<Exit, Failure> {
    match result {
        Ok(response) if json => context.out.json(&response)?,
        Ok(response) => show(&response, context)?,
        Err(error) => {
            if let (true, Error::Refused(problem)) = (json, &error) {
                context.out.json(problem)?;
            }
            return Err(error.into());
        }
    }
    Ok(Exit::Done)
}

/// Says on stderr what could not be kept, and what else is worth knowing.
pub(crate) fn warn(warnings: &[Warning], atomic: bool, context: &mut Context) -> Result<(), Failure> {
    for warning in warnings {
        context.out.note(&format!("warning: {}", warning.message))?;
    }
    if !atomic {
        context.out.note("warning: a rename was impossible here, so the file was written in place")?;
    }
    Ok(())
}
