//! `filectxd` on the host: the program that is there, or the one that is brought. Its name holds its version and hash, so
//! what lies under a name never changes, and versions stand side by side.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::Progress;
use super::command::Master;
use super::options::HostOptions;
use super::probe::{Found, VERSION};
use super::script::{ScriptFailure, Upload};
use crate::host_error::{HostError, Step};

/// A `filectxd` on this side.
struct Program {
    bytes: Vec<u8>,
    sum: String,
}

impl Program {
    fn name(&self) -> String {
        format!("filectxd-{VERSION}-{}", &self.sum[..12])
    }
}

impl HostOptions {
    /// The path on the host of the program to use.
    pub(crate) async fn install(
        &self,
        master: &Master,
        found: &Found,
        progress: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<String, HostError> {
        let program = match self.own_program(found).await? {
            Some(program) => program,
            // Without one to bring, the last of this version that is there does.
            None => match found.installed.last() {
                Some(installed) => return Ok(installed.path.clone()),
                None => return Err(self.nothing_to_bring(found)),
            },
        };
        let name = program.name();
        let is_it = |path: &str, bytes: u64| {
            path.ends_with(&format!("/{name}")) && bytes == program.bytes.len() as u64
        };
        if let Some(there) = found.installed.iter().find(|there| is_it(&there.path, there.bytes)) {
            return Ok(there.path.clone());
        }
        let script = self
            .script(include_str!("install.sh"))
            .with("size", &program.bytes.len().to_string())
            .with("sum", &program.sum)
            .with("name", &name);
        let upload = Upload { bytes: &program.bytes, progress };
        let answer = self.run(master, &script, Some(upload), self.patience).await;
        let answer = answer.map_err(|failure| self.not_installed(failure))?;
        match answer.get("program") {
            Some(path) => Ok(path.to_owned()),
            None => Err(self.failed(Step::Install, "the host said nothing of it", "", "")),
        }
    }

    /// The program on this side that fits the host.
    async fn own_program(&self, found: &Found) -> Result<Option<Program>, HostError> {
        let Some(path) = self.program.clone().or_else(|| beside(found)) else { return Ok(None) };
        let failed = |detail: String, hint: &str| self.failed(Step::Install, detail, "", hint);
        let hint = "name a filectxd that can be read: --filectxd PATH";
        let reading = path.clone();
        let read = tokio::task::spawn_blocking(move || {
            std::fs::read(&reading).map(|bytes| (hex(&Sha256::digest(&bytes)), bytes))
        });
        let (sum, bytes) = match read.await {
            Ok(Ok(read)) => read,
            Ok(Err(error)) => return Err(failed(format!("{}: {error}", path.display()), hint)),
            Err(error) => return Err(failed(error.to_string(), hint)),
        };
        let wanted = format!("{}-{}", found.os, found.arch);
        match kind_of(&bytes) {
            Some(kind) if kind == wanted => Ok(Some(Program { bytes, sum })),
            kind => Err(failed(
                format!(
                    "{} is for {}, the host is {wanted}",
                    path.display(),
                    kind.as_deref().unwrap_or("no Linux")
                ),
                "name a filectxd that was built for the host: --filectxd PATH",
            )),
        }
    }

    fn nothing_to_bring(&self, found: &Found) -> HostError {
        let Found { os, arch, .. } = found;
        let detail =
            format!("the host ({os}, {arch}) has no filectxd {VERSION}, and there is none here to bring");
        let hint = format!(
            "put the static build for it beside filectx as filectxd-{os}-{arch}, or name it: --filectxd PATH"
        );
        self.failed(Step::Install, detail, "", &hint)
    }

    fn not_installed(&self, failure: ScriptFailure) -> HostError {
        let ScriptFailure { reason, detail, said } = failure;
        let dir = self.remote_dir.as_deref().unwrap_or("~/.local/share/filectx");
        let elsewhere = "choose a directory elsewhere on the host: --remote-dir DIR";
        let (detail, hint) = match reason.as_deref() {
            Some("directory") => (format!("{dir} cannot be made: {detail}"), elsewhere),
            Some("write") if detail.contains("No space") || detail.contains("quota") => (
                format!("the disk of {dir} is full: {detail}"),
                "make room there, or choose another: --remote-dir DIR",
            ),
            Some("write") => (format!("nothing can be written in {dir}: {detail}"), elsewhere),
            Some("short") => (format!("the program did not arrive whole: {detail}"), "try again"),
            Some("checksum") => (format!("the program arrived damaged: {detail}"), "try again"),
            Some("run") if detail.contains("denied") => {
                (format!("programs in {dir} may not be run (mounted noexec?): {detail}"), elsewhere)
            }
            Some("run") => (
                format!("the program does not run there: {detail}"),
                "bring a static build for the host's kind: --filectxd PATH",
            ),
            _ => (detail, "try again"),
        };
        self.failed(Step::Install, detail, &said, hint)
    }
}

/// The program beside this one, for a host of this kind.
fn beside(found: &Found) -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let directory = own.parent()?;
    let named = directory.join(format!("filectxd-{}-{}", found.os, found.arch));
    let same = found.os == std::env::consts::OS && found.arch == std::env::consts::ARCH;
    let plain = same.then(|| directory.join("filectxd"));
    [Some(named), plain].into_iter().flatten().find(|path: &PathBuf| Path::is_file(path))
}

/// For which hosts a program is, by its ELF header: `linux-x86_64`.
fn kind_of(bytes: &[u8]) -> Option<String> {
    let machine = bytes.starts_with(b"\x7fELF").then(|| bytes.get(18..20)).flatten()?;
    let arch = match machine {
        [0x3e, 0] => "x86_64",
        [0xb7, 0] => "aarch64",
        [0xf3, 0] => "riscv64",
        [0x28, 0] => "armv7l",
        [0x03, 0] => "i686",
        _ => return None,
    };
    Some(format!("linux-{arch}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
