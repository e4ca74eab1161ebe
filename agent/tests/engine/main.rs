//! The keeper on a real engine: `GPUMARKET_TEST_ENGINE` names its socket, `make test` sets it.

#[cfg(test)]
mod bench;
#[cfg(test)]
mod tests;
