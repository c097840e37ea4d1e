//! Reusable buffers for the bytes of row groups.
//!
//! A row group has megabytes. If such a buffer is allocated for each row group, the operating
//! system provides its memory page by page. This takes longer than copying the bytes from the page
//! cache: on 16 cores it was two thirds of the time of a scan that a device decodes. A buffer
//! becomes free when the last slice of it is dropped.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// Largest total size of free buffers, in bytes. Scans reserve the memory of the buffers that they
/// use.
const MAX_FREE_BYTES: usize = 512 << 20;

/// Free buffers that the scans of a session share.
#[derive(Debug, Default)]
pub(crate) struct ReadBuffers {
    free: Mutex<Vec<Vec<u8>>>,
}

impl ReadBuffers {
    /// Returns the bytes that `fill` writes to a buffer of `len_bytes` bytes. `fill` gets a buffer
    /// with unspecified content.
    ///
    /// # Errors
    /// The errors of `fill`.
    pub(super) fn filled<E>(
        self: &Arc<Self>,
        len_bytes: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Bytes, E> {
        let mut buffer = Buffer { bytes: self.take(len_bytes), len_bytes, home: Arc::clone(self) };
        fill(&mut buffer.bytes[..len_bytes])?;
        Ok(Bytes::from_owner(buffer))
    }

    /// Takes the smallest free buffer that is large enough, or a new buffer. All bytes are
    /// initialized.
    fn take(&self, len_bytes: usize) -> Vec<u8> {
        let mut free = self.lock();
        let large_enough = (0..free.len()).filter(|i| free[*i].len() >= len_bytes);
        match large_enough.min_by_key(|i| free[*i].len()) {
            Some(i) => free.swap_remove(i),
            None => {
                // The new buffer replaces the largest free one, which is too small.
                let largest = (0..free.len()).max_by_key(|i| free[*i].len());
                let dropped = largest.map(|i| free.swap_remove(i));
                drop((free, dropped));
                vec![0; len_bytes]
            }
        }
    }

    fn put_back(&self, bytes: Vec<u8>) {
        let mut free = self.lock();
        let num_bytes: usize = free.iter().map(Vec::len).sum();
        if num_bytes + bytes.len() <= MAX_FREE_BYTES {
            free.push(bytes);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer in use.
struct Buffer {
    bytes: Vec<u8>,
    len_bytes: usize,
    home: Arc<ReadBuffers>,
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len_bytes]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.home.put_back(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(buffers: &Arc<ReadBuffers>, len_bytes: usize, byte: u8) -> Bytes {
        let fill = |bytes: &mut [u8]| {
            bytes.fill(byte);
            Ok::<(), ()>(())
        };
        buffers.filled(len_bytes, fill).unwrap()
    }

    #[test]
    fn a_buffer_comes_back_with_its_last_slice() {
        let buffers = Arc::new(ReadBuffers::default());
        let first = bytes(&buffers, 1000, 1);
        let (slice, place) = (first.slice(10..20), first.as_ptr());
        drop(first);
        let second = bytes(&buffers, 500, 2);
        assert_ne!(second.as_ptr(), place);
        assert_eq!(slice[..], [1; 10]);
        drop(slice);
        let third = bytes(&buffers, 900, 3);
        assert_eq!((third.as_ptr(), third.len()), (place, 900));
        assert!(second.iter().all(|byte| *byte == 2) && third.iter().all(|byte| *byte == 3));
    }

    #[test]
    fn a_buffer_that_was_not_filled_comes_back_too() {
        let buffers = Arc::new(ReadBuffers::default());
        assert_eq!(buffers.filled(10, |_| Err("no")).unwrap_err(), "no");
        assert_eq!(buffers.lock().len(), 1);
        // A larger buffer replaces the free one that is too small.
        drop(bytes(&buffers, 20, 0));
        assert_eq!(buffers.lock().iter().map(Vec::len).collect::<Vec<_>>(), [20]);
        assert!(bytes(&buffers, 0, 0).is_empty());
    }

    #[test]
    fn free_memory_is_bounded() {
        let buffers = Arc::new(ReadBuffers::default());
        buffers.put_back(vec![0; MAX_FREE_BYTES]);
        buffers.put_back(vec![0; 1]);
        assert_eq!(buffers.lock().len(), 1);
    }
}
