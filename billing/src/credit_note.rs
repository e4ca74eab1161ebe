//! Credit notes: how a part of an invoice's total divides into net and tax.
//!
//! Cumulative, as charges are: whatever parts an invoice is credited in, the notes' tax adds up to
//! the invoice's tax once all of it is credited, and no more than all of it can be.

use domain::money::{Micros, MoneyError};
use thiserror::Error;

use crate::invoice::{InvoiceKind, Totals, credit};

/// Why a credit note cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CreditRefusal {
    /// Not above zero.
    #[error("the amount must be above zero")]
    NotPositive,
    /// More than is left of the invoice.
    #[error("only {left} of the invoice are not credited yet")]
    Exceeds {
        /// What is left.
        left: Micros,
    },
    /// A credit note cannot be credited.
    #[error("a credit note cannot be credited")]
    OfCreditNote,
    /// An amount does not fit.
    #[error(transparent)]
    Money(#[from] MoneyError),
}

/// The sums of a note over `amount` (tax in it) of an invoice of which `before` is credited already.
pub fn split(
    (kind, of): (InvoiceKind, Totals),
    before: Micros,
    amount: Micros,
) -> Result<Totals, CreditRefusal> {
    let tax = match kind {
        InvoiceKind::Sale => of.tax,
        InvoiceKind::SelfBilling => Micros::ZERO,
        InvoiceKind::CreditNote => return Err(CreditRefusal::OfCreditNote),
    };
    if amount <= Micros::ZERO {
        return Err(CreditRefusal::NotPositive);
    }
    let left = of.total.minus(before)?;
    if amount > left {
        return Err(CreditRefusal::Exceeds { left });
    }
    let taxed = |sum: Micros| -> Result<Micros, MoneyError> {
        let product = i128::from(tax.get()).saturating_mul(i128::from(sum.get()));
        // `of.total` is at least `amount`, so it is above zero.
        Micros::from_wide(product.div_euclid(i128::from(of.total.get())))
    };
    let part = taxed(before.plus(amount)?)?.minus(taxed(before)?)?;
    Ok(credit(amount.minus(part)?, part)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn totals(gross: i64, tax: i64) -> Totals {
        credit(Micros::new(gross), Micros::new(tax)).unwrap()
    }

    proptest! {
        #[test]
        fn any_parts_add_up_to_the_invoice(gross in 1i64..9_000_000_000, bps in 0i64..3_000,
            cuts in prop::collection::vec(1i64..2_000_000_000, 0..12)) {
            let of = totals(gross, gross * bps / 10_000);
            let (mut before, mut tax) = (Micros::ZERO, 0);
            let mut parts = cuts;
            parts.push(i64::MAX);
            for part in parts {
                let amount = Micros::new(part.min(of.total.get() - before.get()));
                if amount == Micros::ZERO { break; }
                let note = split((InvoiceKind::Sale, of), before, amount).unwrap();
                prop_assert_eq!(note.gross.get() + note.tax.get(), amount.get());
                prop_assert!(note.gross.get() >= 0 && note.tax.get() >= 0);
                before = before.plus(amount).unwrap();
                tax += note.tax.get();
            }
            prop_assert_eq!((before, tax), (of.total, of.tax.get()));
        }
    }

    #[test]
    fn no_more_than_all_of_it() {
        let of = totals(100, 19);
        let note =
            |kind, before, amount| split((kind, of), Micros::new(before), Micros::new(amount));
        assert_eq!(
            note(InvoiceKind::Sale, 100, 20),
            Err(CreditRefusal::Exceeds {
                left: Micros::new(19)
            })
        );
        assert_eq!(
            note(InvoiceKind::Sale, 0, 0),
            Err(CreditRefusal::NotPositive)
        );
        assert_eq!(
            note(InvoiceKind::CreditNote, 0, 1),
            Err(CreditRefusal::OfCreditNote)
        );
        assert_eq!(
            note(InvoiceKind::SelfBilling, 0, 50).unwrap().tax,
            Micros::ZERO
        );
    }
}
