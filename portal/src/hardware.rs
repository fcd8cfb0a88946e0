//! The MMU's wall: portals between hardware domains.
//!
//! Problem: a door between two domains that checks nothing at run time which was known when it was opened.
//! Strategy: [`ir`] lowers a specification and the connection to neutral steps; `emit` makes machine code
//! of them for a [`Processor`]; [`verify`], built on the decoder alone, accepts or refuses the bytes. Portal
//! code is straight-line or branches forward, is bounded by [`MAX_WORDS`], and never blocks.

mod emit;
pub mod hole;
pub mod instance;
pub mod ir;
pub mod template;
pub mod verify;

use crate::{Processor, Spec, spec};
use arrayvec::ArrayVec;
use core::fmt;
use hole::{Facts, Values};
pub use ir::{Connection, Domain, Shape, Short, Stacks};
pub use template::Template;

/// Most 32-bit words of one portal, pool included.
pub const MAX_WORDS: usize = 512;

/// One portal's code and the map of its parts. Bytes are the words, little-endian.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    pub words: ArrayVec<u32, MAX_WORDS>,
    /// Instructions of the call leg.
    pub call_words: u16,
    /// Byte offset of the constant pool.
    pub pool_at: u16,
    /// Byte offset of the return leg, if there is one.
    pub ret_at: Option<u16>,
    /// Its instructions; behind them are its constants.
    pub ret_words: u16,
    /// Words of its frame on the invocation stack.
    pub frame_words: u8,
}

impl Code {
    /// As it was made.
    pub fn clear(&mut self) {
        self.words.clear();
        (self.call_words, self.pool_at, self.ret_at, self.ret_words, self.frame_words) = (0, 0, None, 0, 0);
    }

    /// A form becomes the portal of one connection.
    pub fn fill(&mut self, values: &Values) {
        for pair in self.words.as_chunks_mut().0 {
            if let Some(value) = values.fill(double(pair)) {
                *pair = [value as u32, (value >> 32) as u32];
            }
        }
    }

    /// The code as it lies in memory, two words in one: so it is copied and compared. The last is filled up
    /// with zero.
    pub fn doubles(&self) -> impl ExactSizeIterator<Item = u64> + Clone {
        self.words.chunks(2).map(|pair| double(&[pair[0], pair.get(1).copied().unwrap_or(0)]))
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.words.len() * 4
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompileError {
    /// More code than a portal may have.
    TooLong,
    /// Nobody makes hardware portals for this processor.
    NoEmitter(Processor),
    /// An exclusive caller, and a callee that is not.
    Exclusive { caller: u16, callee: u16 },
    /// Windows into an exclusive domain.
    ExclusiveWindow { callee: u16 },
    /// This domain's window control page, or level-1 page table, is not known.
    NoWindows { domain: u16 },
    /// A window or template in a portal that is no plain call.
    NotACall,
    /// No template is registered for this letter.
    NoTemplate { letter: u8 },
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompileError::TooLong => {
                write!(f, "the portal would need more than {MAX_WORDS} words of code: use fewer arguments")
            }
            CompileError::NoEmitter(processor) => {
                write!(
                    f,
                    "there are no hardware domains on {processor} yet: portals there lead to fault domains"
                )
            }
            CompileError::Exclusive { caller, callee } => write!(
                f,
                "domain {caller} is exclusive (it runs with interrupts off and cannot wait for a stack) and \
                 domain {callee} is not: an exclusive domain may only call, or tail into, exclusive domains, \
                 or use short-circuit portals"
            ),
            CompileError::ExclusiveWindow { callee } => write!(
                f,
                "domain {callee} is exclusive and receives no windows: pass words, or a domain that is not \
                 exclusive in between"
            ),
            CompileError::NoWindows { domain } => write!(
                f,
                "domain {domain} has no window control page yet: let the VM manager make one before the \
                 portal is compiled"
            ),
            CompileError::NotACall => {
                write!(
                    f,
                    "only plain calls have windows and template letters: semaphores and tail portals pass \
                     words"
                )
            }
            CompileError::NoTemplate { letter } => write!(
                f,
                "no template is registered for letter '{}': start the server that registers it first",
                char::from(*letter)
            ),
        }
    }
}

impl core::error::Error for CompileError {}

/// Compiles one portal. Position-independent, but for the addresses named by the connection.
pub fn compile(
    spec: &Spec,
    shape: Shape,
    connection: &Connection,
    processor: Processor,
) -> Result<Code, CompileError> {
    let mut code = Code::default();
    compile_into(spec, shape, connection, processor, &mut code)?;
    Ok(code)
}

/// [`compile`] in place, for those who count instructions: what `code` held is gone, also after an error.
// The portal manager calls it from deep within a request: its frame is gone before the verifier has one.
#[inline(never)]
pub fn compile_into(
    spec: &Spec,
    shape: Shape,
    connection: &Connection,
    processor: Processor,
    code: &mut Code,
) -> Result<(), CompileError> {
    form_into(spec, shape, connection, processor, code)?;
    code.fill(&Values::of(connection, shape, processor));
    Ok(())
}

/// [`form_into`] by itself.
pub fn form(
    spec: &Spec,
    shape: Shape,
    connection: &Connection,
    processor: Processor,
) -> Result<Code, CompileError> {
    let mut code = Code::default();
    form_into(spec, shape, connection, processor, &mut code)?;
    Ok(code)
}

/// What all portals of this kind have in common, with symbols where they differ ([`hole`]).
#[inline(never)]
pub fn form_into(
    spec: &Spec,
    shape: Shape,
    connection: &Connection,
    processor: Processor,
    code: &mut Code,
) -> Result<(), CompileError> {
    check(spec, shape, connection)?;
    emit::emit(processor, spec, shape, &Facts::of(connection), code)
}

fn double([low, high]: &[u32; 2]) -> u64 {
    u64::from(*low) | u64::from(*high) << 32
}

/// Whether such a portal can be between these two domains.
pub fn check(spec: &Spec, shape: Shape, connection: &Connection) -> Result<(), CompileError> {
    let (caller, callee) = (&connection.caller, &connection.callee);
    let traverses = matches!(shape, Shape::Call | Shape::Wait(_) | Shape::Signal(_) | Shape::Tail);
    if traverses && caller.exclusive && !callee.exclusive {
        return Err(CompileError::Exclusive { caller: caller.asid, callee: callee.asid });
    }
    if traverses { lendable(spec, shape, connection) } else { Ok(()) }
}

/// Whether the windows and templates of the specification can be had between these two domains.
fn lendable(spec: &Spec, shape: Shape, c: &Connection) -> Result<(), CompileError> {
    if shape != Shape::Call && spec.windows().count() + spec.templates().count() > 0 {
        return Err(CompileError::NotACall);
    }
    for (_, window, _) in spec.windows() {
        let (caller, callee) = (&c.caller, &c.callee);
        let moves = matches!(window, spec::WindowKind::Tear | spec::WindowKind::Get);
        if callee.exclusive {
            return Err(CompileError::ExclusiveWindow { callee: callee.asid });
        }
        if callee.windows == 0 {
            return Err(CompileError::NoWindows { domain: callee.asid });
        }
        if caller.l1 == 0 || moves && caller.windows == 0 {
            return Err(CompileError::NoWindows { domain: caller.asid });
        }
    }
    for (_, letter) in spec.templates() {
        if !c.templates.iter().any(|t| t.letter == letter) {
            return Err(CompileError::NoTemplate { letter });
        }
    }
    Ok(())
}
