//! One host for the length of a command: goes on where the last command was, and makes the way anew when it is lost. What
//! lives longer has a [`HostManager`](crate::hosts::HostManager).

use std::sync::Arc;

use tokio::sync::Mutex;

use super::{HostOptions, OnProgress, Place, Progress, Way, connect, open};
use crate::{Client, Error};

/// One host.
pub struct OneHost {
    options: HostOptions,
    place: Place,
    progress: Box<dyn Fn(Progress) + Send + Sync>,
    way: Mutex<Option<Arc<Way>>>,
}

impl std::fmt::Debug for OneHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OneHost").field("options", &self.options).finish_non_exhaustive()
    }
}

impl OneHost {
    /// The host of these options. Nothing happens before the first call.
    pub fn new(
        options: HostOptions,
        place: Place,
        progress: impl Fn(Progress) + Send + Sync + 'static,
    ) -> Self {
        Self { options, place, progress: Box::new(progress), way: Mutex::new(None) }
    }

    /// Asks the host's service. When the way there is lost and the request was certainly not acted on, the way is made
    /// anew and it is asked once more: a read always, a change only if it never arrived.
    pub async fn call<T>(&self, ask: impl AsyncFn(&Client) -> Result<T, Error>) -> Result<T, Error> {
        let mut way = self.way.lock().await;
        let known = match (&*way, self.place.load(&self.options.key())) {
            (Some(way), _) => Some(Arc::clone(way)),
            // The proof shows whether it still is the service that the token is of: nothing else need be asked before.
            (None, Some(saved)) => open(&self.place, &self.options, saved).await.ok().map(Arc::new),
            (None, None) => None,
        };
        if let Some(known) = known {
            match ask(known.client()).await {
                Err(error) if error.is_lost() => {}
                done => {
                    *way = Some(known);
                    return done;
                }
            }
        }
        *way = None;
        let progress: OnProgress<'_> = &*self.progress;
        let new = connect(&self.place, &self.options, progress)
            .await
            .map_err(|error| Error::Host(Box::new(error)))?;
        let new = way.insert(Arc::new(new));
        ask(new.client()).await
    }
}
