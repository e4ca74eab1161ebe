//! The one integration binary: house, contract, flows, races, and the kill test.

mod house;
