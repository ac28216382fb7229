//! The kernel's settings and facts by name (`sysctl(3)`).

use std::{ffi::CString, io, ptr};

/// Longer than any value that is asked for here.
const MOST_BYTES: usize = 1 << 20;

/// The value of `name`, as it lies in memory.
///
/// # Errors
/// The kernel's: `ENOENT` where it has no such name; [`io::ErrorKind::InvalidInput`] for what cannot be a name.
fn bytes(name: &str) -> io::Result<Vec<u8>> {
    let name = CString::new(name).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut length = 0;
    // SAFETY: `name` ends with NUL. Without memory for the value the kernel writes its length, and nothing else.
    if unsafe { libc::sysctlbyname(name.as_ptr(), ptr::null_mut(), &raw mut length, ptr::null(), 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if length > MOST_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut value = vec![0_u8; length];
    // SAFETY: as above; `value` has `length` bytes, and the kernel writes no more, and says in it how many.
    let result = unsafe {
        libc::sysctlbyname(name.as_ptr(), value.as_mut_ptr().cast(), &raw mut length, ptr::null(), 0)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    value.truncate(length);
    Ok(value)
}

/// A value that is a text, without the NUL at its end.
///
/// # Errors
/// As those of `bytes`.
pub(crate) fn text(name: &str) -> io::Result<String> {
    let value = bytes(name)?;
    let end = value.iter().position(|&byte| byte == 0).unwrap_or(value.len());
    Ok(String::from_utf8_lossy(value.get(..end).unwrap_or_default()).trim().to_owned())
}

/// A value that is a number, of four bytes or of eight, with a sign or without: negative ones are an error.
///
/// # Errors
/// As those of `bytes`; [`io::ErrorKind::InvalidData`] for what is no such number.
pub(crate) fn number(name: &str) -> io::Result<u64> {
    let value = bytes(name)?;
    let number = match value.len() {
        4 => value.try_into().ok().map(i32::from_ne_bytes).map(i64::from),
        8 => value.try_into().ok().map(i64::from_ne_bytes),
        _ => None,
    };
    number.and_then(|number| u64::try_from(number).ok()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}
