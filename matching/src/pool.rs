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
use std::collections::{BTreeSet, BinaryHeap, HashMap};

pub mod fragment;
pub mod mix;
pub mod policy;
pub mod published;
pub mod residual;
pub mod state;
pub mod worth;

use policy::{Policy, Ties};
use state::{Room, Shape, State};

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
}

/// What is asked of most classes.
#[derive(Clone, Copy, Debug)]
struct Brief {
    /// Of the class that is there now; 0 if that has no nodes.
    birth: u64,
    room: Room,
}

/// A class as it was when it was written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Written {
    /// Tells it from earlier classes at the same place.
    birth: u64,
    class: usize,
}

/// What a shape knows of the classes.
#[derive(Clone, Debug, Default)]
struct View {
    /// Classes that fit, by score; some may be gone.
    by_score: BinaryHeap<(i64, Written)>,
    /// How much of the log it has read.
    read: usize,
    /// Has it been asked for since the log was shortened?
    asked: bool,
}

/// Nodes, and what is free on them.
pub struct Pool {
    policy: Box<dyn Policy>,
    nodes: Vec<Node>,
    classes: Vec<Class>,
    /// In brief, by place: kept together, since every look at a log reads many of them.
    briefs: Vec<Brief>,
    by_state: HashMap<State, usize>,
    empty: Vec<usize>,
    /// Classes in the order of their births.
    log: Vec<Written>,
    last_birth: u64,
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
            briefs: Vec::new(),
            by_state: HashMap::new(),
            empty: Vec::new(),
            log: Vec::new(),
            last_birth: 0,
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
                if let Some(brief) = self.briefs.get_mut(class) {
                    brief.birth = 0;
                }
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
                self.last_birth += 1;
                let birth = self.last_birth;
                let born = Class {
                    state: key,
                    burden: self.policy.burden(&key),
                    members: BTreeSet::new(),
                };
                let class = self.empty.pop().unwrap_or(self.classes.len());
                let brief = Brief {
                    birth,
                    room: key.room(),
                };
                let place = self.classes.get_mut(class).zip(self.briefs.get_mut(class));
                if let Some(place) = place {
                    (*place.0, *place.1) = (born, brief);
                } else {
                    self.classes.push(born);
                    self.briefs.push(brief);
                }
                self.log.push(Written { birth, class });
                *vacant.insert(class)
            }
        };
        if let Some(found) = self.classes.get_mut(class) {
            found.members.insert(member);
        }
        class
    }

    /// Forgets what is gone, once it is most of the log or of what a shape knows.
    fn forget(&mut self) {
        let most = 4 * self.by_state.len() + 1_024;
        if self.log.len() <= most {
            return;
        }
        let briefs = &self.briefs;
        // How many entries before each stay.
        let mut stay = Vec::with_capacity(self.log.len() + 1);
        let mut count = 0_usize;
        for written in &self.log {
            stay.push(count);
            count += usize::from(lives(briefs, *written));
        }
        stay.push(count);
        self.log.retain(|written| lives(briefs, *written));
        self.views.retain(|_, view| {
            view.read = stay.get(view.read).copied().unwrap_or(0);
            if view.by_score.len() > most {
                view.by_score.retain(|(_, written)| lives(briefs, *written));
            }
            // What nobody has asked for since the last time is forgotten, or shapes would pile up.
            std::mem::take(&mut view.asked)
        });
    }

    /// The class with the best score for `shape`.
    fn best(&mut self, shape: &Shape, draw: u64) -> Option<usize> {
        self.forget();
        let (briefs, policy) = (&self.briefs, &self.policy);
        let view = self.views.entry(*shape).or_default();
        view.asked = true;
        for written in self.log.get(view.read..).unwrap_or(&[]) {
            let brief = briefs.get(written.class);
            let here = brief.filter(|b| b.birth == written.birth && b.room.fits(shape));
            if let Some(class) = here.and_then(|_| self.classes.get(written.class)) {
                let score = policy.score(&class.state, class.burden, shape);
                view.by_score.push((score, *written));
            }
        }
        view.read = self.log.len();
        let top = view.top(briefs)?;
        let equal = || {
            let all = view.by_score.iter();
            let equal = all.filter(|(score, _)| *score == top.0);
            let alive = equal.filter(|(_, written)| lives(briefs, *written));
            alive.map(|(_, written)| written.class)
        };
        match policy.ties() {
            Ties::LatestState => Some(top.1.class),
            Ties::Rank => {
                let rank = |class: &usize| self.classes.get(*class).map(|c| c.members.first());
                equal().min_by_key(rank)
            }
            Ties::Lot => drawn(equal, &self.classes, draw),
        }
    }
}

fn lives(briefs: &[Brief], written: Written) -> bool {
    let brief = briefs.get(written.class);
    brief.is_some_and(|brief| brief.birth == written.birth)
}

impl View {
    /// The best that lives, the latest of equals.
    fn top(&mut self, briefs: &[Brief]) -> Option<(i64, Written)> {
        while let Some(last) = self.by_score.peek() {
            if lives(briefs, last.1) {
                return Some(*last);
            }
            self.by_score.pop();
        }
        None
    }
}

/// A class by lot, each as likely as it has nodes.
fn drawn<I: Iterator<Item = usize>>(
    equal: impl Fn() -> I,
    classes: &[Class],
    draw: u64,
) -> Option<usize> {
    let size = |class: usize| {
        let members = classes.get(class).map_or(0, |c| c.members.len());
        u64::try_from(members).unwrap_or(0)
    };
    let all: u64 = equal().map(size).sum();
    let mut place = (draw >> 16) % Some(all).filter(|n| *n > 0)?;
    for class in equal() {
        let here = size(class);
        if place < here {
            return Some(class);
        }
        place -= here;
    }
    None
}

#[cfg(test)]
mod tests;
