//! What a provider has earned: gross, fee, net, what is proven but not booked yet, and where the net
//! is: maturing, reserve, payable, in flight, paid.

use billing::account::AccountCode;
use billing::rating::{Due, Shares, due};
use domain::access::Scope;
use domain::id::{LeaseId, PartyId};
use domain::lease::GpuTime;
use domain::money::{Currency, Micros, Period};
use store::db::Ro;

use crate::context::{Caller, Cx};
use crate::error::Error;

mod statement;

pub use statement::{EarningsPeriod, statement};

/// A provider's earnings.
#[derive(Clone, Copy, Debug)]
pub struct EarningsView {
    /// Charges before the fee, ever.
    pub gross: Micros,
    /// The platform's fee, ever.
    pub fee: Micros,
    /// Net, booked, ever.
    pub net: Micros,
    /// Tax that renters paid on top; the provider never has it.
    pub tax: Micros,
    /// Earned, still inside the maturing period.
    pub maturing: Micros,
    /// Kept back of what has matured.
    pub reserve: Micros,
    /// May be paid out.
    pub payable: Micros,
    /// On its way to the bank.
    pub in_flight: Micros,
    /// Paid out, ever, without what came back.
    pub paid: Micros,
    /// Owed by the provider: taken back after it was paid out.
    pub receivable: Micros,
    /// Net of proven time that is not booked yet.
    pub pending: Micros,
    /// What live leases earn per hour now, net.
    pub rate_per_hour: Micros,
    /// Live leases on own machines.
    pub live_leases: u32,
}

/// The earnings of the caller's party.
pub async fn get(cx: &Cx, caller: &Caller) -> Result<EarningsView, Error> {
    caller.may(Scope::MoneyRead, None)?;
    let party = caller.actor.party;
    cx.db
        .read::<_, Error, _>(async |ro: &mut Ro| {
            let booked = store::charge::sums_of_provider(ro, party).await?;
            let leases = store::lease::provider_live(ro, party).await?;
            let ids: Vec<LeaseId> = leases.iter().map(|l| l.id).collect();
            let mut pending = Due::default();
            for meter in store::meter::of_leases(ro, &ids).await? {
                pending = pending.plus(meter.unsettled()?)?;
            }
            let mut rate = Micros::ZERO;
            for lease in &leases {
                let shares = Shares {
                    fee_bps: lease.terms.fee_bps,
                    tax_bps: 0,
                };
                let mut add = |r| -> Result<(), Error> {
                    rate = rate.plus(due(r, shares, Period::Hour.millis())?.provider()?)?;
                    Ok(())
                };
                let billed = lease.state.billed(lease.keeps_gpus);
                match billed.compute {
                    GpuTime::Free => {}
                    GpuTime::Kept => add(lease.terms.keep_rate()?)?,
                    GpuTime::Used => add(lease.terms.compute_rate()?)?,
                }
                if billed.storage {
                    add(lease.terms.storage_rate()?)?;
                }
            }
            let [maturing, reserve, payable, in_flight, receivable] = balances(ro, party).await?;
            Ok(EarningsView {
                gross: booked.gross,
                fee: booked.fee,
                net: booked.provider()?,
                tax: booked.tax,
                maturing,
                reserve,
                payable,
                in_flight,
                paid: store::payout::paid(ro, party).await?,
                receivable,
                pending: pending.provider()?,
                rate_per_hour: rate,
                live_leases: u32::try_from(leases.len()).unwrap_or(u32::MAX),
            })
        })
        .await
}

/// The provider's accounts: earned, reserve, payable, in flight, owed.
async fn balances(ro: &mut Ro, party: PartyId) -> Result<[Micros; 5], Error> {
    let codes = [
        AccountCode::ProviderEarned,
        AccountCode::ProviderReserve,
        AccountCode::ProviderPayable,
        AccountCode::PayoutInFlight,
        AccountCode::ProviderReceivable,
    ];
    let mut worth = [Micros::ZERO; 5];
    for (code, place) in codes.into_iter().zip(&mut worth) {
        let account = store::ledger::account_of(ro, Currency::Usd, (code, party.uuid())).await?;
        *place = account.map_or(Ok(Micros::ZERO), |a| a.worth())?;
    }
    Ok(worth)
}
