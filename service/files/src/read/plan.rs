//! The plan of a batch: the request with its limits settled, checked as a whole before any file is touched.

use std::time::Duration;

use filectx_openapi::{LimitName, Limits, ReadFileContextRequest};

use crate::disk::roots::check_cwd;
use crate::image::FitLimits;
use crate::{Cancel, Error};

/// How the answer travels; it decides how much a request may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// As one JSON document.
    Json,
    /// As a stream of parts.
    Multipart,
}

/// A number of bytes, and the limit that sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    pub(crate) bytes: u64,
    pub(crate) name: LimitName,
}

/// What a batch is to do.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) request: ReadFileContextRequest,
    pub(crate) delivery: Delivery,
    /// Bytes of one binary.
    pub(crate) file: Budget,
    /// Bytes of one text, which lies in memory whole however the answer travels.
    pub(crate) text: Budget,
    pub(crate) batch: Budget,
    pub(crate) image: FitLimits,
    pub(crate) cancel: Cancel,
}

impl Plan {
    /// Checks the request and settles its limits.
    pub(crate) fn new(
        request: ReadFileContextRequest,
        limits: &Limits,
        delivery: Delivery,
    ) -> Result<Self, Error> {
        check_cwd(request.cwd.as_deref())?;
        check_files(&request, limits)?;
        let json = Budget { bytes: limits.max_json_file_bytes, name: LimitName::MaxJsonFileBytes };
        let most = match delivery {
            Delivery::Json => json,
            Delivery::Multipart => {
                Budget { bytes: limits.max_multipart_bytes, name: LimitName::MaxMultipartBytes }
            }
        };
        let file = Budget { bytes: limits.max_file_bytes, name: LimitName::MaxFileBytes };
        let batch = Budget { bytes: limits.max_batch_bytes, name: LimitName::MaxBatchBytes };
        let time = request.deadline_ms.unwrap_or(limits.deadline_ms).min(limits.deadline_ms);
        let text = wish(request.max_file_bytes, file, json);
        Ok(Self {
            image: image_limits(&request, limits, text, json)?,
            file: wish(request.max_file_bytes, file, most),
            text,
            delivery,
            batch: wish(request.max_batch_bytes, batch, most),
            cancel: Cancel::after(Duration::from_millis(time)),
            request,
        })
    }

    /// The most bytes that one file's outcome takes in memory.
    pub(crate) fn most_of_a_file(&self) -> u64 {
        self.text.bytes.max(self.image.max_bytes)
    }
}

/// What a request asked for, up to `most`; without a wish the default.
fn wish(wish: Option<u64>, default: Budget, most: Budget) -> Budget {
    match wish {
        None => default,
        // A default above `most` was set by the host's owner and holds.
        Some(bytes) if bytes > most.bytes.max(default.bytes) => most.max(default),
        Some(bytes) => Budget { bytes, name: default.name },
    }
}

/// What images in the answer keep to: the request's limits, where it names them. Its `max_file_bytes` is one of them,
/// the default is not: it is meant for texts.
fn image_limits(
    request: &ReadFileContextRequest,
    limits: &Limits,
    file: Budget,
    most: Budget,
) -> Result<FitLimits, Error> {
    let asked = request.image.unwrap_or_default();
    for (name, value) in [("max_pixels", asked.max_pixels), ("max_side", asked.max_side)] {
        if value == Some(0) {
            return Err(Error::invalid_request(
                format!("/image/{name}"),
                "0; an image has at least one pixel",
            ));
        }
    }
    let max_bytes = asked.max_bytes.unwrap_or(limits.image_max_bytes).min(most.bytes);
    Ok(FitLimits {
        max_pixels: asked.max_pixels.unwrap_or(limits.image_max_pixels),
        max_side: asked.max_side.unwrap_or(limits.image_max_side),
        max_bytes: if request.max_file_bytes.is_some() { max_bytes.min(file.bytes) } else { max_bytes },
        max_source_pixels: limits.max_image_source_pixels,
    })
}

impl Budget {
    fn max(self, other: Self) -> Self {
        if other.bytes > self.bytes { other } else { self }
    }
}

fn check_files(request: &ReadFileContextRequest, limits: &Limits) -> Result<(), Error> {
    let count = request.files.len() as u64;
    if count == 0 {
        return Err(Error::invalid_request("/files", "empty; name at least one file"));
    }
    if count > limits.max_files {
        let detail = format!(
            "{count} files are over the limit of {} (max_files); send several batches",
            limits.max_files
        );
        return Err(Error::InvalidRequest {
            pointer: "/files".into(),
            detail,
            limit: Some(limits.max_files),
        });
    }
    for (index, file) in request.files.iter().enumerate() {
        let pointer = format!("/files/{index}");
        crate::disk::roots::path_bytes(file.path.as_deref(), file.path_base64.as_deref(), &pointer)?;
        if file.byte_range.is_some() && !file.line_ranges.is_empty() {
            let detail = "line_ranges is there too; send one of the two";
            return Err(Error::invalid_request(format!("{pointer}/byte_range"), detail));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_clipped_and_named() {
        let limits = Limits::default();
        let plan = |file: Option<u64>, delivery| {
            let files = vec![filectx_openapi::FileRequest { path: Some("/a".into()), ..Default::default() }];
            let request = ReadFileContextRequest { files, max_file_bytes: file, ..Default::default() };
            Plan::new(request, &limits, delivery).unwrap().file
        };
        let budget = |bytes, name| Budget { bytes, name };
        assert_eq!(plan(None, Delivery::Json), budget(1_000_000, LimitName::MaxFileBytes));
        assert_eq!(plan(Some(5), Delivery::Json), budget(5, LimitName::MaxFileBytes));
        assert_eq!(plan(Some(1 << 40), Delivery::Json), budget(64 << 20, LimitName::MaxJsonFileBytes));
        assert_eq!(plan(Some(1 << 40), Delivery::Multipart), budget(16 << 30, LimitName::MaxMultipartBytes));
        assert_eq!(plan(Some(1 << 30), Delivery::Multipart), budget(1 << 30, LimitName::MaxFileBytes));
    }
}
