//! A runner whose containers are a list in memory.

use std::sync::Mutex;

use agent::runner::{Container, LogQuery, Phase, Progress, Runner, RunnerError, Spec};
use web_openapi::lease::LogLine;

/// A runner whose containers are a list in memory.
#[derive(Default)]
pub(crate) struct InMemory(pub(crate) Mutex<Vec<Container>>);

impl InMemory {
    fn set(&self, id: &str, phase: Phase) {
        for c in self.0.lock().unwrap().iter_mut().filter(|c| c.id == id) {
            c.started_at = Some("2026-12-01T00:00:00Z".into());
            c.phase = phase.clone();
        }
    }
}

impl Runner for InMemory {
    async fn list(&self) -> Result<Vec<Container>, RunnerError> {
        Ok(self.0.lock().unwrap().clone())
    }

    async fn fetch(&self, _image: &str, progress: &dyn Progress) -> Result<(), RunnerError> {
        progress.note("pulling".into());
        Ok(())
    }

    async fn create(&self, spec: &Spec) -> Result<String, RunnerError> {
        let id = spec.container_name();
        self.0.lock().unwrap().push(Container {
            id: id.clone(),
            lease: spec.lease.lease_id.clone(),
            made_for: spec.lease.start_no,
            gpus: spec.lease.gpu_uuids.clone(),
            phase: Phase::Created,
            started_at: None,
        });
        Ok(id)
    }

    async fn rebuild(&self, _old: &str, spec: &Spec) -> Result<String, RunnerError> {
        self.create(spec).await
    }

    async fn start(&self, id: &str) -> Result<(), RunnerError> {
        self.set(id, Phase::Running);
        Ok(())
    }

    async fn stop(&self, id: &str) -> Result<(), RunnerError> {
        let fault = String::new();
        self.set(
            id,
            Phase::Ended {
                exit_code: Some(143),
                out_of_memory: false,
                fault,
            },
        );
        Ok(())
    }

    async fn unpause(&self, _id: &str) -> Result<(), RunnerError> {
        Ok(())
    }

    async fn remove(&self, id: &str) -> Result<(), RunnerError> {
        self.0.lock().unwrap().retain(|c| c.id != id);
        Ok(())
    }

    async fn clear(&self, _lease: &str) -> Result<(), RunnerError> {
        Ok(())
    }

    async fn logs(&self, id: &str, query: &LogQuery) -> Result<Vec<LogLine>, RunnerError> {
        let text = format!("{id} {} {:?}", query.tail, query.after.is_some());
        let at = "2026-12-01T00:00:00.000000001Z".to_owned();
        Ok(vec![LogLine {
            at,
            stream: "stdout".into(),
            text,
        }])
    }
}
