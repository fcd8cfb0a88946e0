//! Verifiers: one module a processor. Each accepts or refuses the bytes of one portal, and knows neither
//! emitter nor encoder.
pub mod x86_64;
