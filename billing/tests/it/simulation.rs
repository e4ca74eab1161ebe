//! Months of a market by seed: machines with clocks of their own, reports that are lost, late,
//! doubled and disordered, a server that crashes and whose clock is set, renters who top up, resize,
//! stop, resume and end. After every event the books are checked; a failure prints its seed.
//!
//! `GPUMARKET_SIMULATION_SEEDS=1000` (or `FIRST..LAST`) runs more of them.

mod book;
mod chance;
mod lease;
mod machine;
mod ticks;

use std::collections::BTreeMap;

use billing::meter::Proof;
use domain::clock::Timestamp;

use book::{Book, RENTERS};
use chance::Chance;
use lease::Stage;
use machine::{Command, Machine, Report, seeds};

const MACHINES: usize = 3;
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// Days of each seed.
const DAYS: i64 = 30;

struct World {
    chance: Chance,
    /// True time in ms.
    now: i64,
    /// What the server's clock is ahead of it.
    offset: i64,
    book: Book,
    saved: Book,
    /// Taken since the last commit: done again after a crash.
    redo: Vec<Command>,
    machines: Vec<Machine>,
    /// What runs on the machines, as their last order said: lease → (machine, run, true start).
    running: BTreeMap<u128, (usize, i64, i64)>,
    flying: BTreeMap<(i64, u64), Report>,
    sent: u64,
    asked_for: i128,
    /// True GPU time, and what clocks may add to it.
    true_ms: i64,
    tolerance_ms: i64,
    billed_ms: i64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut chance = Chance(seed);
        let machines = (0..MACHINES).map(|_| Machine {
            boot: 1,
            booted_at: -chance.from(0, DAY),
            drift_ppm: chance.from(-200, 200),
            next_report_at: 0,
            silent_until: 0,
        });
        let machines = machines.collect();
        let book = Book::new();
        Self {
            chance,
            now: 0,
            offset: 0,
            saved: book.clone(),
            book,
            redo: Vec::new(),
            machines,
            running: BTreeMap::new(),
            flying: BTreeMap::new(),
            sent: 0,
            asked_for: 0,
            true_ms: 0,
            tolerance_ms: 0,
            billed_ms: 0,
        }
    }

    fn server_now(&self) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000 + self.now + self.offset)
    }

    fn take(&mut self, command: Command) {
        let now = self.server_now();
        match command {
            Command::TopUp(renter, amount) => self.book.top_up(renter, amount, now),
            Command::Book(where_to, what) => self.book.book(where_to, what, now),
            Command::Stop(no) if self.book.leases.contains_key(&no) => self.book.stop(no, now),
            Command::Resume(no) if self.book.leases.contains_key(&no) => self.book.resume(no),
            Command::End(no) if self.book.leases.contains_key(&no) => self.book.end(no, now),
            Command::Resize(no, gib) if self.book.leases.contains_key(&no) => {
                self.book.resize(no, gib, now);
            }
            Command::Stop(_) | Command::Resume(_) | Command::End(_) | Command::Resize(..) => {}
        }
        self.redo.push(command);
    }

    fn commit(&mut self) {
        self.book.tidy();
        self.saved = self.book.clone();
        self.redo.clear();
    }

    /// The server dies; what was not committed is gone, and asked for again.
    fn crash(&mut self) {
        self.book = self.saved.clone();
        if self.chance.hits(200) {
            // Its clock is set while it is down, back or ahead.
            self.offset = self.chance.from(-HOUR, HOUR);
            self.tolerance_ms += 2_000;
        }
        for command in std::mem::take(&mut self.redo) {
            self.take(command);
        }
    }

    /// A machine looks at what it runs and reports it; its orders follow what the server wants.
    fn report(&mut self, place: usize) {
        let machine = self.machines[place].clone();
        let on_it = self.running.iter().filter(|(_, (m, ..))| *m == place);
        let report = Report {
            machine: place,
            boot: machine.boot,
            mono_ms: machine.mono_ms(self.now),
            runs: on_it.map(|(no, (_, run, _))| (*no, *run)).collect(),
        };
        let copies = match self.chance.from(0, 99) {
            0..5 => 0,
            5..10 => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let late = if self.chance.hits(10) {
                10 * MINUTE
            } else {
                800
            };
            let delay = self.chance.from(1, late);
            self.sent += 1;
            self.flying
                .insert((self.now + delay, self.sent), report.clone());
        }
    }

    /// The server takes a report, as `app::link::report` does, and the machine its new orders.
    fn deliver(&mut self, report: &Report) {
        let now = self.server_now();
        let here = self
            .book
            .leases
            .values()
            .filter(|l| l.machine == report.machine);
        let here: Vec<u128> = here.map(|l| l.no).collect();
        for no in here {
            let lease = self.book.leases[&no].clone();
            let seen = report
                .runs
                .iter()
                .find(|(l, _)| *l == no)
                .map(|(_, run)| *run);
            let proof = |run: String| Proof {
                boot: format!("boot {}", report.boot),
                run,
                mono_ms: report.mono_ms,
                at: now,
            };
            let ordered = matches!(lease.stage, Stage::Stopping | Stage::Ending);
            if seen == Some(lease.run) && (lease.stage == Stage::Running || ordered) {
                let unpaid = self
                    .book
                    .prove(no, 0, &proof(format!("{no} {}", lease.run)));
                let last = lease.meters[0].proof.as_ref();
                let gap = last.map_or(i64::MAX, |p| report.mono_ms - p.mono_ms);
                let proofs_arrive = gap <= 30_000 && lease.stage == Stage::Running;
                assert!(
                    !proofs_arrive || unpaid == 0,
                    "{unpaid} ms unpaid after {gap} ms"
                );
            }
            if lease.stage != Stage::Ended {
                self.book.prove(no, 1, &proof(format!("disk {no}")));
            }
            self.obey(no);
            self.book.renew(no, now);
        }
        self.book.check();
    }

    /// The machine makes true what the server wants of a lease.
    fn obey(&mut self, no: u128) {
        let lease = self.book.leases[&no].clone();
        let now = self.server_now();
        let known = self.running.get(&no).copied();
        match lease.stage {
            Stage::Running if known.is_none_or(|(_, run, _)| run != lease.run) => {
                self.running
                    .insert(no, (lease.machine, lease.run, self.now));
                self.tolerance_ms += 2_000;
            }
            Stage::Stopping | Stage::Ending => {
                self.kill(no);
                let before = lease.meters[0].billable_ms;
                self.book.done(no, now);
                if lease.stage == Stage::Ending {
                    self.billed_ms += before;
                }
            }
            Stage::Running | Stage::Stopped | Stage::Ended => {}
        }
    }

    fn kill(&mut self, no: u128) {
        if let Some((_, _, since)) = self.running.remove(&no) {
            self.true_ms += self.now - since;
        }
    }

    /// The machine boots again: its clock and its containers start anew.
    fn reboot(&mut self, place: usize) {
        let gone: Vec<u128> = self
            .running
            .iter()
            .filter(|(_, (m, ..))| *m == place)
            .map(|(no, _)| *no)
            .collect();
        for no in gone {
            self.kill(no);
        }
        let down = self.chance.from(MINUTE, HOUR);
        let machine = &mut self.machines[place];
        machine.boot += 1;
        machine.booted_at = self.now + down;
        machine.silent_until = self.now + down + 1;
        self.flying.retain(|_, r| r.machine != place);
    }

    fn some_lease(&mut self) -> Option<u128> {
        let all: Vec<u128> = self.book.leases.keys().copied().collect();
        (!all.is_empty()).then(|| all[self.chance.place(all.len())])
    }

    /// A renter does something.
    fn wish(&mut self) {
        let renter = self.chance.place(RENTERS);
        let command = match (self.chance.from(0, 9), self.some_lease()) {
            (0..3, _) | (_, None) if self.chance.hits(500) => {
                let amount = self.chance.from(1_000_000, 60_000_000);
                self.asked_for += i128::from(amount);
                Command::TopUp(renter, amount)
            }
            (3..5, _) | (_, None) if self.book.leases.len() < 6 => {
                let machine = self.chance.place(MACHINES);
                let what = (self.chance.from(1, 40_000_000), self.chance.from(1, 2_000));
                Command::Book((renter, machine), what)
            }
            (5, Some(no)) => Command::Stop(no),
            (6..8, Some(no)) => Command::Resume(no),
            (8, Some(no)) => Command::Resize(no, self.chance.from(1, 4_000)),
            (9, Some(no)) if self.chance.hits(400) => Command::End(no),
            _ => return,
        };
        self.take(command);
        self.book.check();
    }

    /// Something happens, seldom.
    fn mishap(&mut self) {
        let place = self.chance.place(MACHINES);
        match self.chance.from(0, 99) {
            0..40 => self.crash(),
            40..55 => {
                let ahead = self.chance.from(2 * MINUTE, HOUR);
                self.offset += ahead;
                self.tolerance_ms += 2_000;
            }
            55..75 => self.reboot(place),
            _ => {
                let span = if self.chance.hits(100) { 3 * DAY } else { HOUR };
                self.machines[place].silent_until = self.now + self.chance.from(1_000, span);
            }
        }
        self.book.check();
    }

    /// One machine's next beat, and what else falls into that time.
    fn step(&mut self) {
        let next = self
            .machines
            .iter()
            .map(|m| m.next_report_at)
            .min()
            .unwrap();
        let arrival = self.flying.keys().next().map_or(i64::MAX, |(at, _)| *at);
        self.now = self.now.max(next.min(arrival));
        if let Some((key, _)) = self
            .flying
            .first_key_value()
            .filter(|((at, _), _)| *at <= self.now)
        {
            let key = *key;
            let report = self.flying.remove(&key).unwrap();
            self.deliver(&report);
        }
        for place in 0..MACHINES {
            if self.machines[place].next_report_at <= self.now {
                if self.machines[place].silent_until <= self.now {
                    self.report(place);
                }
                let dense = self.chance.hits(300);
                let beat = if dense {
                    10_000
                } else {
                    self.chance.from(30_000, 240_000)
                };
                self.machines[place].next_report_at = self.now + beat;
            }
        }
        if self.chance.hits(20) {
            self.wish();
        }
        if self.chance.hits(4) {
            self.mishap();
        }
        if self.chance.hits(300) {
            self.commit();
        }
    }

    /// Everybody goes home: every lease ends, every machine answers.
    fn close(&mut self) {
        self.commit();
        let all: Vec<u128> = self.book.leases.keys().copied().collect();
        for no in all {
            self.take(Command::End(no));
        }
        self.flying.clear();
        for place in 0..MACHINES {
            self.machines[place].silent_until = 0;
            self.now = self.now.max(self.machines[place].booted_at) + 1_000;
            let runs = self.running.iter().filter(|(_, (m, ..))| *m == place);
            let report = Report {
                machine: place,
                boot: self.machines[place].boot,
                mono_ms: self.machines[place].mono_ms(self.now),
                runs: runs.map(|(no, (_, run, _))| (*no, *run)).collect(),
            };
            self.deliver(&report);
        }
        self.book.tidy();
        assert!(self.book.leases.is_empty() && self.book.ledger.holds().count() == 0);
        for renter in 0..RENTERS {
            let account = self.book.ledger.account(book::wallet(renter)).unwrap();
            assert_eq!(account.held(), domain::money::Micros::ZERO);
        }
        assert_eq!(
            self.book.topped_up, self.asked_for,
            "no acknowledged top-up is lost or doubled"
        );
        let most = self.true_ms + self.true_ms / 1_000 + self.tolerance_ms;
        assert!(
            self.billed_ms <= most,
            "{} ms billed of {most}",
            self.billed_ms
        );
    }
}

fn simulate(seed: u64, days: i64) {
    let mut world = World::new(seed);
    while world.now < days * DAY {
        world.step();
    }
    world.close();
    assert!(world.billed_ms > 0, "nothing happened");
}

#[test]
fn months_with_faults_leave_the_books_true() {
    for seed in seeds() {
        let run = std::panic::catch_unwind(|| simulate(seed, DAYS));
        assert!(
            run.is_ok(),
            "seed {seed} fails: GPUMARKET_SIMULATION_SEEDS={seed}..{}",
            seed + 1
        );
    }
}
