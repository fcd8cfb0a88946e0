//! Fair shares of what is scarce.
//!
//! **Problem.** A limit for each domain keeps nobody from taking all: a program starts others, each with a
//! limit of its own. **Strategy.** What is limited is a *family*: a program that the image, or a shell that
//! the image has started, has started, with all that it has started in turn, and so on. Its number is that
//! program's domain; 0 is the image itself, with those shells, which has no share but the whole. A family
//! gets so many at most, and all families together leave a reserve to the image. Its first few, the *least*,
//! a family has for certain: families that have more than that leave enough for [`LATE`] others that come
//! when they have taken all. **Invariants:** spawning brings a family nothing; whatever two or three families
//! have taken, whoever comes then gets the least; the error says what there is no more of.
//!
//! The process server knows who has started whom, and tells the portal manager when a domain is attached;
//! other servers ask that (`pm.family`).

use crate::errno::{self, Errno};

/// How much of a thing there is, and who may have how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    pub all: usize,
    /// The most that one family may have.
    pub family: usize,
    /// What a family gets whatever the others have.
    pub least: usize,
    /// Left to the image by all families together.
    pub reserve: usize,
    /// What is answered to who asks for more.
    pub error: Errno,
}

/// Limits of calls in time, in the clock.
pub const TIME_LIMITS: Share =
    Share { all: 96, family: 24, least: 4, reserve: 24, error: errno::ETIMELIMITS };
/// Names in the name server.
pub const INTERFACES: Share =
    Share { all: 512, family: 64, least: 16, reserve: 64, error: errno::EINTERFACES };
pub const SEMAPHORES: Share =
    Share { all: 1024, family: 320, least: 24, reserve: 128, error: errno::ESEMAPHORES };
/// Names of semaphores.
pub const PUBLISHED: Share = Share { all: 256, family: 64, least: 8, reserve: 32, error: errno::ESEMAPHORES };
/// Stacks in stack queues.
pub const STACKS: Share = Share { all: 512, family: 176, least: 12, reserve: 48, error: errno::ESTACKS };
/// Bytes of portal code. A program below eight controllers has nine portals for each of its own. The image
/// has some 150 KiB, as much again is its reserve, nearly; the least are the births of six programs.
pub const CODE: Share =
    Share { all: 2 << 20, family: 1344 << 10, least: 96 << 10, reserve: 128 << 10, error: errno::ECODE };
/// Places for 32 portals in portal tables, each of which takes a KiB of the portal manager's heap: of a table
/// as many as have a portal in them. Most programs have three.
pub const TABLES: Share = Share { all: 704, family: 320, least: 24, reserve: 64, error: errno::ETABLES };
pub const THREADS: Share = Share { all: 256, family: 96, least: 8, reserve: 16, error: errno::ETHREADS };
/// Of memory.
pub const PAGES: Share = Share { all: 32768, family: 16000, least: 512, reserve: 256, error: errno::ENOMEM };
pub const PROGRAMS: Share = Share { all: 128, family: 48, least: 6, reserve: 8, error: errno::EPROGRAMS };
pub const PIPES: Share = Share { all: 64, family: 20, least: 4, reserve: 16, error: errno::EPIPES };
/// Open ends of pipes.
pub const ENDS: Share = Share { all: 256, family: 80, least: 8, reserve: 64, error: errno::EPIPES };
/// Open files.
pub const FILES: Share = Share { all: 512, family: 160, least: 16, reserve: 64, error: errno::EFILES };
/// Files in memory, and their bytes.
pub const RAM_FILES: Share = Share { all: 64, family: 20, least: 4, reserve: 16, error: errno::ERAM };
pub const RAM_BYTES: Share =
    Share { all: 16 << 20, family: 8 << 20, least: 512 << 10, reserve: 4 << 20, error: errno::ERAM };
pub const CAPABILITIES: Share =
    Share { all: 2047, family: 640, least: 32, reserve: 256, error: errno::ECAPABILITIES };
/// Portals with a counter of calls.
pub const COUNTERS: Share = Share { all: 256, family: 80, least: 8, reserve: 64, error: errno::ECOUNTERS };
/// Ranges of addresses with fault handlers: each is a portal of the VM manager.
pub const RANGES: Share = Share { all: 640, family: 192, least: 8, reserve: 64, error: errno::EHANDLERS };
/// Fault handlers that are asked at once. A family that has any has two places to itself: its threads take
/// turns at the one, and the other is for a handler that faults while it is asked.
pub const HANDLERS: Share = Share { all: 26, family: 2, least: 2, reserve: 2, error: errno::EHANDLERS };

/// So many families may come when others have taken all that they get.
pub const LATE: usize = 4;

impl Share {
    /// What families that have more than the least may not touch.
    pub const fn kept(&self) -> usize {
        self.reserve + LATE * self.least
    }

    /// May a family that has `its` of the `used` ones have so many more?
    pub const fn grant(&self, family: u16, its: usize, used: usize, more: usize) -> Result<(), Errno> {
        let most = match family {
            0 => self.all,
            _ if its + more <= self.least => self.all - self.reserve,
            _ => self.all - self.kept(),
        };
        if used + more > most || family != 0 && its + more > self.family {
            return Err(self.error);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARES: [Share; 19] = [
        TIME_LIMITS,
        INTERFACES,
        SEMAPHORES,
        PUBLISHED,
        STACKS,
        CODE,
        TABLES,
        THREADS,
        PAGES,
        PROGRAMS,
        PIPES,
        ENDS,
        FILES,
        RAM_FILES,
        RAM_BYTES,
        CAPABILITIES,
        COUNTERS,
        RANGES,
        HANDLERS,
    ];

    #[test]
    fn a_family_leaves_enough_for_another_and_all_of_them_for_the_image() {
        for share in SHARES {
            let Share { all, family, least, reserve, error } = share;
            assert!(least > 0 && all - share.kept() >= family, "{share:?}");
            assert_eq!(share.grant(7, family - 1, family - 1, 1), Ok(()));
            assert_eq!(share.grant(7, family, family, 1), Err(error));
            assert_eq!(share.grant(9, 0, all - reserve, 1), Err(error), "the reserve");
            assert_eq!(share.grant(0, 0, all - reserve, reserve), Ok(()));
            assert_eq!(share.grant(0, 0, all, 1), Err(error));
        }
    }

    /// One family gets its share of code beside what the image has: 192 KiB, generously.
    #[test]
    fn the_image_takes_no_code_of_a_family() {
        assert_eq!(CODE.grant(7, CODE.family - 1, CODE.family - 1 + (192 << 10), 1), Ok(()));
    }

    /// Some families take in turn all that they get; others come one after the other.
    #[test]
    fn families_that_come_late_get_the_least() {
        for share in SHARES {
            let step = (share.least / 8).max(1);
            for hogs in 1..6 {
                let (mut used, mut its) = (0, [0; 64]);
                let mut take = |family: usize| {
                    let granted = share.grant(1 + family as u16, its[family], used, step).is_ok();
                    let more = usize::from(granted) * step;
                    (used, its[family]) = (used + more, its[family] + more);
                    granted
                };
                while (0..hogs).fold(false, |any, family| take(family) || any) {}
                (hogs..64).for_each(|family| while take(family) {});
                let late = its.iter().skip_while(|had| **had > share.least);
                let served = late.take_while(|had| **had + step > share.least).count();
                assert!(served >= LATE, "{share:?}, {hogs} hogs: {its:?}");
            }
        }
    }
}
