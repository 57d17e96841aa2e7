//! `filectx info`: who answers, and what it can do.

use filectx_client::API;
use filectx_client::render::{Paint, grouped};
use filectx_openapi::{Feature, InfoResponse, LIMIT_NAMES, Limits};
use serde::Serialize;

use super::Context;
use super::exit::{Exit, Failure};

/// Says who answers: the service and its host, its limits and features
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Args {
    /// Prints the contract's response
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is there without a service.
#[derive(Serialize)]
struct Embedded<'a> {
    service: Option<&'a str>,
    version: &'a str,
    api: &'a str,
    limits: &'a Limits,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let info = context.backend.info()?;
    let text = match (&info, args.json) {
        (Some(info), true) => return context.out.json(info.as_ref()).map(|()| Exit::Done),
        (Some(info), false) => of_service(info),
        (None, json) => {
            let limits = Limits::default();
            let version = env!("CARGO_PKG_VERSION");
            if json {
                let embedded = Embedded { service: None, version, api: API, limits: &limits };
                return context.out.json(&embedded).map(|()| Exit::Done);
            }
            let mut rows = vec![
                ("client", format!("filectx {version}, contract {API}")),
                ("service", "none named: files of this machine are read in process".to_owned()),
            ];
            rows.extend(limit_rows(&limits));
            rows
        }
    };
    let width = text.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let style = context.out.style();
    for (name, value) in text {
        let name = style.paint(Paint::Dim, &format!("{name:width$}"));
        context.out.print(&format!("{name}  {}\n", style.line(&value)))?;
    }
    Ok(Exit::Done)
}

fn of_service(info: &InfoResponse) -> Vec<(&'static str, String)> {
    let roots = if info.roots.is_empty() {
        format!("none: all that {} may reach", info.user)
    } else {
        info.roots.join(", ")
    };
    let features: Vec<_> = info.features.iter().map(feature).collect();
    let mut rows = vec![
        ("service", format!("{} {}, contract {}", info.service, info.version, info.api)),
        ("host", format!("{} ({}, {}), id {}", info.host_name, info.os, info.arch, info.host_id)),
        ("user", format!("{}, home {}", info.user, info.home)),
        ("instance", info.instance_id.clone()),
        ("roots", roots),
        ("read only", if info.read_only { "yes" } else { "no" }.to_owned()),
        ("features", features.join(", ")),
    ];
    rows.extend(limit_rows(&info.limits));
    rows
}

fn feature(feature: &Feature) -> String {
    match serde_json::to_value(feature) {
        Ok(serde_json::Value::String(name)) => name,
        _ => format!("{feature:?}"),
    }
}

/// Every limit by its name.
fn limit_rows(limits: &Limits) -> Vec<(&'static str, String)> {
    let values = serde_json::to_value(limits).unwrap_or_default();
    let value = |name: &str| values.get(name).and_then(serde_json::Value::as_u64).unwrap_or_default();
    let row = |name: &&'static str| {
        let value = grouped(value(name));
        let unit = ["bytes", "pixels", "ms"].into_iter().find(|unit| name.ends_with(unit));
        (*name, unit.map_or(value.clone(), |unit| format!("{value} {unit}")))
    };
    LIMIT_NAMES.iter().map(row).collect()
}
