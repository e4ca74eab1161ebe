//! The journal: what was ordered of each lease's container, written before it is done.
//!
//! Labels of a container cannot change, so the start that it was last started for stands here. A
//! start order keeps the engine's start time from before: whether it took effect shows in the
//! engine, and a crash at any point leaves no doubt.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::runner::{Container, Phase};

/// What was ordered of a lease's container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// Id of the container.
    pub container: String,
    /// The start that was ordered last.
    pub start_no: i64,
    /// The start before that, 0 if none.
    pub previous: i64,
    /// The engine's start time when that start was ordered.
    pub before: Option<String>,
    /// The run (by its start time) that was ordered to stop.
    pub stopped_run: Option<String>,
}

/// Notes by lease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Journal(BTreeMap<String, Note>);

impl Journal {
    /// The start that this container was last started for; 0 if it never started.
    pub fn started_for(&self, container: &Container) -> i64 {
        let own = self.note_of(container);
        match own {
            Some(note) if container.started_at != note.before => note.start_no,
            Some(note) => note.previous,
            None if container.phase == Phase::Created || container.started_at.is_none() => 0,
            None => container.made_for,
        }
    }

    /// Was this run of the container ordered to stop?
    pub fn stopped_by_order(&self, container: &Container) -> bool {
        self.note_of(container)
            .is_some_and(|n| n.stopped_run.is_some() && n.stopped_run == container.started_at)
    }

    /// Was any container of this lease ever ordered to start? Then a missing one was lost.
    pub fn knows(&self, lease: &str) -> bool {
        self.0.contains_key(lease)
    }

    /// The start that was ordered last for this lease; 0 if none.
    pub fn ordered(&self, lease: &str) -> i64 {
        self.0.get(lease).map_or(0, |n| n.start_no)
    }

    /// Notes that `container` is about to be started for `start_no`.
    pub fn order_start(&mut self, container: &Container, start_no: i64) {
        let note = Note {
            container: container.id.clone(),
            start_no,
            previous: self.started_for(container),
            before: container.started_at.clone(),
            stopped_run: None,
        };
        self.0.insert(container.lease.clone(), note);
    }

    /// Notes that the present run of `container` is about to be stopped.
    pub fn order_stop(&mut self, container: &Container) {
        let started_for = self.started_for(container);
        if self.note_of(container).is_none() {
            let note = Note {
                container: container.id.clone(),
                start_no: started_for,
                previous: started_for,
                before: None,
                stopped_run: None,
            };
            self.0.insert(container.lease.clone(), note);
        }
        if let Some(note) = self.0.get_mut(&container.lease) {
            note.stopped_run.clone_from(&container.started_at);
        }
    }

    /// Drops the notes of leases for which `keep` says no. True if there were any.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) -> bool {
        let before = self.0.len();
        self.0.retain(|lease, _| keep(lease));
        self.0.len() != before
    }

    fn note_of(&self, container: &Container) -> Option<&Note> {
        self.0
            .get(&container.lease)
            .filter(|n| n.container == container.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(started_at: Option<&str>) -> Container {
        Container {
            id: "c".into(),
            lease: "lse_a".into(),
            made_for: 1,
            gpus: Vec::new(),
            phase: if started_at.is_some() {
                Phase::Running
            } else {
                Phase::Created
            },
            started_at: started_at.map(Into::into),
        }
    }

    #[test]
    fn a_start_counts_only_when_the_engine_shows_it() {
        let mut journal = Journal::default();
        journal.order_start(&container(None), 1);
        assert_eq!(journal.started_for(&container(None)), 0);
        assert_eq!(journal.started_for(&container(Some("t1"))), 1);
        journal.order_start(&container(Some("t1")), 2);
        assert_eq!(journal.started_for(&container(Some("t1"))), 1);
        assert_eq!(journal.started_for(&container(Some("t2"))), 2);
    }

    #[test]
    fn an_order_repeated_after_a_crash_changes_nothing() {
        let mut journal = Journal::default();
        journal.order_start(&container(Some("t1")), 2);
        let once = journal.clone();
        journal.order_start(&container(Some("t1")), 2);
        assert_eq!(journal, once);
    }

    #[test]
    fn without_a_note_the_label_tells() {
        let journal = Journal::default();
        assert_eq!(journal.started_for(&container(None)), 0);
        assert_eq!(journal.started_for(&container(Some("t1"))), 1);
    }

    #[test]
    fn only_the_run_that_was_ordered_to_stop_counts_as_stopped() {
        let mut journal = Journal::default();
        journal.order_start(&container(None), 1);
        assert!(!journal.stopped_by_order(&container(Some("t1"))));
        journal.order_stop(&container(Some("t1")));
        assert!(journal.stopped_by_order(&container(Some("t1"))));
        assert!(!journal.stopped_by_order(&container(Some("t2"))));
        assert_eq!(journal.started_for(&container(Some("t1"))), 1);
    }

    #[test]
    fn stopping_a_container_without_a_note_keeps_its_start() {
        let mut journal = Journal::default();
        journal.order_stop(&container(Some("t1")));
        assert_eq!(journal.started_for(&container(Some("t1"))), 1);
        assert!(journal.stopped_by_order(&container(Some("t1"))));
    }
}
