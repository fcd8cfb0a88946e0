//! The 16550 UART, as far as a driver with interrupts needs it.
//!
//! Invariants: the receive interrupt is on only while the driver will take bytes, the transmit interrupt only
//! while it has some to send, so neither fires for nothing. Together with the receive interrupt the
//! request-to-send line goes: a sender with hardware flow control stops when nobody takes its bytes.

/// The registers of one UART. Offsets are register numbers, whatever their distance in memory.
pub trait Registers {
    fn read(&mut self, offset: usize) -> u8;
    fn write(&mut self, offset: usize, value: u8);
}

/// Bytes that the transmitter takes when it is empty.
pub const FIFO_BYTES: usize = 16;

/// Receive buffer and transmit holding register; divisor, low byte.
const DATA: usize = 0;
/// Interrupt enable; divisor, high byte.
const INTERRUPTS: usize = 1;
const FIFO_CONTROL: usize = 2;
const LINE_CONTROL: usize = 3;
const MODEM_CONTROL: usize = 4;
const LINE_STATUS: usize = 5;

const INTERRUPT_RECEIVE: u8 = 1;
const INTERRUPT_TRANSMIT: u8 = 2;
/// FIFOs on; what has arrived while the system started stays in them; interrupt at 8 bytes, or when a byte
/// has waited for four characters' time.
const FIFO_SETUP: u8 = 0x81;
const DIVISOR_ACCESS: u8 = 0x80;
const EIGHT_BITS: u8 = 3;
/// Terminal ready, and the output that lets interrupts through.
const MODEM_SETUP: u8 = 0x09;
const REQUEST_TO_SEND: u8 = 0x02;
const STATUS_DATA: u8 = 0x01;
const STATUS_TRANSMITTER_EMPTY: u8 = 0x20;

pub struct Uart16550<R> {
    registers: R,
    enabled: u8,
}

impl<R: Registers> Uart16550<R> {
    pub const fn new(registers: R) -> Self {
        Uart16550 { registers, enabled: 0 }
    }

    /// 8 bits, no parity, at the highest speed; interrupts off until [`interrupts`](Self::interrupts).
    pub fn init(&mut self) {
        self.enabled = 0;
        for (offset, value) in [
            (INTERRUPTS, 0),
            (LINE_CONTROL, DIVISOR_ACCESS),
            (DATA, 1),
            (INTERRUPTS, 0),
            (LINE_CONTROL, EIGHT_BITS),
            (FIFO_CONTROL, FIFO_SETUP),
            (MODEM_CONTROL, MODEM_SETUP),
        ] {
            self.registers.write(offset, value);
        }
    }

    /// The next byte that has arrived.
    pub fn receive(&mut self) -> Option<u8> {
        let arrived = self.registers.read(LINE_STATUS) & STATUS_DATA != 0;
        arrived.then(|| self.registers.read(DATA))
    }

    /// Bytes that [`send`](Self::send) may be given now.
    pub fn sendable(&mut self) -> usize {
        if self.registers.read(LINE_STATUS) & STATUS_TRANSMITTER_EMPTY == 0 { 0 } else { FIFO_BYTES }
    }

    pub fn send(&mut self, byte: u8) {
        self.registers.write(DATA, byte);
    }

    /// Says what to interrupt for.
    pub fn interrupts(&mut self, receive: bool, transmit: bool) {
        let receive = if receive { INTERRUPT_RECEIVE } else { 0 };
        let enabled = receive | if transmit { INTERRUPT_TRANSMIT } else { 0 };
        if enabled == self.enabled {
            return;
        }
        if (enabled ^ self.enabled) & INTERRUPT_RECEIVE != 0 {
            let request = if receive != 0 { REQUEST_TO_SEND } else { 0 };
            self.registers.write(MODEM_CONTROL, MODEM_SETUP | request);
        }
        self.registers.write(INTERRUPTS, enabled);
        self.enabled = enabled;
    }

    pub fn registers(&mut self) -> &mut R {
        &mut self.registers
    }
}
