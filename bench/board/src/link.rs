//! A domain in a chain of calls: the last one returns at once, the others call the next and return what it
//! returns.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use pebble::abi::sys::FIRST_FREE;

pebble::import! {
    SM = "next.sm";
    NP = "next.np";
}
pebble::export!("self.sm", "sm", null);
pebble::export!("self.sm4", "smiiii", null);
pebble::export!("self.np", "np", null);
pebble::export!("self.np4", "npiiii", null);
pebble::export!("self.nf4", "nfiiii", null);
pebble::export!("self.chain.sm", "sm", chain_sm);
pebble::export!("self.chain.np", "np", chain_np);
pebble::export!("self.smcii", "smcii", null);
pebble::export!("self.npcii", "npcii", null);
pebble::component!(main);

fn main() -> i64 {
    let _ = (SM.bound(), NP.bound());
    0
}

extern "C" fn null() -> i64 {
    0
}

// Imports have the first free indices, in order.
pebble::forward!(chain_sm, FIRST_FREE);
pebble::forward!(chain_np, FIRST_FREE + 1);
