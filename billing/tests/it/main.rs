//! Billing through its public API, against a model that shares no code with it.

#[cfg(test)]
mod hold;
#[cfg(test)]
mod lease;
#[cfg(test)]
mod naive;
#[cfg(test)]
mod time;
