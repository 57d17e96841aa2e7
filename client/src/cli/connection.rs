//! Where a command asks: the service or the host that flags or the environment name, else the engine in process.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use clap::Args;
use filectx_client::{Client, ConfigError, Target, Token, runtime};

use super::exit::Failure;
use super::host::{self, HostFlags};
use super::quote::quoted;

/// The flags that name a service.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Service")]
pub(crate) struct Connection {
    /// A service's loopback URL, e.g. http://127.0.0.1:4711 (else $FILECTX_URL)
    #[arg(long, global = true, value_name = "URL", conflicts_with = "socket")]
    pub(crate) url: Option<String>,
    /// A service's Unix socket (else $FILECTX_SOCKET)
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// The file that holds the service's token, mode 0600 (else $FILECTX_TOKEN_FILE)
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// A host that ssh reaches: HOST, USER@HOST or a name of ssh's configuration (else $FILECTX_HOST)
    #[arg(long, global = true, value_name = "DEST", conflicts_with_all = ["url", "socket", "token_file"])]
    pub(crate) host: Option<String>,
    #[command(flatten)]
    pub(crate) way: HostFlags,
}

/// What the environment says about a service.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    pub(crate) url: Option<OsString>,
    pub(crate) socket: Option<OsString>,
    pub(crate) token_file: Option<OsString>,
    pub(crate) host: Option<OsString>,
    /// Whether ssh may ask the user.
    pub(crate) may_ask: bool,
    /// Where services of this user keep their tokens.
    pub(crate) runtime_directory: Option<PathBuf>,
}

impl Environment {
    pub(crate) fn of_process() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Self {
            url: set("FILECTX_URL"),
            socket: set("FILECTX_SOCKET"),
            token_file: set("FILECTX_TOKEN_FILE"),
            host: set("FILECTX_HOST"),
            may_ask: host::may_ask(),
            runtime_directory: Some(runtime::directory(set("XDG_RUNTIME_DIR"))),
        }
    }
}

/// The service that is meant; a flag goes before the environment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Service {
    pub(crate) target: Target,
    pub(crate) token_file: Option<PathBuf>,
}

impl Connection {
    /// The flags as they were given, for a command that is printed.
    pub(crate) fn flags(&self) -> String {
        let mut flags = String::new();
        let paths = [("--socket", &self.socket), ("--token-file", &self.token_file)];
        let paths = paths.map(|(name, path)| (name, path.as_ref().map(|path| path.as_os_str())));
        let url = ("--url", self.url.as_ref().map(std::ffi::OsStr::new));
        for (name, value) in std::iter::once(url).chain(paths) {
            if let Some(value) = value {
                flags.push_str(&format!(" {name} {}", quoted(value.as_bytes())));
            }
        }
        let host = self.host.iter().map(|host| ("--host", host.clone()));
        for (name, value) in host.chain(self.way.flags()) {
            flags.push_str(&format!(" {name} {}", quoted(value.as_bytes())));
        }
        if self.way.read_only {
            flags.push_str(" --read-only");
        }
        flags
    }

    /// The host that is meant, if one is: a flag goes before the environment, and there a service before a host.
    pub(crate) fn host(&self, environment: &Environment) -> Option<String> {
        let by_flag = self.url.is_some() || self.socket.is_some();
        let by_variable = environment.url.is_some() || environment.socket.is_some();
        let variable = || environment.host.as_ref().map(|host| host.to_string_lossy().into_owned());
        self.host.clone().or_else(|| if by_flag || by_variable { None } else { variable() })
    }

    /// The service that is meant, if any is.
    pub(crate) fn service(&self, environment: &Environment) -> Result<Option<Service>, ConfigError> {
        let env_url = || environment.url.as_ref().map(|url| url.to_string_lossy().into_owned());
        let env_socket = || environment.socket.as_ref().map(PathBuf::from);
        let target = match (&self.url, &self.socket) {
            (Some(url), _) => Target::from_url(url)?,
            (None, Some(socket)) => Target::Socket(socket.clone()),
            (None, None) => match (env_url(), env_socket()) {
                (Some(url), _) => Target::from_url(&url)?,
                (None, Some(socket)) => Target::Socket(socket),
                (None, None) => return Ok(None),
            },
        };
        let token_file =
            self.token_file.clone().or_else(|| environment.token_file.as_ref().map(PathBuf::from));
        let token_file = token_file.or_else(|| default_token_file(&target, environment));
        Ok(Some(Service { target, token_file }))
    }

    /// A client of the service that is meant, if any is.
    pub(crate) fn client(&self, environment: &Environment) -> Result<Option<Client>, Failure> {
        let Some(service) = self.service(environment)? else {
            if !self.way.flags().is_empty() || self.way.read_only {
                return Err(Failure::Usage(
                    "flags of a host: name the host by --host or $FILECTX_HOST".into(),
                ));
            }
            if self.token_file.is_some() {
                return Err(Failure::Usage("--token-file: give --url or --socket with it".into()));
            }
            return Ok(None);
        };
        let builder = Client::builder(service.target.clone());
        let builder = match (&service.token_file, &service.target) {
            (Some(file), _) => builder.token(Token::from_file(file)?),
            (None, Target::Socket(_)) => builder,
            (None, target @ Target::Port { .. }) => {
                return Err(Failure::Usage(format!(
                    "no token for {target}: give --token-file or $FILECTX_TOKEN_FILE (the service prints its \
                     path with --ready-json)"
                )));
            }
        };
        Ok(Some(builder.build()?))
    }
}

/// The token file of a service of this user on this machine, if it is there.
fn default_token_file(target: &Target, environment: &Environment) -> Option<PathBuf> {
    let name = match target {
        Target::Port { port, .. } => format!("{port}.token"),
        Target::Socket(path) => format!("{}.token", path.file_name()?.to_string_lossy()),
    };
    let file = environment.runtime_directory.as_ref()?.join(name);
    file.exists().then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(url: Option<&str>, socket: Option<&str>, token_file: Option<&str>) -> Connection {
        Connection {
            url: url.map(Into::into),
            socket: socket.map(Into::into),
            token_file: token_file.map(Into::into),
            ..Connection::default()
        }
    }

    fn environment(url: Option<&str>, socket: Option<&str>, token_file: Option<&str>) -> Environment {
        Environment {
            url: url.map(Into::into),
            socket: socket.map(Into::into),
            token_file: token_file.map(Into::into),
            ..Environment::default()
        }
    }

    #[test]
    fn flags_go_before_the_environment() {
        let port = |port| Target::from_url(&format!("http://127.0.0.1:{port}")).unwrap();
        let (one, two) = (Some("http://localhost:1"), Some("http://127.0.0.1:2"));
        let none = flags(None, None, None);
        let table = [
            (none.clone(), environment(None, None, None), None),
            (none.clone(), environment(None, None, Some("t")), None),
            (none.clone(), environment(two, None, Some("t")), Some((port(2), Some("t")))),
            (none.clone(), environment(two, Some("s"), Some("t")), Some((port(2), Some("t")))),
            (none, environment(None, Some("s"), None), Some((Target::Socket("s".into()), None))),
            (flags(one, None, None), environment(two, None, Some("t")), Some((port(1), Some("t")))),
            (flags(one, None, Some("u")), environment(two, None, Some("t")), Some((port(1), Some("u")))),
            (
                flags(None, Some("s"), None),
                environment(two, None, None),
                Some((Target::Socket("s".into()), None)),
            ),
        ];
        for (flags, environment, expected) in table {
            let service = flags.service(&environment).unwrap();
            let expected =
                expected.map(|(target, token)| Service { target, token_file: token.map(PathBuf::from) });
            assert_eq!(service, expected, "{flags:?} {environment:?}");
        }
    }

    #[test]
    fn the_token_of_a_service_of_this_user_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let environment =
            Environment { runtime_directory: Some(dir.path().to_owned()), ..Environment::default() };
        let port = flags(Some("http://127.0.0.1:4711"), None, None);
        assert!(matches!(port.client(&environment), Err(Failure::Usage(_))));
        for (connection, name) in
            [(port, "4711.token"), (flags(None, Some("/run/x/filectx.sock"), None), "filectx.sock.token")]
        {
            let file = dir.path().join(name);
            std::fs::write(&file, "abc").unwrap();
            assert_eq!(connection.service(&environment).unwrap().unwrap().token_file, Some(file));
        }
    }

    #[test]
    fn a_host_is_named_by_a_flag_or_where_no_service_is() {
        let named = |host: Option<&str>| Connection { host: host.map(Into::into), ..Connection::default() };
        let variable =
            |url: Option<&str>| Environment { host: Some("env".into()), ..environment(url, None, None) };
        let one = Some("http://127.0.0.1:1");
        for (flags, environment, expected) in [
            (named(None), Environment::default(), None),
            (named(Some("h")), variable(one), Some("h")),
            (named(None), variable(None), Some("env")),
            (named(None), variable(one), None),
            (flags(one, None, None), variable(None), None),
        ] {
            assert_eq!(flags.host(&environment).as_deref(), expected, "{flags:?} {environment:?}");
        }
    }
}
