//! The one integration binary: house, contract, pricing, flows, races, and the kill test.

mod access;
mod bad_input;
mod budget;
mod contract;
mod exhaustion;
mod flow;
mod house;
mod invoice;
mod kill;
mod ledger;
mod posting;
mod metering;
mod pricing;
mod race;
