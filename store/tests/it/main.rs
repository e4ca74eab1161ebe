//! All of `store` against a real PostgreSQL, one database for each test (see `database`).

#[cfg(test)]
mod billed;
#[cfg(test)]
mod constraints;
#[cfg(test)]
mod database;
#[cfg(test)]
mod invoiced;
#[cfg(test)]
mod moved;
#[cfg(test)]
mod once;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod proof;
#[cfg(test)]
mod races;
#[cfg(test)]
mod round_trips;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod segments;
#[cfg(test)]
mod supply;
#[cfg(test)]
mod transactions;
#[cfg(test)]
mod used;
#[cfg(test)]
mod world;
#[cfg(test)]
mod writer;
