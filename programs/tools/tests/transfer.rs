//! Files over the console: what comes out is what went in, or an error that says where.

use pebble_tools::transfer::{Receiver, TransferError, crc32, encode};
use proptest::prelude::*;

fn lines(bytes: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    encode(bytes, |line| lines.push(line.into()));
    lines
}

fn receive(lines: &[String]) -> Result<Vec<u8>, TransferError> {
    let mut receiver = Receiver::default();
    for line in lines {
        if receiver.line(line)? {
            return Ok(receiver.bytes);
        }
    }
    Err(TransferError::Unfinished)
}

#[test]
fn known_values() {
    assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    assert_eq!(lines(b"Pebble"), vec!["UGViYmxl".to_string(), format!("= 6 {}", crc32(b"Pebble"))]);
    assert_eq!(lines(b"a")[0], "YQ==");
}

proptest! {
    #[test]
    fn it_comes_out_as_it_went_in(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
        prop_assert_eq!(receive(&lines(&bytes)), Ok(bytes));
    }

    /// A line lost, doubled or changed is never taken for the file.
    #[test]
    fn damage_is_noticed(bytes in proptest::collection::vec(any::<u8>(), 1..500), at in any::<prop::sample::Index>(), how in 0..3, c in 0x20u8..0x7f) {
        let good = lines(&bytes);
        let mut bad = good.clone();
        let at = at.index(bad.len() - 1);
        match how {
            0 => drop(bad.remove(at)),
            1 => bad.insert(at, good[at].clone()),
            _ => {
                let mut line = bad[at].clone().into_bytes();
                let middle = line.len() / 2;
                line[middle] = c;
                bad[at] = String::from_utf8(line).unwrap();
            }
        }
        match receive(&bad) {
            Ok(same) => prop_assert_eq!(same, bytes),
            Err(_) => prop_assert_ne!(bad, good),
        }
    }
}
