//! Images: the local one if there is one, else pulled with visible progress.

use std::collections::BTreeMap;

use bollard::models::CreateImageInfo;
use bollard::query_parameters::CreateImageOptions;
use futures_util::StreamExt;

use super::sight::ListedImage;
use super::{Engine, disk_image, fault, status};
use crate::runner::{Progress, RunnerError};

const MIB: i64 = 1 << 20;

impl Engine {
    /// Makes the image present.
    pub(super) async fn fetch_image(
        &self,
        image: &str,
        progress: &dyn Progress,
    ) -> Result<(), RunnerError> {
        match self.docker.inspect_image(image).await {
            Ok(_) => return Ok(()),
            Err(error) if status(&error) == Some(404) => {}
            Err(error) => return Err(fault(error)),
        }
        progress.note(format!("pulling {image}"));
        let (name, tag) = split_reference(image);
        let options = CreateImageOptions {
            from_image: Some(name),
            tag,
            ..Default::default()
        };
        let mut told = self.docker.create_image(Some(options), None, None);
        let mut layers = Layers::default();
        while let Some(line) = told.next().await {
            let line = line.map_err(|e| explain(image, fault(e)))?;
            if let Some(detail) = layers.take(&line) {
                progress.note(format!("pulling {image}: {detail}"));
            }
        }
        // Some engines end the stream without an error.
        match self.docker.inspect_image(image).await {
            Ok(_) => Ok(()),
            Err(error) => Err(explain(image, fault(error))),
        }
    }

    /// References of the images in which the lease's disk was moved.
    pub(super) async fn disk_images(&self, lease: &str) -> Result<Vec<String>, RunnerError> {
        let repo = disk_image(lease);
        let found: Vec<ListedImage> = self.socket.get("/images/json").await?;
        let tags = found.into_iter().filter_map(|i| i.tags).flatten();
        Ok(tags
            .filter(|t| t.starts_with(&format!("{repo}:")))
            .collect())
    }
}

/// A pull is given up with the engine's words; only silence is worth another try.
fn explain(image: &str, error: RunnerError) -> RunnerError {
    match error {
        RunnerError::Refused(why) | RunnerError::NotFound(why) => {
            RunnerError::Refused(format!("cannot pull {image}: {why}"))
        }
        RunnerError::Unavailable(why) => RunnerError::Unavailable(why),
    }
}

/// Name and tag; a digest stays with the name, and no tag at all would pull every tag.
fn split_reference(image: &str) -> (String, Option<String>) {
    if image.contains('@') {
        return (image.to_owned(), None);
    }
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name.to_owned(), Some(tag.to_owned())),
        Some(_) | None => (image.to_owned(), Some("latest".to_owned())),
    }
}

/// How far each layer is.
#[derive(Default)]
struct Layers {
    bytes: BTreeMap<String, i64>,
    shown: String,
}

impl Layers {
    /// A new text if the line is a sign of progress that people would notice.
    fn take(&mut self, line: &CreateImageInfo) -> Option<String> {
        let detail = line.progress_detail.as_ref();
        if let (Some(id), Some(now)) = (&line.id, detail.and_then(|d| d.current)) {
            let most = self.bytes.entry(id.clone()).or_default();
            *most = now.max(*most);
        }
        let total: i64 = self.bytes.values().fold(0, |sum, b| sum.saturating_add(*b));
        let text = if total > 0 {
            format!(
                "{} MiB of {} layers",
                total.div_euclid(MIB),
                self.bytes.len()
            )
        } else {
            line.status.clone()?.trim().to_owned()
        };
        if text == self.shown || text.is_empty() {
            return None;
        }
        self.shown.clone_from(&text);
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::ProgressDetail;

    use super::*;

    #[test]
    fn references_are_split_as_registries_do() {
        let split = |s: &str| {
            let (name, tag) = split_reference(s);
            format!("{name} {}", tag.unwrap_or_default())
        };
        assert_eq!(split("busybox"), "busybox latest");
        assert_eq!(
            split("localhost/gpumarket/busybox:1"),
            "localhost/gpumarket/busybox 1"
        );
        assert_eq!(split("localhost:5000/a"), "localhost:5000/a latest");
        assert_eq!(split("localhost:5000/a:2"), "localhost:5000/a 2");
        assert_eq!(split("a@sha256:00"), "a@sha256:00 ");
    }

    #[test]
    fn progress_is_told_once_per_step() {
        let line = |current| CreateImageInfo {
            id: Some("l".into()),
            progress_detail: Some(ProgressDetail {
                current: Some(current),
                total: None,
            }),
            ..Default::default()
        };
        let mut layers = Layers::default();
        assert!(layers.take(&line(MIB)).is_some());
        assert!(layers.take(&line(MIB + 5)).is_none());
        assert!(layers.take(&line(2 * MIB)).unwrap().starts_with("2 MiB"));
    }
}
