//! How large the terminal is. The one place in the text that asks the system.

use std::os::fd::AsRawFd;

/// Columns of the terminal behind a descriptor; `None` when there is none.
pub fn terminal_columns(of: &impl AsRawFd) -> Option<u16> {
    size(of).map(|size| size.ws_col).filter(|columns| *columns > 0)
}

/// Its rows.
pub fn terminal_rows(of: &impl AsRawFd) -> Option<u16> {
    size(of).map(|size| size.ws_row).filter(|rows| *rows > 0)
}

fn size(of: &impl AsRawFd) -> Option<libc::winsize> {
    // SAFETY: TIOCGWINSZ fills the structure that it is given, or fails.
    unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        (libc::ioctl(of.as_raw_fd(), libc::TIOCGWINSZ, &mut size) == 0).then_some(size)
    }
}
