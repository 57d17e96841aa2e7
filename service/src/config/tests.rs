//! Which source of a setting wins, and what no source may say.

use super::*;

fn load(flags: Settings, file: Option<&str>, environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let dir = tempfile::tempdir().unwrap();
    let path = file.map(|text| {
        let path = dir.path().join("filectxd.toml");
        std::fs::write(&path, text).unwrap();
        path
    });
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Config::load(flags, path, environment)
}

fn error(flags: Settings, file: Option<&str>, environment: &[(&str, &str)]) -> String {
    load(flags, file, environment).unwrap_err().to_string()
}

#[test]
fn the_defaults() {
    let config = load(Settings::default(), None, &[]).unwrap();
    assert_eq!(config.listen, [Listen::Tcp("127.0.0.1:0".parse().unwrap())]);
    assert_eq!(config.limits, Limits::default());
    assert!(config.fences.roots.is_empty() && !config.fences.read_only && !config.ready_json);
    assert_eq!((config.idle_timeout, config.log_format), (None, LogFormat::Text));
}

#[test]
fn flags_before_environment_before_file() {
    let file = "idle-timeout = 3\nroot = ['/file']\nlisten = '127.0.0.1:3'\ntoken-file = '/t'\nread-only = true\n\
                deny = ['*.pem']\nlog-format = 'json'\n[limits]\nmax_files = 3\nmax_file_bytes = 3\nmax_batch_bytes = 3\n";
    let environment = [
        ("FILECTX_IDLE_TIMEOUT", "2"),
        ("FILECTX_ROOT", "/env:/env2"),
        ("FILECTX_SOCKET", "/run/s"),
        ("FILECTX_LIMIT_MAX_FILES", "2"),
        ("FILECTX_LIMIT_MAX_FILE_BYTES", "2"),
        ("FILECTX_URL", "the client's"),
    ];
    let flags =
        Settings { idle_timeout: Some(1), limit: vec![("max_files".into(), 1)], ..Settings::default() };
    let config = load(flags, Some(file), &environment).unwrap();
    assert_eq!(config.idle_timeout, Some(Duration::from_secs(1)));
    assert_eq!(config.fences.roots, [PathBuf::from("/env"), PathBuf::from("/env2")]);
    assert_eq!(config.listen, [Listen::Unix("/run/s".into())]);
    let limits = &config.limits;
    assert_eq!((limits.max_files, limits.max_file_bytes, limits.max_batch_bytes), (1, 2, 3));
    assert_eq!((config.fences.deny, config.fences.read_only), (vec!["*.pem".to_owned()], true));
    assert_eq!((config.token_file, config.log_format), (Some("/t".into()), LogFormat::Json));
}

#[test]
fn what_does_not_exist_is_an_error_that_names_it() {
    let none = Settings::default;
    assert!(error(none(), Some("rot = ['/']"), &[]).contains("rot"));
    assert!(error(none(), Some("limit = 3"), &[]).contains("limit"));
    assert!(error(none(), Some("[limits]\nmax_fils = 3"), &[]).contains("max_fils"));
    assert!(error(none(), Some("[limits]\nmax_files = -3"), &[]).contains("max_files"));
    assert!(error(none(), None, &[("FILECTX_LIMIT_MAX_FILS", "1")]).contains("max_fils"));
    assert!(error(none(), None, &[("FILECTX_LIMIT_MAX_FILES", "x")]).contains("FILECTX_LIMIT_MAX_FILES"));
    assert!(error(none(), None, &[("FILECTX_READ_ONLY", "maybe")]).contains("FILECTX_READ_ONLY"));
    assert!(error(none(), None, &[("FILECTX_CONFIG", "/nowhere.toml")]).contains("/nowhere.toml"));
    assert!(error(none(), Some("[limits]\nmax_concurrent_requests = 0"), &[]).contains("at least 1"));
    assert!(parse_limit("max_fils=1").unwrap_err().contains("max_fils"));
    assert!(parse_limit("max_files").is_err() && parse_limit("max_files=-1").is_err());
}

#[test]
fn only_loopback_is_listened_on() {
    for good in ["127.0.0.1:0", "localhost:80", "[::1]:0"] {
        assert!(parse_address(good).is_ok(), "{good}");
    }
    for bad in ["0.0.0.0:0", "192.168.0.1:80", "[::]:0", "127.0.0.2:0", "127.0.0.1", "page.example:80", ""] {
        assert!(parse_address(bad).is_err(), "{bad}");
    }
    let both = "listen = '127.0.0.1:0'\nsocket = '/s'";
    assert!(error(Settings::default(), Some(both), &[]).contains("both"));
}

#[test]
fn a_socket_beside_a_port_is_asked_for_by_name() {
    let both = "listen = '127.0.0.1:0'\nalso-socket = '/s'";
    let config = load(Settings::default(), Some(both), &[]).unwrap();
    let expected = [Listen::Tcp("127.0.0.1:0".parse().unwrap()), Listen::Unix("/s".into())];
    assert_eq!(config.listen, expected);
    let environment = [("FILECTX_ALSO_SOCKET", "/t")];
    assert_eq!(
        load(Settings::default(), None, &environment).unwrap().listen[1..],
        [Listen::Unix("/t".into())]
    );
}
