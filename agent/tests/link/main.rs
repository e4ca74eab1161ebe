//! The link against a fake server in this process: it speaks the protocol and keeps no state.

#[cfg(test)]
mod fake_server;
#[cfg(test)]
mod in_memory;
#[cfg(test)]
mod tests;
