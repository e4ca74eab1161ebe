//! Billing through its public API, against models that share no code with it.

#[cfg(test)]
mod hold;
#[cfg(test)]
mod lease;
#[cfg(test)]
mod model;
#[cfg(test)]
mod naive;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod time;
