//! What burns a party's money now, and when it ends.

use std::collections::BTreeMap;

use billing::exhaustion::{Flame, dry_at};
use billing::hold::Burn;
use billing::meter::Meter;
use domain::clock::{Span, Timestamp};
use domain::id::{LeaseId, PartyId};
use domain::lease::GpuTime;
use domain::money::{Micros, Period};
use store::db::Ro;
use store::lease::LeaseRecord;

use crate::error::Error;
use crate::lease::FRESH;
use crate::lease::money::{burn, pair};

/// What a party's leases burn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Burning {
    /// The rates that are billed now.
    pub(crate) flames: Vec<Flame>,
    /// Owed until now, but not charged yet.
    owed: Micros,
    /// Promised to disks beyond their running leases' end.
    reserved: Micros,
}

impl Burning {
    /// Reads what burns at `now`.
    pub(crate) async fn load(ro: &mut Ro, party: PartyId, now: Timestamp) -> Result<Self, Error> {
        let leases = store::lease::renter_live(ro, party).await?;
        let ids: Vec<LeaseId> = leases.iter().map(|l| l.id).collect();
        let mut meters: BTreeMap<LeaseId, Vec<Meter>> = BTreeMap::new();
        for meter in store::meter::of_leases(ro, &ids).await? {
            meters.entry(meter.lease).or_default().push(meter);
        }
        let mut burning = Self::default();
        for lease in leases {
            let own = meters.remove(&lease.id).unwrap_or_default();
            burning.add(&lease, pair(own)?, now)?;
        }
        Ok(burning)
    }

    fn add(
        &mut self,
        lease: &LeaseRecord,
        (compute, storage): (Meter, Meter),
        now: Timestamp,
    ) -> Result<(), Error> {
        let billed = lease.state.billed(lease.keeps_gpus);
        let gpus = billed.compute != GpuTime::Free;
        for (on, meter) in [(gpus, &compute), (billed.storage, &storage)] {
            if on {
                self.flames.push(Flame {
                    rate: meter.last_rate(),
                    tax_bps: meter.shares.tax_bps,
                });
            }
            let shown = meter.estimate(now, FRESH, None)?.minus(meter.charged)?;
            self.owed = self.owed.plus(shown.renter()?)?;
        }
        if gpus {
            let disk = Burn {
                storage: storage.last_rate(),
                ..burn(lease)?
            };
            self.reserved = self.reserved.plus(disk.retention()?)?;
        }
        Ok(())
    }

    /// When a wallet with `posted` has nothing left for running leases: the disks' promised time
    /// stays. `None` if nothing burns.
    pub(crate) fn runs_out_at(
        &self,
        posted: Micros,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, Error> {
        let budget = posted.minus(self.owed)?.minus(self.reserved)?;
        Ok(dry_at(budget.max(Micros::ZERO), &self.flames, now))
    }
}

/// How long something lasts, for people.
pub(crate) fn for_people(left: Span) -> String {
    let minutes = left.secs().div_euclid(60);
    let hours = left.millis().div_euclid(Period::Hour.millis());
    if hours >= 1 {
        format!("{hours} h {} min", minutes.rem_euclid(60))
    } else if minutes >= 1 {
        format!("{minutes} min")
    } else {
        "less than a minute".to_owned()
    }
}
