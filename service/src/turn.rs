//! One request's turn: the right to work (a permit), the form of its answer, and the one way in which an operation runs:
//! on a blocking thread, under a deadline, ended when the caller hangs up.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use filectx_files::{Cancel, CancelOnDrop, Error, Files};
use filectx_openapi::ItemError;
use serde::Serialize;

use crate::answer::{self, Facts};
use crate::failure::Failure;
use crate::guard::load::Permit;
use crate::negotiate::{Coding, Form};
use crate::outcomes::{Claimed, Key, Outcome};
use crate::service::Service;

/// A stuck system call cannot be ended: so long after the deadline its request is answered without it.
const GRACE: Duration = Duration::from_millis(100);

/// A request that may be worked on now.
pub(crate) struct Turn {
    pub(crate) service: Arc<Service>,
    pub(crate) permit: Permit,
    pub(crate) form: Form,
    pub(crate) coding: Option<Coding>,
    /// What makes a change that is asked for again known.
    pub(crate) key: Option<Key>,
}

impl Turn {
    pub(crate) fn new(service: Arc<Service>, permit: Permit, form: Form, coding: Option<Coding>) -> Self {
        Self { service, permit, form, coding, key: None }
    }

    /// The turn of a request under `key`.
    pub(crate) fn keyed(self, key: Option<Key>) -> Self {
        Self { key, ..self }
    }

    /// Runs an operation that only looks, and answers it as JSON. `verb` gets the engine and the request's right to go
    /// on (`deadline_ms` from now, at most the service's limit); what it returns is logged with the facts beside it. A
    /// verb that hangs in the system is left behind when the time is up.
    pub(crate) async fn look<T: Serialize>(
        self,
        deadline_ms: Option<u64>,
        verb: impl FnOnce(&Arc<Files>, &Cancel) -> Result<(T, Facts), ItemError> + Send + 'static,
    ) -> Result<Response, Failure> {
        let cancel = self.cancel(deadline_ms);
        let up = tokio::time::Instant::from_std(cancel.deadline()) + GRACE;
        match tokio::time::timeout_at(up, self.run(cancel, verb)).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::DeadlineExceeded.item("".as_ref()).into()),
        }
    }

    /// Runs an operation that changes something, and answers it as JSON. As [`look`](Self::look), but never left behind
    /// while the caller is there: an answer says what really happened.
    pub(crate) async fn change<T: Serialize>(
        self,
        verb: impl FnOnce(&Arc<Files>, &Cancel) -> Result<(T, Facts), ItemError> + Send + 'static,
    ) -> Result<Response, Failure> {
        let cancel = self.cancel(None);
        self.run(cancel, verb).await
    }

    /// The request's right to go on, until it is dropped or the time is up.
    pub(crate) fn cancel(&self, deadline_ms: Option<u64>) -> Cancel {
        let most = self.service.files().limits().deadline_ms;
        Cancel::after(Duration::from_millis(deadline_ms.map_or(most, |asked| asked.min(most))))
    }

    async fn run<T: Serialize>(
        self,
        cancel: Cancel,
        verb: impl FnOnce(&Arc<Files>, &Cancel) -> Result<(T, Facts), ItemError> + Send + 'static,
    ) -> Result<Response, Failure> {
        let _ends_with_the_caller = CancelOnDrop(cancel.clone());
        let Turn { service, permit, coding, key, .. } = self;
        // All of it on one thread that is never stopped half-way: a change whose caller left is whole, and known.
        let work = move || -> Result<Response, Failure> {
            let claim = match key.map(|key| service.outcomes().claim(&key, &cancel)).transpose()? {
                Some(Claimed::Known(outcome)) => return outcome.answer(coding),
                Some(Claimed::Mine(claim)) => Some(claim),
                None => None,
            };
            let outcome = Outcome::of(verb(service.files(), &cancel));
            if let Some(claim) = claim {
                claim.settle(&outcome);
            }
            outcome.answer(coding)
        };
        let answer = tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(Failure::internal()))?;
        Ok(answer::holding(answer, permit))
    }
}
