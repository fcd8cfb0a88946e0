//! Argument letters that components register while the system runs.
//!
//! **Problem.** A server that translates, counts or checks an argument must not cost each call a call of its
//! own; but the code that does it runs with every privilege, and comes from outside.
//!
//! **Strategy.** The system's manifest gives a letter to a component; the image has a page of private data
//! for it, mapped for that component and for portal code, for nobody else. The component sends the code in
//! pieces, into a *draft*; the whole is checked ([`Template::check`]) and takes effect in one step. Portals
//! that have the letter already are compiled anew before that.
//!
//! **Invariants:**
//! * a letter is its component's alone, whatever domain has that role; `k` and what the manifest gives to
//!   nobody is never registered here;
//! * what portals contain has been checked, and all portals that use a letter have the same code for it;
//! * a registration that fails, or that is never finished, changes nothing; a draft ends with its domain;
//! * a registration outlives the domain that made it: its portals go on, and find the private data as it is.

use crate::Machine;
use crate::manager::{Goal, Manager, Slot};
use alloc::sync::Arc;
use alloc::vec::Vec;
use arrayvec::ArrayVec;
use pebble_abi::errno::{self, Errno};
use pebble_abi::template::{TemplateError, TemplateErrorKind};
use pebble_abi::words::Asid;
use pebble_abi::{map, status};
use pebble_arch::Arch;
use pebble_boot::BootInfo;
use pebble_portal::hardware::Template;
use pebble_portal::hardware::template::{MAX_OPERATIONS, capability, decode};

/// Code on its way.
struct Draft {
    asid: u16,
    letter: u8,
    words: ArrayVec<u32, MAX_OPERATIONS>,
}

/// Why a registration is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// By its number; the code was not looked at, or is good.
    Errno(Errno),
    Code(TemplateError),
}

impl From<Errno> for Refused {
    fn from(errno: Errno) -> Self {
        Refused::Errno(errno)
    }
}

#[derive(Default)]
pub(crate) struct Letters {
    /// Letters that the manifest gives away, and the role of whom it gives each to.
    given: Vec<(u8, u16)>,
    /// What portals are compiled with.
    pub(crate) registered: Arc<[Template]>,
    drafts: Vec<Draft>,
}

impl Letters {
    /// By the grants, not by names that anybody could register: where there is no private data, portal code
    /// must not look for it.
    pub(crate) fn new(info: &BootInfo) -> Self {
        let letter = |va| (b'A'..=b'Z').find(|letter| map::template_data_va(*letter) == va);
        let given = info.grants.iter().filter_map(|g| Some((letter(g.va)?, g.asid))).collect();
        let capabilities = info.grants.iter().any(|g| g.va == map::CAPABILITY_TABLE_VA);
        let registered = capabilities.then(capability::template).into_iter().collect();
        Letters { given, registered, drafts: Vec::new() }
    }
}

impl<A: Arch> Manager<A> {
    /// A component begins to register its letter; what it began before is dropped.
    pub fn begin_template(&mut self, asid: Asid, letter: u64) -> Result<(), Errno> {
        let mut role = self.domain(asid)?.role;
        if let Some(successor) = self.replacement.successors.iter().find(|s| Asid::from(s.asid) == asid) {
            role = Some(successor.role);
        }
        let letter = u8::try_from(letter).map_err(|_| errno::EACCES)?;
        if role.is_none_or(|role| !self.letters.given.contains(&(letter, role.get()))) {
            return Err(errno::EACCES);
        }
        self.drop_draft(asid.number());
        self.letters.drafts.push(Draft { asid: asid.number(), letter, words: ArrayVec::new() });
        Ok(())
    }

    /// The next operations. Too many of them end the registration.
    pub fn fill_template(&mut self, asid: Asid, words: &[u32]) -> Result<(), Refused> {
        let draft = self.letters.drafts.iter_mut().find(|d| Asid::from(d.asid) == asid);
        let draft = draft.ok_or(errno::EINVAL)?;
        if draft.words.try_extend_from_slice(words).is_err() {
            self.drop_draft(asid.number());
            let kind = TemplateErrorKind::Length;
            return Err(Refused::Code(TemplateError { at: MAX_OPERATIONS, kind }));
        }
        Ok(())
    }

    /// All portals opened from now on have the code for this letter, and those that were open have it
    /// already.
    pub fn commit_template(&mut self, machine: &mut impl Machine, asid: Asid) -> Result<(), Refused> {
        let at = self.letters.drafts.iter().position(|d| Asid::from(d.asid) == asid).ok_or(errno::EINVAL)?;
        let Draft { letter, words, .. } = self.letters.drafts.swap_remove(at);
        let data = map::template_va(letter);
        let data_bits = map::PAGE.trailing_zeros() as u8;
        let operations = decode(&words).map_err(Refused::Code)?;
        let template =
            Template { letter, status: status::letter(letter) as u16, data, data_bits, operations };
        template.check().map_err(Refused::Code)?;
        if self.letters.registered.contains(&template) {
            return Ok(());
        }
        // Its clients' portals have been compiled with the letters as they are.
        if self.replacement.successors.iter().any(|s| !s.entries.is_empty()) {
            return Err(Refused::Errno(errno::EBUSY));
        }
        let others = self.letters.registered.iter().filter(|t| t.letter != letter).cloned();
        let all = others.chain([template]).collect();
        let before = core::mem::replace(&mut self.letters.registered, all);
        let has_letter = |i: u16| self.interfaces[usize::from(i)].spec.templates().any(|(_, l)| l == letter);
        let slots = self.clients(|goal| matches!(goal, Goal::Interface(i) if has_letter(i)));
        match self.build_all(machine, &slots) {
            Ok(made) => made.into_iter().for_each(|(client, index, slot)| {
                machine.set_table(client, index, map::CODE_VA + u64::from(slot.run.at));
                let old = core::mem::replace(
                    &mut self.domains[usize::from(client)].slots[usize::from(index)],
                    slot,
                );
                self.discard(Slot { counter: None, ..old });
            }),
            Err(error) => {
                self.letters.registered = before;
                return Err(Refused::Errno(error));
            }
        }
        Ok(())
    }

    /// What a domain has begun to register is forgotten.
    pub(crate) fn drop_draft(&mut self, asid: u16) {
        self.letters.drafts.retain(|d| d.asid != asid);
    }
}
