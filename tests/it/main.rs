//! The one integration binary: house, contract, pricing, flows, races, and what is killed.

mod access;
mod bad_input;
mod book;
mod budget;
mod contract;
mod day;
mod exhaustion;
mod flow;
mod house;
mod invoice;
mod keep;
mod kill;
mod ledger;
mod metering;
mod months;
mod posting;
mod pricing;
mod race;
mod replay;
mod stop;
mod writer;
