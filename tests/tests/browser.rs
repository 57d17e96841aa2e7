//! Swagger UI as a person sees it: in a real browser, on a host that is reached by SSH alone, with the example that the
//! page offers. The picture in `docs/` is made here: `UPDATE=1` makes it anew.

#![allow(clippy::panic, reason = "a test fails by a panic")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use filectx_tests::browser::{self, Browser};
use filectx_tests::programs::Service;
use filectx_tests::repo;
use filectx_tests::sshd::{self, Host};
use serde_json::Value;

/// What the page shows, in pixels.
const SIZE: (u32, u32) = (1200, 1044);
/// The picture, as the README names it.
const PICTURE: &str = "docs/swagger-ui.png";

/// Where it is looked at, and what it leaves out so that the whole answer has room: also the line for curl, with the token.
const SHOW: &str = "document.head.appendChild(document.createElement('style')).textContent = arguments[1]; \
                    document.querySelector(arguments[0]).scrollIntoView();";
const LEFT_OUT: &str = ".opblock-description-wrapper, .opblock-section, .curl-command, .request-url { display: none } \
                        .highlight-code .microlight { max-height: none !important }";

const OPERATION: &str = "#operations-files-read_file_context";

#[tokio::test]
async fn the_page_in_a_browser() {
    if !(browser::available() && sshd::available()) {
        return;
    }
    let host = Host::start("");
    let service = Service::start(&[]);
    let forward = host.forward(port_of(service.url()));
    assert_ne!(forward.port, port_of(service.url()), "the service does not know the port it is reached by");
    let at = format!("http://127.0.0.1:{}", forward.port);

    let browser = Browser::start(SIZE.0, SIZE.1).await;
    browser.page.goto(&format!("{at}/docs/")).await.expect("the page opens");
    browser.click(&format!("{OPERATION} .opblock-summary-control")).await;

    // A wrong token.
    browser.click(".auth-wrapper .authorize").await;
    authorize(&browser, &"0".repeat(64)).await;
    let (headers, problem) = execute(&browser, 401).await;
    assert!(headers.contains("content-type: application/problem+json"), "{headers}");
    assert_eq!(problem["code"], "unauthorized", "{problem}");
    assert_eq!(problem["status"], 401, "{problem}");

    // The right one.
    browser.click(".auth-wrapper .authorize").await;
    browser.click("[aria-label='Remove authorization']").await;
    authorize(&browser, &service.token).await;
    let (_, answer) = execute(&browser, 200).await;
    check(&answer);
    picture(&browser).await;

    let asked = browser.asked_for().await;
    // Besides what stands in the page itself, and the browser's own empty page.
    let own =
        |url: &&String| [&format!("{at}/"), "data:", "chrome://"].iter().any(|start| url.starts_with(*start));
    assert_eq!(asked.iter().find(|url| !own(url)), None, "another host is asked");
    let asked: BTreeSet<&str> = asked.iter().filter_map(|url| url.strip_prefix(&at)).collect();
    for path in ["/docs/", "/openapi.json", "/v1/read-file-context"] {
        assert!(asked.contains(path), "{path} is not in the browser's log: {asked:?}");
    }
    browser.close().await;
}

fn port_of(url: &str) -> u16 {
    url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port")
}

/// Enters the token in the window that *Authorize* has opened, and closes that.
async fn authorize(browser: &Browser, token: &str) {
    browser.find(".modal-ux input").await.send_keys(token).await.expect("it is typed");
    browser.click("[aria-label='Apply credentials']").await;
    browser.find("[aria-label='Remove authorization']").await;
    browser.click(".modal-ux .btn-done").await;
}

/// Executes the example as it stands; what the page shows of the answer: its headers, and its body.
async fn execute(browser: &Browser, status: u16) -> (String, Value) {
    let answer = format!("{OPERATION} .live-responses-table");
    browser.click(&format!("{OPERATION} .execute")).await;
    browser
        .find(&format!(
            "//*[contains(@class,'live-responses-table')]//td[contains(@class,'response-col_status')]\
             [starts-with(normalize-space(),'{status}')]"
        ))
        .await;
    let text = async |selector: &str| {
        browser.find(&format!("{answer} {selector}")).await.text().await.expect("a text")
    };
    let body = text(".response-col_description .highlight-code code").await;
    let body = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
    (text(".response-col_description pre:has(.headerline)").await, body)
}

/// Numbered content of what can be read, and a failure of what cannot.
fn check(answer: &Value) {
    let passwd = std::fs::read_to_string("/etc/passwd").expect("every Unix host has it");
    let five: String = passwd.split_inclusive('\n').take(5).collect();
    let first = &answer["file_contexts"][0];
    assert_eq!(first["file_name"], "/etc/passwd", "{answer}");
    assert_eq!(first["text_content"], five, "{answer}");
    assert_eq!(first["line_range_start"], 1, "{answer}");
    assert_eq!(first["line_range_end"], five.lines().count(), "{answer}");
    let second = &answer["file_contexts"][1];
    assert_eq!(second["file_name"], "/etc/group", "{answer}");
    assert_eq!(second["line_range_start"], 2, "{answer}");
    let failed = &answer["failed_files"][0];
    assert_eq!(failed["request_index"], 2, "{answer}");
    assert_eq!(failed["error"]["code"], "not_found", "{answer}");
}

/// Takes the picture: into `docs/` where that is asked for, else only to see that it is one.
async fn picture(browser: &Browser) {
    browser.page.execute(SHOW, vec![OPERATION.into(), LEFT_OUT.into()]).await.expect("it scrolls");
    let png = browser.page.screenshot().await.expect("a picture");
    let place = tempfile::tempdir().expect("a directory");
    let path: PathBuf = match std::env::var_os("UPDATE") {
        Some(_) => repo::root().join(PICTURE),
        None => place.path().join("picture.png"),
    };
    std::fs::write(&path, png).expect("it is written");
    for path in [&path, &repo::root().join(PICTURE)] {
        assert_eq!(size_of(path), SIZE, "{}", path.display());
    }
}

/// Width and height of a PNG.
fn size_of(path: &Path) -> (u32, u32) {
    let png = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let picture = image::load_from_memory_with_format(&png, image::ImageFormat::Png).expect("a PNG");
    assert!(png.len() < 400_000, "{} is large: {} bytes", path.display(), png.len());
    (picture.width(), picture.height())
}
