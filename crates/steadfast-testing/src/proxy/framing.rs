//! Where a body ends that arrives in pieces (RFC 9112 §6.3).

use super::message::Malformed;

/// Finds the end of a body that arrives in pieces.
#[derive(Debug)]
pub(super) enum BodyEnd {
    Chunked(Chunked),
    /// This many bytes are to come.
    Length(u64),
    UntilClose,
}

/// Where in a chunked body (RFC 9112 §7.1) the next byte is.
#[derive(Debug)]
pub(super) enum Chunked {
    /// In the line that gives a chunk's size.
    Size {
        size: u64,
        line: Line,
    },
    /// This many bytes of a chunk are to come, its line end included.
    Data(u64),
    /// In a line of the trailer section.
    Trailer {
        line: Line,
    },
    Done,
}

/// How far a line has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    len: usize,
    /// In a chunk's size line: its digits are over.
    digits_over: bool,
}

pub(super) const MAX_LINE: usize = 16 * 1024;

impl BodyEnd {
    pub(super) fn chunked() -> Self {
        Self::Chunked(Chunked::size())
    }

    pub(super) const fn is_done(&self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunked(Chunked::Done))
    }

    pub(super) const fn is_until_close(&self) -> bool {
        matches!(self, Self::UntilClose)
    }

    /// How many of `bytes` belong to the body.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        match self {
            Self::UntilClose => Ok(bytes.len()),
            Self::Length(left) => Ok(take(left, bytes.len())),
            Self::Chunked(chunked) => chunked.advance(bytes),
        }
    }
}

impl Chunked {
    fn size() -> Self {
        Self::Size {
            size: 0,
            line: Line::default(),
        }
    }

    fn advance(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match self {
                Self::Done => break,
                Self::Data(left) => {
                    at += take(left, bytes.len() - at);
                    if *left == 0 {
                        *self = Self::size();
                    }
                    continue;
                }
                Self::Size { size, line } => {
                    if line.ends(byte)? {
                        *self = match *size {
                            _ if line.len == 0 => return Err(Malformed),
                            0 => Self::Trailer {
                                line: Line::default(),
                            },
                            size => Self::Data(size.checked_add(2).ok_or(Malformed)?),
                        };
                    } else {
                        line.digit(byte, size)?;
                    }
                }
                Self::Trailer { line } => {
                    if line.ends(byte)? {
                        let is_empty = line.len == 0;
                        *self = if is_empty {
                            Self::Done
                        } else {
                            Self::Trailer {
                                line: Line::default(),
                            }
                        };
                    }
                }
            }
            at += 1;
        }
        Ok(at)
    }
}

impl Line {
    /// Whether `byte` ends the line. A carriage return counts neither as content nor as an end.
    fn ends(&mut self, byte: u8) -> Result<bool, Malformed> {
        match byte {
            b'\n' => return Ok(true),
            b'\r' => {}
            _ => self.len += 1,
        }
        if self.len > MAX_LINE {
            return Err(Malformed);
        }
        Ok(false)
    }

    fn digit(&mut self, byte: u8, size: &mut u64) -> Result<(), Malformed> {
        if self.digits_over || byte == b'\r' {
            return Ok(());
        }
        match char::from(byte).to_digit(16) {
            Some(digit) => {
                *size = size
                    .checked_mul(16)
                    .and_then(|size| size.checked_add(u64::from(digit)))
                    .ok_or(Malformed)?;
            }
            // An extension, or blanks before one.
            None if self.len > 1 => self.digits_over = true,
            None => return Err(Malformed),
        }
        Ok(())
    }
}

fn take(left: &mut u64, available: usize) -> usize {
    let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(available);
    *left -= taken as u64;
    taken
}
