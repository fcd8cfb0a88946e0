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
        if receiver.line(line) {
            break;
        }
    }
    receiver.finish()
}

#[test]
fn known_values() {
    assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    assert_eq!(lines(b"Pebble"), vec!["UGViYmxl".to_string(), format!("= 6 {}", crc32(b"Pebble"))]);
    assert_eq!(lines(b"a")[0], "YQ==");
}

/// All lines up to the last are taken, and the first mistake is told.
#[test]
fn a_bad_line_does_not_end_it() {
    let mut receiver = Receiver::default();
    assert!(
        !receiver.line("UGVi") && !receiver.line("!") && !receiver.line("?Ymxl") && receiver.line("= 6 1")
    );
    assert_eq!(receiver.finish(), Err(TransferError::Character { line: 2, column: 1 }));
    assert_eq!(receive(&["UGVi".into()]), Err(TransferError::Unfinished));
}

proptest! {
    #[test]
    fn it_comes_out_as_it_went_in(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
        prop_assert_eq!(receive(&lines(&bytes)), Ok(bytes));
    }

    /// A line lost, doubled or changed is never taken for the file.
    #[test]
    fn damage_is_noticed(
        bytes in proptest::collection::vec(any::<u8>(), 1..500),
        at in any::<prop::sample::Index>(),
        how in 0..3,
        c in 0x20u8..0x7f,
    ) {
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
