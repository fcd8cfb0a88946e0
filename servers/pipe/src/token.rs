//! Tokens: the right to open a pipe, as a number that nobody guesses in as many attempts as a domain has.
//!
//! Strategy: SipHash-2-4 of a counter under a secret key, so that who sees any number of tokens learns
//! nothing of the next one. The key is stirred with the time of every creation, which is all that is left to
//! guess for whoever has made the first pipe; so attempts are few. The low bits are the number of the pipe,
//! which makes the way from token to pipe an index and a comparison. The top bit is clear: a result word
//! below zero is an error.

use pebble_abi::link::{PATHLEN, pack, unpack};

use crate::pipes::{PIPES, Side};

/// The secret.
pub struct Tokens {
    key: [u64; 2],
    counter: u64,
}

impl Default for Tokens {
    fn default() -> Self {
        Self::new()
    }
}

impl Tokens {
    pub const fn new() -> Self {
        Tokens { key: [0; 2], counter: 0 }
    }

    pub(crate) fn save(&self) -> [u64; 3] {
        [self.key[0], self.key[1], self.counter]
    }

    pub(crate) fn load(&mut self, [a, b, counter]: [u64; 3]) {
        *self = Tokens { key: [a, b], counter };
    }

    /// Mixes what is hard to know from outside into the key.
    pub fn stir(&mut self, entropy: u64) {
        self.key = [siphash(self.key, entropy), siphash([self.key[1], self.key[0]], !entropy)];
    }

    pub(crate) fn next(&mut self, pipe: usize) -> u64 {
        self.counter += 1;
        let hash = siphash(self.key, self.counter) & i64::MAX as u64;
        hash & !(PIPES as u64 - 1) | pipe as u64
    }
}

/// SipHash-2-4 (Aumasson and Bernstein) of one word.
fn siphash(key: [u64; 2], word: u64) -> u64 {
    let mut v = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let round = |v: &mut [u64; 4]| {
        let [mut a, mut b, mut c, mut d] = *v;
        a = a.wrapping_add(b);
        c = c.wrapping_add(d);
        b = b.rotate_left(13) ^ a;
        d = d.rotate_left(16) ^ c;
        a = a.rotate_left(32).wrapping_add(d);
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        d = d.rotate_left(21) ^ a;
        c = c.rotate_left(32);
        *v = [a, b, c, d];
    };
    for block in [word, 8 << 56] {
        v[3] ^= block;
        round(&mut v);
        round(&mut v);
        v[0] ^= block;
    }
    v[2] ^= 0xff;
    for _ in 0..4 {
        round(&mut v);
    }
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

const PREFIX: &[u8] = b"/pipe/";
/// Length of a path to one end of a pipe.
pub const PATH_BYTES: usize = PREFIX.len() + 16 + 2;

/// The path of one end: `/pipe/<16 hexadecimal digits>/r` or `/w`.
pub fn path(token: u64, side: Side) -> [u8; PATH_BYTES] {
    let mut text = [0; PATH_BYTES];
    text[..PREFIX.len()].copy_from_slice(PREFIX);
    for (i, byte) in text[PREFIX.len()..][..16].iter_mut().enumerate() {
        *byte = b"0123456789abcdef"[(token >> (60 - 4 * i)) as usize & 15];
    }
    text[PATH_BYTES - 2] = b'/';
    text[PATH_BYTES - 1] = match side {
        Side::Read => b'r',
        Side::Write => b'w',
    };
    text
}

/// The inverse of [`path`], on the words of an `open` call.
pub fn parse_path(words: [u64; 5]) -> Option<(u64, Side)> {
    let mut bytes = [0; PATHLEN];
    let len = unpack(&words, &mut bytes);
    let text = core::str::from_utf8(&bytes[..len]).ok()?;
    let rest = bytes[..len].strip_prefix(PREFIX)?;
    let (digits, end) = rest.split_first_chunk::<16>()?;
    let side = match end {
        b"/r" => Side::Read,
        b"/w" => Side::Write,
        _ => return None,
    };
    let token = digits.iter().try_fold(0, |token, digit| match digit {
        b'0'..=b'9' => Some(token << 4 | u64::from(digit - b'0')),
        b'a'..=b'f' => Some(token << 4 | u64::from(digit - b'a' + 10)),
        _ => None,
    })?;
    (pack(text) == Some(words)).then_some((token, side))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference implementation's vector for eight bytes.
    #[test]
    fn siphash_reference() {
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        assert_eq!(siphash(key, 0x0706_0504_0302_0100), 0x93f5_f579_9a93_2462);
    }
}
