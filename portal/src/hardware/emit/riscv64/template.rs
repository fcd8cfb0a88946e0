//! Templates, inlined.

use super::*;
use crate::hardware::template::{BASE, CALLEE, CALLER, INOUT, refuses};

impl Emitter<'_> {
    /// The template's code as it is, but that its refusals lead to the way out.
    pub(super) fn translate(&mut self, from: u8, letter: u8) {
        let templates = self.c.templates;
        let Some(template) = templates.iter().find(|t| t.letter == letter) else { return };
        self.put(addi(INOUT, A0 + from, 0));
        if self.base.replace(template.data) != Some(template.data) {
            self.constant(BASE, template.data);
        }
        self.constant(CALLER, self.c.caller.asid.into());
        self.constant(CALLEE, self.c.callee.asid.into());
        for (i, word) in template.words.iter().enumerate() {
            match refuses(*word, template.words.len() - i) {
                Some(branch) => self.refuse(branch, template.status.into()),
                None => self.put(*word),
            }
        }
        self.put(addi(A0 + from, INOUT, 0));
    }
}
