//! Quotes: a firm all-in price, signed, for two minutes.

use domain::access::Scope;
use domain::clock::Span;
use domain::id::{OfferId, QuoteId};
use domain::money::Currency;
use domain::refusal::Code;
use matching::price::{Terms, all_in};
use store::db::{Ro, Tx};
use store::quote::QuoteRecord;

use crate::context::{Answer, Audited, Caller, Cx, Once, mutate};
use crate::error::Error;
use crate::offer::PriceView;

/// What is to be priced.
#[derive(Clone, Copy, Debug)]
pub struct QuoteAsk {
    /// The offer.
    pub offer: OfferId,
    /// Refuse if it is not at this version any more.
    pub offer_version: Option<i64>,
    /// GPUs.
    pub gpu_count: u16,
    /// Disk.
    pub disk_gib: u32,
    /// For the total; the rates hold for any duration.
    pub duration: Span,
}

/// A quote with its price worked out.
#[derive(Clone, Debug)]
pub struct QuoteView {
    /// The quote.
    pub quote: QuoteRecord,
    /// The whole price.
    pub price: PriceView,
}
