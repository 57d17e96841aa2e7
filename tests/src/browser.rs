//! A browser for tests: Debian's Chromium by its own driver, both of one test alone. It can reach loopback and nothing
//! else, and its own log tells what it asked for.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fantoccini::elements::Element;
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};

/// The longest that a page may take for one thing on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether this machine has the browser and its driver.
pub fn available() -> bool {
    crate::require::program("chromium") && crate::require::program("chromedriver")
}

/// A browser with one page, ended when dropped.
#[derive(Debug)]
pub struct Browser {
    /// The page.
    pub page: Client,
    driver: Driver,
}

impl Browser {
    /// Starts one that shows `width` by `height` pixels.
    pub async fn start(width: u32, height: u32) -> Self {
        let driver = Driver::start();
        let capabilities = json!({
            "goog:loggingPrefs": { "performance": "ALL" },
            "goog:chromeOptions": {
                "args": switches(&driver),
                "mobileEmulation": {
                    "deviceMetrics": { "width": width, "height": height, "pixelRatio": 1, "mobile": false, "touch": false },
                },
            },
        });
        let capabilities = capabilities.as_object().cloned().expect("an object");
        let page = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&driver.url)
            .await
            .expect("the browser starts");
        Self { page, driver }
    }

    /// The element that this selector of CSS or XPath (`//...`) names, once it is there.
    #[track_caller]
    pub fn find(&self, selector: &str) -> impl Future<Output = Element> {
        let locator =
            if selector.starts_with("//") { Locator::XPath(selector) } else { Locator::Css(selector) };
        let at = std::panic::Location::caller();
        async move {
            let found =
                self.page.wait().at_most(PATIENCE).every(Duration::from_millis(50)).for_element(locator);
            found.await.unwrap_or_else(|error| panic!("{at}: {selector}: {error}"))
        }
    }

    /// Clicks on it.
    #[track_caller]
    pub fn click(&self, selector: &str) -> impl Future<Output = ()> {
        let found = self.find(selector);
        async move { found.await.click().await.unwrap_or_else(|error| panic!("{selector}: {error}")) }
    }

    /// Every address that the page has asked for since this was asked last, by the browser's own log.
    pub async fn asked_for(&self) -> Vec<String> {
        let entries = self.page.issue_cmd(Log).await.expect("the browser has a log");
        let entries = entries.as_array().expect("entries");
        let messages = entries.iter().map(|entry| {
            let text = entry["message"].as_str().expect("a message");
            serde_json::from_str::<Value>(text).expect("JSON")["message"].take()
        });
        let address = |message: Value| match message["method"].as_str()? {
            "Network.requestWillBeSent" => message["params"]["request"]["url"].as_str().map(str::to_owned),
            "Network.webSocketCreated" | "Network.webTransportCreated" => {
                message["params"]["url"].as_str().map(str::to_owned)
            }
            _ => None,
        };
        messages.filter_map(address).collect()
    }

    /// Ends it in order.
    pub async fn close(self) {
        self.page.close().await.expect("the browser ends");
        drop(self.driver);
    }
}

fn switches(driver: &Driver) -> Vec<String> {
    let own = [
        "--headless=new",
        // Root has no sandbox, and a container little shared memory.
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--hide-scrollbars",
        "--no-first-run",
        "--password-store=basic",
        // It calls nobody: neither its makers for news of itself, nor what a page might name.
        "--disable-background-networking",
        "--disable-breakpad",
        "--disable-client-side-phishing-detection",
        "--disable-component-update",
        "--disable-default-apps",
        "--disable-domain-reliability",
        "--disable-extensions",
        "--disable-features=OptimizationHints,MediaRouter,Translate,AutofillServerCommunication",
        "--disable-sync",
        "--metrics-recording-only",
        "--no-pings",
        "--no-proxy-server",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    ];
    let profile = format!("--user-data-dir={}/profile", driver.home.path().display());
    own.map(str::to_owned).into_iter().chain([profile]).collect()
}

/// The log that `goog:loggingPrefs` asks for; the driver gives each entry once.
#[derive(Debug)]
struct Log;

impl WebDriverCompatibleCommand for Log {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/se/log", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(json!({ "type": "performance" }).to_string()))
    }
}

/// The browser's driver, which starts the browser.
#[derive(Debug)]
struct Driver {
    child: Child,
    url: String,
    home: tempfile::TempDir,
}

impl Driver {
    fn start() -> Self {
        let home = tempfile::Builder::new().prefix("fxbrowser").tempdir().expect("a directory");
        let mut child = Command::new("chromedriver")
            .arg("--port=0")
            .env("HOME", home.path())
            .env("TMPDIR", home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // A group of its own: what it started ends with it.
            .process_group(0)
            .spawn()
            .expect("chromedriver starts");
        let mut said = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut line = String::new();
        let port = loop {
            line.clear();
            assert!(said.read_line(&mut line).is_ok_and(|read| read > 0), "chromedriver does not start");
            if let Some((_, port)) = line.trim().split_once("started successfully on port ") {
                break port.trim_end_matches('.').to_owned();
            }
        };
        // What it says later is read, and forgotten: it must not wait for a reader.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Self { child, url: format!("http://127.0.0.1:{port}"), home }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.child.wait();
    }
}
