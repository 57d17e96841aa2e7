//! Hosts that stay connected: one task a host keeps the way there, notices when it is lost, and makes it anew. Any number
//! of sessions share it. How a way is made is told in [`ssh`]; here is only when.
//!
//! ```text
//! Connecting -> Connected -> (lost) -> Connecting -> Waiting -> Connecting ...
//!      |                                    a host that no longer lets us in, or a stop: Ended
//!      +-> Ended: the first attempt failed
//! ```

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::host_error::{HostError, Step};
use crate::session::Hosts;
use crate::ssh::{self, HostOptions, Place, Progress, Way};
use crate::time::until;
use crate::{Client, Error};

/// How long a call waits for a way that was lost.
const RECOVERY: Duration = Duration::from_secs(60);
/// How long a look at the way may take; two silent ones in a row end it.
const LOOK: Duration = Duration::from_secs(10);
/// The first pause after an attempt that failed, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// What is known of a host.
#[derive(Clone, Debug)]
pub enum HostState {
    /// A way is being made.
    Connecting(Step),
    /// There is a way.
    Connected(Arc<Way>),
    /// The last attempt failed; the next one begins then.
    Waiting(Arc<HostError>, Instant),
    /// Nothing goes on: it was stopped, or it cannot be had.
    Ended(Option<Arc<HostError>>),
}

/// The hosts of a process. Clones share them.
#[derive(Clone, Debug)]
pub struct HostManager(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    place: Place,
    hosts: Mutex<BTreeMap<String, Arc<Host>>>,
}

#[derive(Debug)]
struct Host {
    options: HostOptions,
    state: watch::Receiver<HostState>,
    look: Arc<Notify>,
    stop: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl HostManager {
    /// A manager whose ways start from this place: one of the process alone, or the one that commands share.
    pub fn new(place: Place) -> Self {
        Self(Arc::new(Inner { place, hosts: Mutex::default() }))
    }

    /// Connects to a host, or joins those who are connected. The host is called by its destination from then on. Once it
    /// was connected, it is kept so until [`disconnect`](Self::disconnect).
    pub async fn connect(&self, options: HostOptions) -> Result<Client, HostError> {
        let host = self.host(options);
        let mut state = host.state.clone();
        host.look.notify_one();
        let mut tried = !matches!(*state.borrow(), HostState::Waiting(..));
        loop {
            match &*state.borrow_and_update() {
                HostState::Connected(way) => return Ok(way.client().clone()),
                HostState::Waiting(error, _) if tried => return Err(HostError::clone(error)),
                HostState::Ended(Some(error)) => return Err(HostError::clone(error)),
                HostState::Ended(None) => return Err(stopped(&host.options)),
                HostState::Connecting(_) => tried = true,
                HostState::Waiting(..) => {}
            }
            if state.changed().await.is_err() {
                return Err(stopped(&host.options));
            }
        }
    }

    /// The client of a connected host.
    pub fn client_for_host(&self, host_id: &str) -> Option<Client> {
        match &*self.lock().get(host_id)?.state.borrow() {
            HostState::Connected(way) => Some(way.client().clone()),
            _ => None,
        }
    }

    /// The host's state, and each change of it.
    pub fn watch(&self, host_id: &str) -> Option<watch::Receiver<HostState>> {
        Some(self.lock().get(host_id)?.state.clone())
    }

    /// All hosts and their states.
    pub fn hosts(&self) -> Vec<(String, HostState)> {
        self.lock().iter().map(|(id, host)| (id.clone(), host.state.borrow().clone())).collect()
    }

    /// A client of the host that answers, after a call was lost: has the way looked at now, and waits for a new one.
    pub async fn recovered(&self, host_id: &str) -> Option<Client> {
        let host = Arc::clone(self.lock().get(host_id)?);
        let mut state = host.state.clone();
        host.look.notify_one();
        let waiting = async {
            loop {
                let now = state.borrow_and_update().clone();
                match now {
                    HostState::Connected(way) if way.answers().await => return Some(way.client().clone()),
                    HostState::Ended(_) => return None,
                    _ => state.changed().await.ok()?,
                }
            }
        };
        until(Instant::now() + RECOVERY, waiting).await.flatten()
    }

    /// Ends the way to a host, for all who share it. The service there ends itself when nobody asks it.
    pub async fn disconnect(&self, host_id: &str) {
        let host = self.lock().remove(host_id);
        if let Some(host) = host {
            self.end(&host).await;
        }
    }

    /// Ends all ways: of a place of this process, with their connections; in the shared place they stay for others.
    pub async fn shutdown(&self) {
        let hosts = std::mem::take(&mut *self.lock());
        for host in hosts.values() {
            host.stop.send_replace(true);
        }
        for host in hosts.values() {
            self.end(host).await;
        }
        self.0.place.remove();
    }

    async fn end(&self, host: &Host) {
        host.stop.send_replace(true);
        let task = host.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            let _ = task.await;
        }
        if self.0.place.is_private() {
            // What cannot be ended ends itself.
            let _ = ssh::disconnect(&self.0.place, &host.options).await;
        }
    }

    /// The host of these options, with its task under way.
    fn host(&self, options: HostOptions) -> Arc<Host> {
        let mut hosts = self.lock();
        if let Some(host) = hosts.get(&options.destination)
            && !matches!(*host.state.borrow(), HostState::Ended(_))
        {
            return Arc::clone(host);
        }
        let (state, seen) = watch::channel(HostState::Connecting(Step::Connect));
        let (stop, stopped) = watch::channel(false);
        let look = Arc::new(Notify::new());
        let keeper =
            Keeper { place: self.0.place.clone(), options: options.clone(), state, look: Arc::clone(&look) };
        let task = tokio::spawn(keeper.keep(stopped));
        let id = options.destination.clone();
        let host = Arc::new(Host { options, state: seen, look, stop, task: Mutex::new(Some(task)) });
        hosts.insert(id, Arc::clone(&host));
        host
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Host>>> {
        self.0.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hosts for HostManager {
    fn client_for_host(&self, host_id: &str) -> Option<Client> {
        HostManager::client_for_host(self, host_id)
    }

    fn recovered<'a>(
        &'a self,
        host_id: &'a str,
    ) -> Pin<Box<dyn Future<Output = Option<Client>> + Send + 'a>> {
        Box::pin(HostManager::recovered(self, host_id))
    }
}

/// Who keeps the way to one host.
struct Keeper {
    place: Place,
    options: HostOptions,
    state: watch::Sender<HostState>,
    look: Arc<Notify>,
}

impl Keeper {
    async fn keep(self, mut stopped: watch::Receiver<bool>) {
        let end = tokio::select! {
            end = self.keep_on() => end,
            _ = stopped.wait_for(|stopped| *stopped) => None,
        };
        self.state.send_replace(HostState::Ended(end));
    }

    /// Returns why there is no way to be had.
    async fn keep_on(&self) -> Option<Arc<HostError>> {
        let (mut attempt, mut ever) = (0, false);
        loop {
            self.state.send_replace(HostState::Connecting(Step::Connect));
            let progress = |progress| {
                if let Progress::Step(step) = progress {
                    self.state.send_replace(HostState::Connecting(step));
                }
            };
            match ssh::connect(&self.place, &self.options, &progress).await {
                Ok(way) => {
                    let way = Arc::new(way);
                    self.state.send_replace(HostState::Connected(Arc::clone(&way)));
                    (attempt, ever) = (0, true);
                    if self.lost(&way).await == Lost::Silent {
                        // Calls under way on it must not wait for what never comes.
                        ssh::cut(&self.place, &self.options).await;
                    }
                }
                // Asking again and again where nobody lets us in gets the user locked out.
                Err(error) if !ever || error.step == Step::Authenticate => return Some(Arc::new(error)),
                Err(error) => {
                    let pause = pause(attempt);
                    attempt += 1;
                    self.state.send_replace(HostState::Waiting(Arc::new(error), Instant::now() + pause));
                    // Whoever needs the host need not wait.
                    let _ = until(Instant::now() + pause, self.look.notified()).await;
                }
            }
        }
    }

    /// Returns when the way is lost, and how that shows.
    async fn lost(&self, way: &Way) -> Lost {
        let mut silent = false;
        loop {
            if !silent {
                let _ = until(Instant::now() + self.options.keep_alive, self.look.notified()).await;
            }
            match until(Instant::now() + LOOK.min(self.options.keep_alive), way.client().info()).await {
                None | Some(Err(Error::Timeout { .. })) if silent => return Lost::Silent,
                None | Some(Err(Error::Timeout { .. })) => silent = true,
                Some(Err(error)) if error.is_lost() => return Lost::Broken,
                Some(_) => silent = false,
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    /// It leads nowhere, or to someone else.
    Broken,
    /// It takes everything and says nothing.
    Silent,
}

/// The pause after this many attempts that failed: twice the last one, up to a most, less up to half of it by chance, so
/// that not all come back at once.
fn pause(attempt: u32) -> Duration {
    let (first, most) = PAUSES;
    let whole = most.min(first * 2_u32.saturating_pow(attempt.min(16)));
    let mut random = [0; 2];
    // Without chance it is the whole pause.
    let part = getrandom::fill(&mut random).map_or(0.0, |()| f64::from(u16::from_le_bytes(random)) / 65536.0);
    whole.mul_f64(1.0 - part / 2.0)
}

fn stopped(options: &HostOptions) -> HostError {
    HostError {
        host: options.destination.clone(),
        step: Step::Connect,
        detail: "the host was disconnected meanwhile".into(),
        said: String::new(),
        hint: "connect again".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_most_and_differ() {
        for attempt in 0..40 {
            let whole = Duration::from_millis(500 * (1 << attempt.min(6))).min(PAUSES.1);
            let pause = pause(attempt);
            assert!(pause <= whole && pause >= whole / 2, "{attempt}: {pause:?}");
        }
        let pauses: std::collections::BTreeSet<_> = (0..20).map(|_| pause(3)).collect();
        assert!(pauses.len() > 1, "{pauses:?}");
    }
}
