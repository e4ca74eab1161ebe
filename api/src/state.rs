//! Everything put together: the same call in `main` and in tests.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use actix_web::{App, HttpServer, web};
use app::context::Settings;
use app::{Cx, Policy};
use domain::clock::Span;
use domain::gpu::Catalogue;
use metrics_exporter_prometheus::PrometheusHandle;
use store::Db;

use crate::config::Config;
use crate::edge::clock::{FreshIds, SystemClock};
use crate::edge::hub::{Hub, HubWake};
use crate::edge::keys::Keys;
use crate::http;
use crate::http::limit::Limits;

/// What every request handler and worker gets.
#[derive(Clone)]
pub struct Shared {
    /// Use-cases' context.
    pub cx: Cx,
    /// The market's keys.
    pub keys: Arc<Keys>,
    /// Links to agents.
    pub hub: Arc<Hub>,
    /// Rate limits.
    pub limits: Arc<Limits>,
    /// Metrics, if this process records them.
    pub metrics: Option<PrometheusHandle>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shared")
    }
}

impl Shared {
    /// Puts the parts together. Connects to the database when it is first needed.
    pub fn build(config: &Config, metrics: Option<PrometheusHandle>) -> Result<Self, String> {
        let provider = &jsonwebtoken::crypto::aws_lc::DEFAULT_PROVIDER;
        if provider.install_default().is_err() {
            tracing::debug!("the token library's cryptography was chosen before");
        }
        let keys = Keys::load(&config.state_dir)?;
        let hub = Arc::new(Hub::default());
        let db = Db::connect(&config.database_url, config.database_connections)
            .map_err(|e| e.to_string())?;
        let cx = Cx::new(Settings {
            db,
            clock: Box::new(SystemClock::default()),
            ids: Box::new(FreshIds),
            policy: Policy {
                fee_bps: config.fee_bps,
                tax: config.tax.clone(),
                operator: config.operator.clone(),
                payments: config.payments,
                allow_simulated: config.allow_simulated,
                quote_ttl: Span::from_secs(120),
                enrollment_ttl: Span::from_hours(24),
                heartbeat: config.heartbeat,
                settle_every: Span::from_mins(10),
                payouts: config.payouts,
                approval_above: config.approval_above,
            },
            catalogue: Catalogue::embedded().map_err(|e| e.to_string())?,
            signer: Box::new(keys.clone()),
            wake: Box::new(HubWake(Arc::clone(&hub))),
        });
        Ok(Self {
            cx,
            keys: Arc::new(keys),
            hub,
            limits: Arc::new(Limits::new(config.rate_limit_factor)),
            metrics,
        })
    }
}

/// The whole server over a socket that listens already: the same in `main` and in tests.
#[derive(Debug)]
pub struct Application {
    /// What it is made of.
    pub shared: Shared,
    /// The port that it listens on.
    pub port: u16,
    listener: TcpListener,
}

impl Application {
    /// Puts the server together; `Err` is a sentence for the operator.
    pub fn build(config: &Config, listener: TcpListener) -> Result<Self, String> {
        let port = listener
            .local_addr()
            .map_err(|e| format!("the socket has no address: {e}"))?
            .port();
        let shared = Shared::build(config, crate::telemetry::metrics())?;
        Ok(Self {
            shared,
            port,
            listener,
        })
    }

    /// Serves until the process is told to stop, or the future is dropped.
    pub async fn run(self) -> std::io::Result<()> {
        serve(self.shared, self.listener).await
    }
}

/// Serves HTTP and drives the workers until the process is told to stop.
pub async fn serve(shared: Shared, listener: TcpListener) -> std::io::Result<()> {
    let workers = crate::worker::start(&shared);
    let db = shared.cx.db.clone();
    let server = HttpServer::new(move || {
        App::new()
            .app_data(web::Data::new(shared.clone()))
            .wrap(actix_web::middleware::from_fn(http::conventions))
            .wrap(actix_web::middleware::Compress::default())
            .configure(http::mount)
    })
    .workers(2)
    .client_request_timeout(Duration::from_secs(10))
    .keep_alive(Duration::from_secs(75))
    .shutdown_timeout(3)
    .listen(listener)?
    .run();
    let result = server.await;
    for worker in workers {
        worker.abort();
    }
    if let Err(error) = db.release_shards().await {
        tracing::debug!(%error, "the ledger's shards end by themselves");
    }
    result
}
