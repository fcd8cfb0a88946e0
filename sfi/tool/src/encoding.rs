//! Assembly may contain bytes of any encoding, in strings and names of files: they come out as they went in.

use crate::cc::Error;
use std::path::Path;

pub struct Text {
    pub text: String,
    /// It was not UTF-8: each character stands for a byte.
    bytes: bool,
}

impl Text {
    pub fn as_it_is(&self) -> Vec<u8> {
        self.like(&self.text)
    }

    /// What has become of the text, as bytes of the same encoding.
    pub fn like(&self, text: &str) -> Vec<u8> {
        if self.bytes { text.chars().map(|c| c as u8).collect() } else { text.as_bytes().to_vec() }
    }
}

pub fn read(path: &Path) -> Result<Text, Error> {
    let bytes = std::fs::read(path).map_err(|e| Error::Io(path.into(), e))?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => Text { text, bytes: false },
        Err(e) => Text { text: e.as_bytes().iter().map(|b| *b as char).collect(), bytes: true },
    })
}

pub fn write(path: &Path, bytes: Vec<u8>) -> Result<(), Error> {
    std::fs::write(path, bytes).map_err(|e| Error::Io(path.into(), e))
}
