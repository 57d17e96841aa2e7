//! The way to the service: a forwarded port, else a forwarded socket, else a relay; the first that leads to a service that
//! proves to know the token. Which kinds a host forbids shows only when something is sent through them.

use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use filectx_openapi::InfoResponse;
use serde::{Deserialize, Serialize};

use super::HANDSHAKE;
use super::command::Master;
use super::options::{ForwardChoice, HostOptions};
use super::place::Place;
use super::relay::Relay;
use super::start::Service;
use crate::host_error::{HostError, Step};
use crate::time::until;
use crate::{Client, Error, Phase, Target, Token};

/// How often a free port is looked for: another process may take it meanwhile.
const PORTS: usize = 3;

/// A forward, from its local end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Forward {
    Port(u16),
    Socket(PathBuf),
    /// Each process makes its own local end.
    Relay {
        program: String,
    },
}

/// A forward that leads to the service.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) forward: Forward,
    pub(crate) client: Client,
    pub(crate) target: Target,
    pub(crate) relay: Option<Relay>,
    pub(crate) info: Arc<InfoResponse>,
}

impl HostOptions {
    /// Opens the forward that is wanted, or the first that leads to the service.
    pub(crate) async fn open_forward(
        &self,
        place: &Place,
        master: &Master,
        service: &Service,
        program: &str,
        before: Option<&Forward>,
    ) -> Result<Opened, HostError> {
        let kinds: &[ForwardChoice] = match self.forward {
            ForwardChoice::Auto => &[ForwardChoice::Port, ForwardChoice::Socket, ForwardChoice::Relay],
            ForwardChoice::Port => &[ForwardChoice::Port],
            ForwardChoice::Socket => &[ForwardChoice::Socket],
            ForwardChoice::Relay => &[ForwardChoice::Relay],
        };
        let (mut said, mut step) = (Vec::new(), Step::Forward);
        for kind in kinds {
            let forward = match kind {
                ForwardChoice::Auto | ForwardChoice::Port => self.forward_port(master, service, before).await,
                ForwardChoice::Socket => self.forward_socket(place, master, service).await,
                ForwardChoice::Relay => Ok(Forward::Relay { program: program.to_owned() }),
            };
            let forward = match forward {
                Ok(forward) => forward,
                Err(why) => {
                    said.push(format!("{}: {why}", kind.name()));
                    continue;
                }
            };
            match self.shake_hands(place, master, service, &forward).await {
                Ok((client, target, relay, info)) => {
                    return Ok(Opened { forward, client, target, relay, info });
                }
                Err(why) => {
                    self.cancel_forward(master, &forward, service).await;
                    if !matches!(why, Error::Connect { .. }) {
                        step = Step::Handshake;
                    }
                    said.push(format!("{}: {why}", kind.name()));
                }
            }
        }
        let hint = match self.forward {
            ForwardChoice::Auto => {
                "see AllowTcpForwarding, AllowStreamLocalForwarding and ForceCommand in the host's sshd_config"
            }
            _ => "let filectx choose the kind of forward: --forward auto",
        };
        Err(self.failed(step, "no way leads to the service", &said.join("\n"), hint))
    }

    /// The client behind a forward, with what is needed for it in this process.
    pub(crate) async fn client(
        &self,
        place: &Place,
        master: &Master,
        service: &Service,
        forward: &Forward,
        info: Option<Arc<InfoResponse>>,
    ) -> Result<(Client, Target, Option<Relay>), Error> {
        let (target, relay) = match forward {
            Forward::Port(port) => {
                (Target::Port { address: IpAddr::V4(Ipv4Addr::LOCALHOST), port: *port }, None)
            }
            Forward::Socket(path) => (Target::Socket(path.clone()), None),
            Forward::Relay { program } => {
                let path = place.forward_socket().map_err(|error| Error::protocol(error.to_string()))?;
                let relay = Relay::listen(self, master, service, program, &path);
                (Target::Socket(path), Some(relay.map_err(|error| Error::protocol(error.to_string()))?))
            }
        };
        let config = |error: crate::ConfigError| Error::protocol(error.to_string());
        let token = Token::new(&service.token).map_err(config)?;
        let mut builder = Client::builder(target.clone()).token(token).compress(true);
        if let Some(info) = info {
            builder = builder.known_info(info);
        }
        Ok((builder.build().map_err(config)?, target, relay))
    }

    async fn shake_hands(
        &self,
        place: &Place,
        master: &Master,
        service: &Service,
        forward: &Forward,
    ) -> Result<(Client, Target, Option<Relay>, Arc<InfoResponse>), Error> {
        let (client, target, relay) = self.client(place, master, service, forward, None).await?;
        let silent = Error::Timeout { phase: Phase::Answer, after: HANDSHAKE };
        let info = until(Instant::now() + HANDSHAKE, client.info()).await.unwrap_or(Err(silent))?;
        if info.instance_id != service.instance_id {
            return Err(Error::protocol("another run of the service answers"));
        }
        Ok((client, target, relay, info))
    }

    /// A free port; the one that was forwarded before, if it can be had: someone may have written it down.
    async fn forward_port(
        &self,
        master: &Master,
        service: &Service,
        before: Option<&Forward>,
    ) -> Result<Forward, String> {
        if let Some(port @ Forward::Port(_)) = before
            && self.request_forward(master, "forward", port, service).await.is_ok()
        {
            return Ok(port.clone());
        }
        let mut said = String::new();
        for _ in 0..PORTS {
            let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
            let forward = Forward::Port(free.map_err(|error| error.to_string())?.port());
            match self.request_forward(master, "forward", &forward, service).await {
                Ok(()) => return Ok(forward),
                Err(why) => said = why,
            }
        }
        Err(said)
    }

    async fn forward_socket(
        &self,
        place: &Place,
        master: &Master,
        service: &Service,
    ) -> Result<Forward, String> {
        let forward = Forward::Socket(place.forward_socket().map_err(|error| error.to_string())?);
        self.request_forward(master, "forward", &forward, service).await.map(|()| forward)
    }

    /// Ends the forward, as far as that is possible.
    pub(crate) async fn cancel_forward(&self, master: &Master, forward: &Forward, service: &Service) {
        let _ = self.request_forward(master, "cancel", forward, service).await;
        if let Forward::Socket(path) = forward {
            let _ = std::fs::remove_file(path);
        }
    }

    async fn request_forward(
        &self,
        master: &Master,
        what: &str,
        forward: &Forward,
        service: &Service,
    ) -> Result<(), String> {
        let ends = match forward {
            // The literal address on both sides: a name could lead elsewhere.
            Forward::Port(port) => format!("127.0.0.1:{port}:127.0.0.1:{}", service.port),
            Forward::Socket(path) => format!("{}:{}", path.display(), service.socket),
            Forward::Relay { .. } => return Ok(()),
        };
        self.control(master, &[what, "-L", &ends]).await
    }
}
