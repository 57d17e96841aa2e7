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

    /// Asks the host's service. When the way there is lost it is made anew, and the service is asked once more: for a read
    /// always, for a change that never arrived, and for what became of one that may have.
    pub async fn call<T>(&self, ask: impl AsyncFn(&Client) -> Result<T, Error>) -> Result<T, Error> {
        let mut way = self.way.lock().await;
        let known = match (&*way, self.place.load(&self.options.key())) {
            (Some(way), _) => Some(Arc::clone(way)),
            // The proof shows whether it still is the service that the token is of: nothing else need be asked before.
            (None, Some(saved)) => open(&self.place, &self.options, saved).await.ok().map(Arc::new),
            (None, None) => None,
        };
        let mut lost = None;
        if let Some(known) = known {
            match ask(known.client()).await {
                Err(error) if error.wants_another_way() => lost = Some(error),
                done => {
                    *way = Some(known);
                    return done;
                }
            }
        }
        *way = None;
        let progress: OnProgress<'_> = &*self.progress;
        let new = match (connect(&self.place, &self.options, progress).await, lost) {
            (Ok(new), lost) => {
                let new = way.insert(Arc::new(new));
                lost.map_or_else(|| new.client().clone(), |lost| new.client().after(&lost))
            }
            // That a change stays open matters more than why.
            (Err(_), Some(lost)) if !lost.is_lost() => return Err(lost),
            (Err(error), _) => return Err(Error::Host(Box::new(error))),
        };
        ask(&new).await
    }
}
