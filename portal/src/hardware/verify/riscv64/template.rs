//! Templates in a portal: exactly the registered code, which was proven to do no more than it may, with what it is promised in its registers.

use super::way::Ways;
use super::*;
use crate::hardware::template::{BASE, CALLEE, CALLER, INOUT, SCRATCH, Template, refuses};

impl<'a> Verifier<'a> {
    /// The next template, if it begins here.
    pub(super) fn begins(&self, word: u32, s: &State) -> Option<&'a Template> {
        let (from, template) = *self.templates.get(s.translated)?;
        let promised = s.get(INOUT) == own(reg::A0 + usize::from(from))
            && self.is(s.get(BASE), template.data)
            && self.is(s.get(CALLER), self.c.caller.asid.into())
            && self.is(s.get(CALLEE), self.c.callee.asid.into());
        let first = *template.words.first()?;
        let same = match refuses(first, template.words.len()) {
            Some(branch) => word & DISTANCE == branch,
            None => word == first,
        };
        (promised && same && !self.returning && s.refusing == 0).then_some(template)
    }

    /// Reads it; returns the offset behind it.
    #[inline(never)]
    pub(super) fn template(
        &mut self,
        at: usize,
        template: &Template,
        s: &mut State,
        ways: &mut Ways,
    ) -> Result<usize, Refusal> {
        let len = template.words.len();
        for (i, expected) in template.words.iter().enumerate() {
            let at = at + i * 4;
            let fail = |reason| Refusal { at, reason };
            let word = *self.words.get(at / 4).ok_or(fail(Reason::Endless))?;
            match (refuses(*expected, len - i), decode(word)) {
                (None, _) if word == *expected => {}
                (Some(branch), Some(Insn::Branch { imm, .. }))
                    if word & DISTANCE == branch && imm > 0 && imm % 4 == 0 =>
                {
                    self.refuse(s, at + imm as usize, template.status, ways)
                        .map_err(|r| r.unwrap_or(fail(Reason::Branch)))?;
                }
                _ => return Err(fail(Reason::Template)),
            }
        }
        for x in [CALLER, CALLEE, SCRATCH[0], SCRATCH[1]] {
            s.set(x, UNKNOWN);
        }
        s.set(INOUT, Value(Kind::Translated, s.translated as i32));
        s.translated += 1;
        Ok(at + len * 4)
    }
}

/// All of a branch but its distance.
const DISTANCE: u32 = 0x01ff_f07f;
