//! What a portal may take of whoever opens it.
//!
//! **Problem.** A specification is written by the exporter, and its letters decide what the portal takes of
//! the opener: stacks (`s`), preserved registers (`m`), pages, capabilities. **Strategy.** The exporter asks,
//! somebody gives: the manifest vouches for the letters of the image's own interfaces; of all others the
//! opener says in the call that opens which letters it gives, and a letter that is not given is refused, by
//! its name.
//!
//! **Invariants:**
//! * whether an interface is vouched for comes from the image, and stays with its name and specification when
//!   its component is replaced: what a component registers while it runs is a stranger's, whoever it is;
//! * nobody gives what is another's: a portal that is opened for a controlled domain takes neither stacks nor
//!   registers of the controller whose table it is in, and looks the same to the one for which it was opened;
//! * who is not asked has given nothing: portals that a server makes for its client, or that a controller
//!   puts in the place of others.

use crate::interfaces::Interface;
use crate::manager::Manager;
use core::num::NonZeroU16;
use pebble_abi::consent::Letters;
use pebble_abi::errno::{self, Errno};
use pebble_abi::status;
use pebble_arch::Arch;
use pebble_portal::Spec;
use pebble_portal::spec::{Stack, State};

impl Interface {
    /// The specification of a portal to it in the table of a controller, for a domain below.
    pub(crate) fn below(&self) -> Spec {
        let mut spec = Spec { stack: Stack::New, ..self.spec.clone() };
        if !self.vouched {
            spec.state = spec.state.max(State::Partial);
        }
        spec
    }
}

impl<A: Arch> Manager<A> {
    /// Whether the portal may be made: for `asid`, or for whom it serves. If not,
    /// [`refused`](Manager::refused) tells why.
    pub(crate) fn consents(&mut self, asid: u16, interface: u16, given: Letters) -> Result<(), Errno> {
        let opener = self.request.serving.map_or(asid, NonZeroU16::get);
        let i = self.interfaces.get(usize::from(interface)).ok_or(errno::ENOENT)?;
        if i.vouched || i.asid == opener {
            return Ok(());
        }
        let exporter = i.asid;
        match given.missing(i.letters()) {
            None => Ok(()),
            Some(letter) => Err(self.refuse(letter, exporter, opener)),
        }
    }

    /// The letter is asked for by one domain, and not given by the other.
    pub(crate) fn refuse(&mut self, letter: u8, exporter: u16, opener: u16) -> Errno {
        self.request.refused = status::refused(letter, exporter, opener);
        errno::EPROTOTYPE
    }

    /// A stub takes no page or capability of the child that the portal in its place would not take.
    pub(crate) fn asks_no_more(
        &mut self,
        controller: u16,
        child: u16,
        index: usize,
        spec: &Spec,
    ) -> Result<(), Errno> {
        let there = self.seen(controller, index);
        let letters = there.iter().flat_map(|spec| &spec.args).map(|arg| arg.letter() as u8);
        let given = letters.fold(Letters::NONE, Letters::with);
        match given.missing(spec.args.iter().map(|arg| arg.letter() as u8)) {
            None => Ok(()),
            Some(letter) => Err(self.refuse(letter, controller, child)),
        }
    }

    /// An interface's specification, as calls pass it.
    pub fn text_of(&self, interface: u16) -> [u64; 2] {
        self.interfaces.get(usize::from(interface)).map_or([0; 2], |i| i.text)
    }

    /// `name`: as calls pass it.
    pub fn is_named(&self, interface: u16, name: [u64; 3]) -> bool {
        let i = self.interfaces.get(usize::from(interface)).filter(|i| i.asid != 0);
        i.is_some_and(|i| i.name.is(name))
    }
}
