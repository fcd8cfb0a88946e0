//! No domain has stacks: for tests of whatever else the scheduler does. Those of stacks are in `stacks.rs`.

use pebble_scheduler::Stacks;

pub struct NoStacks;

impl Stacks for NoStacks {
    fn head(&self, _: u8) -> u64 {
        0
    }
    fn keep(&self, _: u8) -> bool {
        false
    }
    fn offer(&self, _: u8) -> bool {
        false
    }
    fn release(&self, _: u8) -> bool {
        false
    }
}
