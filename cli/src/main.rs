//! The command `gpumarket`.

use std::io::{stderr, stdout};
use std::process::ExitCode;

fn main() -> ExitCode {
    // One TLS stack; a second installation can only be the same.
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return ExitCode::FAILURE;
    };
    let arguments = std::env::args_os().collect();
    let environment = cli::Environment::of_process();
    let code = runtime.block_on(Box::pin(cli::run(
        arguments,
        environment,
        &mut stdout().lock(),
        &mut stderr().lock(),
    )));
    ExitCode::from(code)
}
