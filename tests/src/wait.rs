//! Waiting for a condition: bounded, by asking again, never by guessing a time.

use std::future::Future;
use std::time::{Duration, Instant};

/// How long a condition may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(90);

/// Asks until there is an answer, or fails with what was waited for.
pub async fn until<T, F, Fut>(what: &str, mut ask: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Option<T>>,
{
    let start = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(
            start.elapsed() < LIMIT,
            "waited {LIMIT:?} in vain for: {what}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
