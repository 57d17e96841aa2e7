//! The way to a host over SSH, step by step: a connection, a probe, the program, the service, a forward, a handshake. Each
//! step is a file here; this one is their order, and what is tried anew when one of them fails.

mod command;
mod forward;
mod install;
mod one_host;
mod options;
mod place;
mod probe;
mod relay;
mod script;
mod start;

use std::sync::Arc;
use std::time::{Duration, Instant};

use filectx_openapi::InfoResponse;

pub use one_host::OneHost;
pub use options::{Fences, ForwardChoice, HostOptions};
pub use place::Place;

use crate::host_error::{HostError, Step};
use crate::time::until;
use crate::{Client, Error, Target};
use command::Master;
use forward::{Forward, Opened};
use place::Saved;
use relay::Relay;
use start::Service;

/// How long a service may take to prove itself and say who it is.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How far the way is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A step begins.
    Step(Step),
    /// So many bytes of the program are on their way.
    Upload {
        /// Bytes that were sent.
        done: u64,
        /// All bytes.
        total: u64,
    },
}

/// Who wants to know how far it is.
pub type OnProgress<'a> = &'a (dyn Fn(Progress) + Send + Sync);

/// A way to a host's service.
#[derive(Debug)]
pub struct Way {
    client: Client,
    target: Target,
    saved: Saved,
    _relay: Option<Relay>,
}

impl Way {
    /// Asks the service.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The local end of the forward.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Who answers.
    pub fn info(&self) -> &InfoResponse {
        &self.saved.info
    }

    /// Whether the service answers soon.
    pub async fn answers(&self) -> bool {
        let info = until(Instant::now() + HANDSHAKE, self.client.info()).await;
        info.is_some_and(|info| info.is_ok())
    }

    /// The token, for a file of the user's own.
    pub fn token(&self) -> &str {
        &self.saved.service.token
    }

    /// The kind of forward: `port`, `socket` or `relay`.
    pub fn kind(&self) -> &'static str {
        self.saved.forward.kind()
    }
}

/// Makes the way to a host, or finds the one that is there.
pub async fn connect(
    place: &Place,
    options: &HostOptions,
    progress: OnProgress<'_>,
) -> Result<Way, HostError> {
    check(options)?;
    let key = options.key();
    let _alone = place.lock(&options.master_key()).await.map_err(|error| options.own_trouble(&error))?;
    if let Some(way) = found(place, options).await {
        return Ok(way);
    }
    let before = place.load(&key);
    if let Some(saved) = &before {
        // It leads nowhere any more, but holds its port.
        options.cancel_forward(&saved.master, &saved.forward, &saved.service).await;
        place.forget(&key);
    }
    let before = before.map(|saved| saved.forward);
    let (master, is_new) = master(place, options, progress).await?;
    match steps(place, options, &master, before.as_ref(), progress).await {
        Ok(way) => Ok(way),
        // A connection that was there may be dead without knowing it, or have no room: one of our own, once.
        Err(Broken { error, connection: true }) if !is_new => {
            tell(progress, Step::Connect);
            options.end_master(&master).await;
            let master =
                options.start_master(&place.control_socket(&options.master_key())).await.map_err(|new| {
                    HostError { said: format!("{}\n{}", error.said, new.said).trim().to_owned(), ..new }
                })?;
            steps(place, options, &master, before.as_ref(), progress).await.map_err(|broken| broken.error)
        }
        Err(broken) => Err(broken.error),
    }
}

/// Brings the program to the host, and gives its path there.
pub async fn install(
    place: &Place,
    options: &HostOptions,
    progress: OnProgress<'_>,
) -> Result<String, HostError> {
    check(options)?;
    let _alone = place.lock(&options.master_key()).await.map_err(|error| options.own_trouble(&error))?;
    let (master, _) = master(place, options, progress).await?;
    tell(progress, Step::Probe);
    let found = options.probe(&master).await.map_err(|failure| options.not_probed(&failure))?;
    tell(progress, Step::Install);
    options.install(&master, &found, progress).await
}

/// Ends all ways to this destination that start from this place. False: there were none. The service stays until its idle timeout: others may use it.
pub async fn disconnect(place: &Place, options: &HostOptions) -> std::io::Result<bool> {
    let _alone = place.lock(&options.master_key()).await?;
    let mut any = false;
    for (key, saved) in place.all().into_iter().filter(|(_, saved)| saved.destination == options.destination)
    {
        options.cancel_forward(&saved.master, &saved.forward, &saved.service).await;
        options.end_master(&saved.master).await;
        place.forget(&key);
        any = true;
    }
    let own = Master::Ours(place.control_socket(&options.master_key()));
    if options.control(&own, &["check"]).await.is_ok() {
        options.end_master(&own).await;
        any = true;
    }
    Ok(any)
}

/// Ends the connection under a way that takes everything and says nothing, so that who waits on it learns of it.
pub(crate) async fn cut(place: &Place, options: &HostOptions) {
    let Ok(_alone) = place.lock(&options.master_key()).await else { return };
    if let Some(saved) = place.load(&options.key()) {
        options.cancel_forward(&saved.master, &saved.forward, &saved.service).await;
        options.end_master(&saved.master).await;
    }
}

/// A way that is known from earlier.
#[derive(Clone, Debug)]
pub struct Known {
    /// The destination.
    pub destination: String,
    /// The kind of forward.
    pub forward: &'static str,
    /// Whether the service still answers.
    pub connected: bool,
    /// Who answers, or did.
    pub info: InfoResponse,
}

/// The ways that start from this place.
pub async fn known(place: &Place) -> Vec<Known> {
    let mut known = Vec::new();
    for (_, saved) in place.all() {
        let options = HostOptions::new(saved.destination.clone());
        let way = open(place, &options, saved.clone()).await.ok();
        let connected = match &way {
            Some(way) => way.answers().await,
            None => false,
        };
        let Saved { destination, forward, info, .. } = saved;
        known.push(Known { destination, forward: forward.kind(), connected, info });
    }
    known
}

fn check(options: &HostOptions) -> Result<(), HostError> {
    match command::is_destination(&options.destination) {
        true => Ok(()),
        false => Err(options.failed(
            Step::Resolve,
            "this is no destination",
            "",
            "name it as ssh takes it: HOST or USER@HOST",
        )),
    }
}

fn tell(progress: OnProgress<'_>, step: Step) {
    progress(Progress::Step(step));
}

/// The way that was made earlier, if it still leads to its service.
async fn found(place: &Place, options: &HostOptions) -> Option<Way> {
    let way = open(place, options, place.load(&options.key())?).await.ok()?;
    way.answers().await.then_some(way)
}

/// The way that was made earlier, without asking whether it still is one.
async fn open(place: &Place, options: &HostOptions, saved: Saved) -> Result<Way, Error> {
    let info = Some(Arc::new(saved.info.clone()));
    let Saved { master, service, forward, .. } = &saved;
    let (client, target, relay) = options.client(place, master, service, forward, info).await?;
    Ok(Way { client, target, saved, _relay: relay })
}

/// A connection to the host, and whether it is new.
async fn master(
    place: &Place,
    options: &HostOptions,
    progress: OnProgress<'_>,
) -> Result<(Master, bool), HostError> {
    tell(progress, Step::Connect);
    let ours = place.control_socket(&options.master_key());
    match options.live_master(&ours).await {
        Some(master) => Ok((master, false)),
        None => Ok((options.start_master(&ours).await?, true)),
    }
}

/// A step that failed, and whether the connection may be to blame.
struct Broken {
    error: HostError,
    connection: bool,
}

impl From<HostError> for Broken {
    fn from(error: HostError) -> Self {
        Broken { error, connection: false }
    }
}

async fn steps(
    place: &Place,
    options: &HostOptions,
    master: &Master,
    before: Option<&Forward>,
    progress: OnProgress<'_>,
) -> Result<Way, Broken> {
    tell(progress, Step::Probe);
    let found = options.probe(master).await.map_err(|failure| Broken {
        error: options.not_probed(&failure),
        connection: failure.reason.is_none(),
    })?;
    tell(progress, Step::Install);
    let program = options.install(master, &found, progress).await?;
    tell(progress, Step::Start);
    let running = found.installed.into_iter().find(|installed| installed.path == program);
    let service: Service = match running.and_then(|installed| installed.service) {
        Some(service) => service,
        None => options.start(master, &program).await?,
    };
    tell(progress, Step::Forward);
    let opened = options.open_forward(place, master, &service, &program, before).await;
    let Opened { forward, client, target, relay, info } =
        opened.map_err(|error| Broken { error, connection: true })?;
    let saved = Saved {
        destination: options.destination.clone(),
        master: master.clone(),
        forward,
        service,
        info: InfoResponse::clone(&info),
    };
    // Best effort: without it the next command makes a way of its own.
    let _ = place.save(&options.key(), &saved);
    Ok(Way { client, target, saved, _relay: relay })
}

impl Forward {
    fn kind(&self) -> &'static str {
        match self {
            Forward::Port(_) => "port",
            Forward::Socket(_) => "socket",
            Forward::Relay { .. } => "relay",
        }
    }
}

impl HostOptions {
    fn own_trouble(&self, error: &std::io::Error) -> HostError {
        self.failed(
            Step::Connect,
            format!("this side cannot keep what it needs: {error}"),
            "",
            "see $XDG_RUNTIME_DIR and /tmp",
        )
    }
}
