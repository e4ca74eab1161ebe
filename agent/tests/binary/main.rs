//! The binary as people run it; enrolment meets a fake HTTP server in this process.

#[cfg(test)]
mod tests;
