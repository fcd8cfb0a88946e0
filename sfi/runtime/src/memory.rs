//! Memory that a domain asks for: `brk`, `mmap` and their kin, within what its policy allows.
//!
//! Each does what it says or fails: rights are the kernel's, what is refused changes nothing. All ranges are
//! the domain's own (`Space` knows them); code, constants, stacks and windows are not among them. Nothing
//! becomes executable.

use crate::ending::over;
use crate::instance::lock;
use crate::layout::*;
use crate::os;
use crate::pieces::MEMORY;
use crate::space::OPEN;
use crate::sys::{Answer, Call, File, State, result};

impl Call<'_> {
    pub(crate) fn brk(&self) -> Answer {
        let base = self.shared.base;
        loop {
            let mut state = lock(&self.resources.state);
            let (brk, begin) = (state.space.brk, state.space.begin());
            let Some(to) = self.a.checked_sub(base).filter(|to| *to >= begin) else {
                return Ok((base + brk) as i64);
            };
            // Far down, in steps.
            let next = to.max(brk.saturating_sub(MEMORY));
            self.move_brk(&mut state, next);
            if next == to || state.space.brk != next || over(self.shared) {
                return Ok((base + state.space.brk) as i64);
            }
        }
    }

    fn move_brk(&self, state: &mut State, to: u64) {
        let (base, before) = (self.shared.base, state.space.brk);
        if let Some((old, new)) = state.space.set_brk(to) {
            let done = match new >= old {
                true if new == old => Ok(()),
                true => os::anonymous(base + old, new - old, OPEN),
                false => os::vacate(base + new, old - new),
            };
            if done.is_err() {
                state.space.set_brk(before);
            }
        }
    }

    /// Private memory; of a file, a copy.
    pub(crate) fn map(&self) -> Answer {
        let (flags, prot) = (self.d as i32, rights(self.c).map_err(|_| libc::ENOTSUP)?);
        if flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) != 0 {
            return Err(libc::ENOTSUP);
        }
        let file = if flags & libc::MAP_ANONYMOUS == 0 { Some(self.file(self.e)?) } else { None };
        if file.is_some() && flags & libc::MAP_PRIVATE == 0 {
            return Err(libc::ENOTSUP);
        }
        let bytes = self.b.checked_next_multiple_of(PAGE).ok_or(libc::ENOMEM)?;
        let at = self.room(&mut lock(&self.resources.state), bytes)?;
        let filled = file.map_or(Ok(()), |file| self.fill(at, &file));
        let fit = filled.and_then(|()| self.set_rights(&mut lock(&self.resources.state), at, bytes, prot));
        if let Err(error) = fit {
            self.unmap(at, bytes)?;
            return Err(error);
        }
        Ok(at as i64)
    }

    /// What the file has from the offset on, as far as it goes; what is not there is zero.
    fn fill(&self, at: u64, file: &File) -> Result<(), i32> {
        let read = |done: u64, most: u64| {
            let from = self.f.wrapping_add(done);
            // SAFETY: a descriptor of the domain's, and memory of its segment that has just been mapped.
            result(unsafe { libc::syscall(libc::SYS_pread64, file.fd(), at + done, most, from) })
        };
        match self.in_pieces(self.b, read) {
            // No file with pages.
            Err(libc::ESPIPE | libc::EISDIR) => Err(libc::ENODEV),
            done => done.map(drop),
        }
    }

    /// New memory: its address.
    fn room(&self, state: &mut State, bytes: u64) -> Result<u64, i32> {
        let at = state.space.take(bytes).ok_or(libc::ENOMEM)?;
        if os::anonymous(self.shared.base + at, bytes, OPEN).is_err() {
            state.space.give(at, bytes);
            return Err(libc::ENOMEM);
        }
        Ok(self.shared.base + at)
    }

    /// Larger memory is other memory, to which the pages move.
    pub(crate) fn remap(&self) -> Answer {
        let (base, page) = (self.shared.base, |n: u64| n.checked_next_multiple_of(PAGE).ok_or(libc::ENOMEM));
        let (at, old, new) = (self.a.wrapping_sub(base), page(self.b)?, page(self.c)?);
        let moves = self.d == libc::MREMAP_MAYMOVE as u64;
        let known = moves || self.d == 0;
        if !known || !at.is_multiple_of(PAGE) || at >= MODULE_END || old == 0 || old > MODULE_END || new == 0
        {
            return Err(libc::EINVAL);
        }
        let mut state = lock(&self.resources.state);
        if !state.space.holds(at, old) {
            return Err(libc::EFAULT);
        }
        if new <= old {
            drop(state);
            if new < old {
                self.unmap(self.a + new, old - new)?;
            }
            return Ok(self.a as i64);
        }
        // Pages with other rights stay where they are.
        if !moves || !state.space.is_open(at, old) {
            return Err(libc::ENOMEM);
        }
        // Then the domain copies.
        if !state.space.may_move() {
            return Err(libc::ENOMEM);
        }
        let to = self.room(&mut state, new)?;
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
        // SAFETY: both ranges are memory that this space has given to the domain; the old one stays mapped,
        // empty.
        let moved = unsafe { libc::mremap(self.a as *mut _, old as usize, old as usize, flags, to) };
        if moved == libc::MAP_FAILED {
            for (from, end) in state.space.give(to - base, new).unwrap_or_default() {
                let _ = os::vacate(base + from, end - from);
            }
            return Err(libc::ENOMEM);
        }
        // Empty by now; where it would be a hole too many it stays the domain's.
        for (from, end) in state.space.give(at, old).unwrap_or_default() {
            let _ = os::vacate(base + from, end - from);
        }
        Ok(to as i64)
    }

    pub(crate) fn unmap(&self, at: u64, bytes: u64) -> Answer {
        let offset = at.wrapping_sub(self.shared.base);
        if !offset.is_multiple_of(PAGE) || offset >= MODULE_END {
            return Err(libc::EINVAL);
        }
        if bytes == 0 {
            return Ok(0);
        }
        let bytes = bytes.checked_next_multiple_of(PAGE).ok_or(libc::EINVAL)?;
        self.downwards(offset, offset.saturating_add(bytes).min(MODULE_END), |from, to| {
            let mut state = lock(&self.resources.state);
            for (from, to) in state.space.give(from, to - from).ok_or(libc::ENOMEM)? {
                let _ = os::vacate(self.shared.base + from, to - from);
            }
            Ok(())
        })?;
        Ok(0)
    }

    /// `mprotect`: of the heap and the image's variables.
    pub(crate) fn protect(&self) -> Answer {
        let prot = rights(self.c)?;
        let mut state = lock(&self.resources.state);
        let bytes = self.own(&state)?;
        self.set_rights(&mut state, self.a, bytes, prot)?;
        Ok(0)
    }

    /// `madvise`: what is not wanted any more reads as zero; other advice there is no need to take.
    pub(crate) fn advise(&self) -> Answer {
        const TAKEN: [i32; 8] = [
            libc::MADV_NORMAL,
            libc::MADV_RANDOM,
            libc::MADV_SEQUENTIAL,
            libc::MADV_WILLNEED,
            libc::MADV_DONTNEED,
            libc::MADV_FREE,
            libc::MADV_HUGEPAGE,
            libc::MADV_NOHUGEPAGE,
        ];
        let advice = TAKEN.into_iter().find(|advice| *advice as u64 == self.c).ok_or(libc::EINVAL)?;
        let state = lock(&self.resources.state);
        let bytes = self.own(&state)?;
        if advice == libc::MADV_DONTNEED && bytes > 0 {
            if !state.space.owns(self.a - self.shared.base, bytes, 0..0) {
                // The image's own contents would come back, without their relocations.
                return Err(libc::EINVAL);
            }
            drop(state);
            let (base, offset) = (self.shared.base, self.a - self.shared.base);
            self.downwards(offset, offset + bytes, |from, to| {
                let state = lock(&self.resources.state);
                // Another thread of the domain may have given it back.
                if state.space.owns(from, to - from, 0..0) {
                    os::discard(base + from, to - from);
                }
                Ok(())
            })?;
        }
        Ok(0)
    }

    /// Whole pages from the first argument on, as many as the second says, if they are the domain's to
    /// change.
    fn own(&self, state: &State) -> Result<u64, i32> {
        let at = self.a.wrapping_sub(self.shared.base);
        let bytes = self.b.checked_next_multiple_of(PAGE).ok_or(libc::ENOMEM)?;
        let data = self.shared.module.data();
        let data = data.start..page_up(data.end);
        match at {
            _ if !at.is_multiple_of(PAGE) => Err(libc::EINVAL),
            _ if bytes == 0 || state.space.owns(at, bytes, data) => Ok(bytes),
            _ => Err(libc::ENOMEM),
        }
    }

    fn set_rights(&self, state: &mut State, at: u64, bytes: u64, prot: i32) -> Result<(), i32> {
        let offset = at - self.shared.base;
        if bytes == 0 || (prot == OPEN && state.space.is_open(offset, bytes)) {
            return Ok(());
        }
        if !state.space.set_rights(offset, bytes, prot) {
            return Err(libc::ENOMEM);
        }
        os::protect(at, bytes, prot).map_err(|_| libc::ENOMEM)
    }
}

/// What the domain may want of its memory.
fn rights(prot: u64) -> Result<i32, i32> {
    match prot as i32 {
        exec if exec & os::PROT_EXEC != 0 => Err(libc::EACCES),
        prot if prot & !OPEN == 0 => Ok(prot),
        _ => Err(libc::EINVAL),
    }
}
