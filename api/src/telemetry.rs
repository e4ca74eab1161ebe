//! Logs and metrics.

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;

use crate::config::Config;

/// Starts logging to standard error; a second call in one process changes nothing.
pub fn start(config: &Config) {
    let filter = EnvFilter::try_new(&config.log).unwrap_or_else(|_bad| EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let started = if config.log_json {
        logs.json().try_init()
    } else {
        logs.try_init()
    };
    if started.is_err() {
        tracing::debug!("logging was started before");
    }
}

/// Installs the metrics recorder; `None` if this process has one already.
pub fn metrics() -> Option<PrometheusHandle> {
    let seconds = [
        0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
    ];
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &seconds)
        .ok()?
        .install_recorder()
        .ok()
}
