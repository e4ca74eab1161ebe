//! The room's tests: whole command lines against a stub of the market, and renderings.

mod bill;
mod booking;
mod documents;
mod login;
mod money;
mod rendering;
mod repetition;
mod staff;
mod stub;
mod usage;
mod views;
mod watching;
