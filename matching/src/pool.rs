//! Placement over a whole pool: which node, and which of its GPUs, a request gets.
//!
//! Nodes with equal states are one class, and a request's shape remembers how good each class is
//! for it, so a decision looks at classes that changed since the same shape came last, not at
//! nodes. Deterministic: the same nodes, policy and requests give the same placements.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::integer_division,
    reason = "counts of nodes and requests, and thousandths of at most sixteen GPUs, lie far from the ends of their types"
)]

use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeMap, BTreeSet, HashMap};

pub mod fragment;
pub mod mix;
pub mod policy;
pub mod published;
pub mod residual;
pub mod state;
pub mod worth;

use policy::{Policy, Ties};
use state::{Shape, State};

/// A node's number: its place in the order in which nodes came.
pub type NodeNo = u32;

/// Where a request was placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The node.
    pub node: NodeNo,
    /// Its GPUs, as bits by their place.
    pub slots: u16,
}

#[derive(Clone, Debug)]
struct Node {
    state: State,
    class: usize,
    rank: u32,
}

/// Nodes of one state.
#[derive(Clone, Debug)]
struct Class {
    state: State,
    burden: i64,
    /// By rank.
    members: BTreeSet<(u32, NodeNo)>,
    /// Tells it from earlier classes at the same place.
    birth: u64,
}

/// A class as it was when it was written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Written {
    class: usize,
    birth: u64,
}

/// What a shape knows of the classes.
#[derive(Clone, Debug, Default)]
struct View {
    /// Classes that fit, by score; some may be gone.
    by_score: BTreeMap<i64, Vec<Written>>,
    /// How much of the log it has read, of which log.
    read: usize,
    log_no: u64,
}

/// Nodes, and what is free on them.
pub struct Pool {
    policy: Box<dyn Policy>,
    nodes: Vec<Node>,
    classes: Vec<Class>,
    by_state: HashMap<State, usize>,
    empty: Vec<usize>,
    log: Vec<Written>,
    log_no: u64,
    births: u64,
    views: HashMap<Shape, View>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (nodes, states) = (self.nodes.len(), self.by_state.len());
        write!(
            f,
            "Pool({}, {nodes} nodes in {states} states)",
            self.policy.name()
        )
    }
}

impl Pool {
    /// An empty pool.
    pub fn new(policy: Box<dyn Policy>) -> Self {
        Self {
            policy,
            nodes: Vec::new(),
            classes: Vec::new(),
            by_state: HashMap::new(),
            empty: Vec::new(),
            log: Vec::new(),
            log_no: 0,
            births: 0,
            views: HashMap::new(),
        }
    }

    /// Adds a node; of equally good nodes the one with the lowest `rank` is taken.
    pub fn add(&mut self, state: State, rank: u32) -> NodeNo {
        let number = NodeNo::try_from(self.nodes.len()).unwrap_or(NodeNo::MAX);
        let class = self.join(state, (rank, number));
        self.nodes.push(Node { state, class, rank });
        number
    }

    /// What a node has left.
    pub fn state(&self, node: NodeNo) -> Option<&State> {
        self.node(node).map(|n| &n.state)
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// How many different states they are in.
    pub fn states(&self) -> usize {
        self.by_state.len()
    }

    fn node(&self, node: NodeNo) -> Option<&Node> {
        self.nodes.get(usize::try_from(node).ok()?)
    }

    /// Places `shape`, or says that it fits nowhere. `draw`: a random number, for policies that
    /// draw lots.
    pub fn place(&mut self, shape: &Shape, draw: u64) -> Option<Placement> {
        let class = self.best(shape, draw)?;
        let found = self.classes.get(class)?;
        let member = match self.policy.ties() {
            Ties::Rank | Ties::LatestState => found.members.first(),
            Ties::Lot => {
                let count = u64::try_from(found.members.len()).unwrap_or(1).max(1);
                let place = usize::try_from((draw & 0xffff_ffff) % count).unwrap_or(0);
                found.members.iter().nth(place)
            }
        };
        let (_, number) = *member?;
        let take = self.policy.take(&found.state, found.burden, shape, draw);
        let (after, slots) = self.node(number)?.state.taking(shape, take)?;
        self.change(number, after);
        Some(Placement {
            node: number,
            slots,
        })
    }

    /// Gives back what was placed.
    pub fn release(&mut self, shape: &Shape, placement: Placement) {
        if let Some(after) = self
            .node(placement.node)
            .map(|n| n.state.giving(shape, placement.slots))
        {
            self.change(placement.node, after);
        }
    }

    fn change(&mut self, number: NodeNo, after: State) {
        let Some((class, rank)) = self.node(number).map(|n| (n.class, n.rank)) else {
            return;
        };
        self.leave(class, (rank, number));
        let class = self.join(after, (rank, number));
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        if let Some(node) = self.nodes.get_mut(place) {
            node.state = after;
            node.class = class;
        }
    }

    fn leave(&mut self, class: usize, member: (u32, NodeNo)) {
        if let Some(old) = self.classes.get_mut(class) {
            old.members.remove(&member);
            if old.members.is_empty() {
                self.by_state.remove(&old.state);
                self.empty.push(class);
            }
        }
    }

    /// Puts a node among those of its state.
    fn join(&mut self, state: State, member: (u32, NodeNo)) -> usize {
        let key = if self.policy.is_ordered() {
            state
        } else {
            state.sorted()
        };
        let class = match self.by_state.entry(key) {
            Slot::Occupied(found) => *found.get(),
            Slot::Vacant(vacant) => {
                self.births += 1;
                let born = Class {
                    state: key,
                    burden: self.policy.burden(&key),
                    members: BTreeSet::new(),
                    birth: self.births,
                };
                let class = self.empty.pop().unwrap_or(self.classes.len());
                match self.classes.get_mut(class) {
                    Some(place) => *place = born,
                    None => self.classes.push(born),
                }
                self.log.push(Written {
                    class,
                    birth: self.births,
                });
                *vacant.insert(class)
            }
        };
        if let Some(found) = self.classes.get_mut(class) {
            found.members.insert(member);
        }
        class
    }

    /// Begins the log anew once most of it is about classes that are gone.
    fn shorten_log(&mut self) {
        if self.log.len() <= 4 * self.by_state.len() + 1_024 {
            return;
        }
        let classes = &self.classes;
        self.log.retain(|written| lives(classes, *written));
        self.log_no += 1;
    }

    /// The class with the best score for `shape`.
    fn best(&mut self, shape: &Shape, draw: u64) -> Option<usize> {
        self.shorten_log();
        let (log_no, classes, policy) = (self.log_no, &self.classes, &self.policy);
        let view = self.views.entry(*shape).or_default();
        if view.log_no != log_no {
            *view = View {
                log_no,
                ..View::default()
            };
        }
        for written in self.log.get(view.read..).unwrap_or(&[]) {
            let class = classes.get(written.class);
            let Some(class) = class.filter(|_| lives(classes, *written)) else {
                continue;
            };
            if class.state.fits(shape) {
                let score = policy.score(&class.state, class.burden, shape);
                view.by_score.entry(score).or_default().push(*written);
            }
        }
        view.read = self.log.len();
        view.best(classes, policy.ties(), draw)
    }
}

fn lives(classes: &[Class], written: Written) -> bool {
    classes
        .get(written.class)
        .is_some_and(|c| c.birth == written.birth && !c.members.is_empty())
}

impl View {
    fn best(&mut self, classes: &[Class], ties: Ties, draw: u64) -> Option<usize> {
        loop {
            let mut top = self.by_score.last_entry()?;
            let found = match ties {
                Ties::LatestState => latest(top.get_mut(), classes),
                Ties::Rank => {
                    top.get_mut().retain(|w| lives(classes, *w));
                    let rank = |w: &&Written| classes.get(w.class).and_then(|c| c.members.first());
                    top.get().iter().min_by_key(rank).map(|w| w.class)
                }
                Ties::Lot => {
                    top.get_mut().retain(|w| lives(classes, *w));
                    drawn(top.get(), classes, draw)
                }
            };
            if found.is_some() {
                return found;
            }
            top.remove();
        }
    }
}

/// The class that was written down last and lives.
fn latest(bucket: &mut Vec<Written>, classes: &[Class]) -> Option<usize> {
    while let Some(last) = bucket.last() {
        if lives(classes, *last) {
            return Some(last.class);
        }
        bucket.pop();
    }
    None
}

/// A class by lot, each as likely as it has nodes.
fn drawn(bucket: &[Written], classes: &[Class], draw: u64) -> Option<usize> {
    let size = |w: &Written| classes.get(w.class).map_or(0, |c| c.members.len());
    let all: usize = bucket.iter().map(size).sum();
    let mut place = (draw >> 16) % u64::try_from(all).ok().filter(|n| *n > 0)?;
    for written in bucket {
        let here = u64::try_from(size(written)).unwrap_or(0);
        if place < here {
            return Some(written.class);
        }
        place -= here;
    }
    None
}

#[cfg(test)]
mod tests;
