//! Settings, turned into types once: flags before the environment before the file before the defaults. A key or limit
//! that does not exist is an error, wherever it stands.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use filectx_files::{FenceConfig, home_directory};
use filectx_openapi::{LimitError, Limits};
use serde::Deserialize;

#[cfg(test)]
mod tests;

/// Everything that can be set, as one source sets it: the flags, the file (keys are the flags' names), the environment.
#[derive(Clone, Debug, Default, PartialEq, clap::Args, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// Loopback address to listen on; port 0 = the system chooses [default: 127.0.0.1:0]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    /// Listen on this Unix socket instead (0600, in a directory of your own)
    #[arg(long, value_name = "PATH", conflicts_with = "listen")]
    pub socket: Option<PathBuf>,
    /// Listen on this Unix socket too: for callers of whom it is not known yet which of the two reaches them
    #[arg(long, value_name = "PATH")]
    pub also_socket: Option<PathBuf>,
    /// Where the token is written [default: PORT.token in $XDG_RUNTIME_DIR/filectx or /tmp/filectx-UID]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Print one line of JSON on stdout when connections are accepted
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub ready_json: Option<bool>,
    /// Confine every operation to this directory (repeatable) [default: all that you may reach]
    #[arg(long, value_name = "DIR")]
    pub root: Option<Vec<PathBuf>>,
    /// Refuse every change
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub read_only: Option<bool>,
    /// Deny what this gitignore-style pattern matches (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub deny: Option<Vec<String>>,
    /// End after so long without a request [default: never]
    #[arg(long, value_name = "SECONDS")]
    pub idle_timeout: Option<u64>,
    /// Set a limit (repeatable); `GET /v1/info` shows them all
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_limit)]
    #[serde(skip)]
    pub limit: Vec<(String, u64)>,
    /// The file's `[limits]` table.
    #[arg(skip)]
    pub limits: BTreeMap<String, u64>,
    /// How log lines (on stderr) look [default: text]
    #[arg(long, value_enum)]
    pub log_format: Option<LogFormat>,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Where the service listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// On a loopback address.
    Tcp(SocketAddr),
    /// On a Unix socket.
    Unix(PathBuf),
}

/// The settings in force.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen: a port or a socket, and the socket beside it.
    pub listen: Vec<Listen>,
    /// Where the token goes; `None` = the runtime directory.
    pub token_file: Option<PathBuf>,
    /// Whether to print the ready line.
    pub ready_json: bool,
    /// The fences.
    pub fences: FenceConfig,
    /// When to end for want of requests.
    pub idle_timeout: Option<Duration>,
    /// The limits.
    pub limits: Limits,
    /// How log lines look.
    pub log_format: LogFormat,
}

/// A setting that cannot be.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("--config {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file says what cannot be.
    #[error("{}: {source}", path.display())]
    Toml {
        /// The file.
        path: PathBuf,
        /// What, and where.
        source: Box<toml::de::Error>,
    },
    /// An environment variable says what cannot be.
    #[error("{name}={value}: {expected}")]
    Variable {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
    /// A limit that does not exist.
    #[error("{origin}: {source}")]
    UnknownLimit {
        /// Where it was set.
        origin: String,
        /// Its name, and those that exist.
        source: LimitError,
    },
    /// A limit of nothing.
    #[error("limit {name}=0: the service could do nothing; it is at least 1")]
    ZeroLimit {
        /// Its name.
        name: &'static str,
    },
    /// Both `listen` and `socket` in one source.
    #[error(
        "{0} sets both listen and socket; one service listens on one of them (also-socket adds one to a port)"
    )]
    ListenTwice(&'static str),
    /// No address.
    #[error("--listen {0}: no address and port; write it as 127.0.0.1:0")]
    Address(String),
    /// An address that others can reach.
    #[error(
        "--listen {0}: filectxd listens on 127.0.0.1 or [::1] only; SSH, or a port forward, brings callers from elsewhere"
    )]
    NotLoopback(SocketAddr),
}

impl Config {
    /// The settings in force, from the flags, the environment and the file that `config` (or `FILECTX_CONFIG`) names.
    pub fn load(
        flags: Settings,
        config: Option<PathBuf>,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let environment: BTreeMap<String, String> =
            environment.filter(|(name, _)| name.starts_with("FILECTX_")).collect();
        let config = config.or_else(|| environment.get("FILECTX_CONFIG").map(PathBuf::from));
        let file = config.map(|path| from_file(&path)).transpose()?.unwrap_or_default();
        let environment = from_environment(&environment)?;
        resolve([
            (flags, "the command line"),
            (environment, "the environment"),
            (file, "the configuration file"),
        ])
    }
}

/// Takes each setting from the first source that has it.
fn resolve(sources: [(Settings, &'static str); 3]) -> Result<Config, ConfigError> {
    let mut listen = Listen::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    for (settings, origin) in sources.iter().rev() {
        match (&settings.listen, &settings.socket) {
            (Some(_), Some(_)) => return Err(ConfigError::ListenTwice(origin)),
            (Some(address), None) => listen = Listen::Tcp(parse_address(address)?),
            (None, Some(path)) => listen = Listen::Unix(path.clone()),
            (None, None) => {}
        }
    }
    let mut limits = Limits::default();
    for (settings, origin) in sources.iter().rev() {
        for (name, value) in
            settings.limits.iter().chain(settings.limit.iter().map(|(name, value)| (name, value)))
        {
            limits
                .set(name, *value)
                .map_err(|source| ConfigError::UnknownLimit { origin: (*origin).to_owned(), source })?;
        }
    }
    if limits.max_concurrent_requests == 0 {
        return Err(ConfigError::ZeroLimit { name: "max_concurrent_requests" });
    }
    let [(flags, _), (environment, _), (file, _)] = sources;
    let settings = flags.or(environment).or(file);
    Ok(Config {
        listen: std::iter::once(listen).chain(settings.also_socket.map(Listen::Unix)).collect(),
        token_file: settings.token_file,
        ready_json: settings.ready_json.unwrap_or(false),
        fences: FenceConfig {
            roots: settings.root.unwrap_or_default(),
            deny: settings.deny.unwrap_or_default(),
            read_only: settings.read_only.unwrap_or(false),
            home: home_directory(),
            by_steps: false,
        },
        idle_timeout: settings.idle_timeout.map(Duration::from_secs),
        limits,
        log_format: settings.log_format.unwrap_or_default(),
    })
}

impl Settings {
    /// These settings, completed by `other`. (Where to listen and the limits are resolved apart.)
    fn or(self, other: Self) -> Self {
        Self {
            also_socket: self.also_socket.or(other.also_socket),
            token_file: self.token_file.or(other.token_file),
            ready_json: self.ready_json.or(other.ready_json),
            root: self.root.or(other.root),
            read_only: self.read_only.or(other.read_only),
            deny: self.deny.or(other.deny),
            idle_timeout: self.idle_timeout.or(other.idle_timeout),
            log_format: self.log_format.or(other.log_format),
            ..self
        }
    }
}

fn from_file(path: &Path) -> Result<Settings, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::File { path: path.to_owned(), source })?;
    toml::from_str(&text)
        .map_err(|source| ConfigError::Toml { path: path.to_owned(), source: Box::new(source) })
}

fn from_environment(variables: &BTreeMap<String, String>) -> Result<Settings, ConfigError> {
    let text = |name: &str| variables.get(name).filter(|value| !value.is_empty());
    let list = |name: &str| text(name).map(|value| value.split(':').filter(|item| !item.is_empty()));
    let mut limits = BTreeMap::new();
    for (name, value) in variables {
        // The client has variables of its own; limits are the service's alone.
        if let Some(limit) = name.strip_prefix("FILECTX_LIMIT_") {
            limits.insert(limit.to_ascii_lowercase(), number(name, value)?);
        }
    }
    Ok(Settings {
        listen: text("FILECTX_LISTEN").cloned(),
        socket: text("FILECTX_SOCKET").map(PathBuf::from),
        also_socket: text("FILECTX_ALSO_SOCKET").map(PathBuf::from),
        token_file: text("FILECTX_TOKEN_FILE").map(PathBuf::from),
        ready_json: switch(variables, "FILECTX_READY_JSON")?,
        root: list("FILECTX_ROOT").map(|items| items.map(PathBuf::from).collect()),
        read_only: switch(variables, "FILECTX_READ_ONLY")?,
        deny: list("FILECTX_DENY").map(|items| items.map(str::to_owned).collect()),
        idle_timeout: text("FILECTX_IDLE_TIMEOUT")
            .map(|value| number("FILECTX_IDLE_TIMEOUT", value))
            .transpose()?,
        limit: Vec::new(),
        limits,
        log_format: match text("FILECTX_LOG_FORMAT").map(String::as_str) {
            None => None,
            Some("text") => Some(LogFormat::Text),
            Some("json") => Some(LogFormat::Json),
            Some(other) => return Err(variable("FILECTX_LOG_FORMAT", other, "it is text or json")),
        },
    })
}

fn number(name: &str, value: &str) -> Result<u64, ConfigError> {
    value.parse().map_err(|_| variable(name, value, "it is a whole number, 0 or more"))
}

fn switch(variables: &BTreeMap<String, String>, name: &str) -> Result<Option<bool>, ConfigError> {
    match variables.get(name).map(String::as_str) {
        None | Some("") => Ok(None),
        Some("1" | "true" | "yes") => Ok(Some(true)),
        Some("0" | "false" | "no") => Ok(Some(false)),
        Some(other) => Err(variable(name, other, "it is true or false")),
    }
}

fn variable(name: &str, value: &str, expected: &'static str) -> ConfigError {
    ConfigError::Variable { name: name.to_owned(), value: value.to_owned(), expected }
}

fn parse_limit(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    Limits::default().set(name, 0).map_err(|error| error.to_string())?;
    let value = value.parse().map_err(|_| format!("{value} is no whole number, 0 or more"))?;
    Ok((name.to_owned(), value))
}

/// An address as it may be written.
fn parse_address(text: &str) -> Result<SocketAddr, ConfigError> {
    let numeric = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let address: SocketAddr =
        numeric.as_deref().unwrap_or(text).parse().map_err(|_| ConfigError::Address(text.to_owned()))?;
    loopback(address)
}

/// Fails on an address that others can reach.
pub fn loopback(address: SocketAddr) -> Result<SocketAddr, ConfigError> {
    // Not all of 127.0.0.0/8: a Host of 127.0.0.2 would be refused at the door.
    match address.ip() {
        IpAddr::V4(Ipv4Addr::LOCALHOST) | IpAddr::V6(Ipv6Addr::LOCALHOST) => Ok(address),
        _ => Err(ConfigError::NotLoopback(address)),
    }
}
