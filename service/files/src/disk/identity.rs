//! Who a file is: what must stay equal between a read and the write that builds on it, and the revision made of it.

use filectx_openapi::EntryType;
use rustix::fs::{FileType, Stat};
use xxhash_rust::xxh3::xxh3_128;

/// The largest file whose revision is a hash of its content.
pub const HASHED_BYTES: u64 = 8 << 20;

/// Device, inode, mode, owner, size and times of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Device.
    pub dev: u64,
    /// Inode.
    pub ino: u64,
    /// Type and permission bits.
    pub mode: u32,
    /// Number of hard links.
    pub links: u64,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Size in bytes.
    pub size: u64,
    /// Blocks on disk; 0 where the size may lie.
    pub blocks: u64,
    /// Last change of the content, in nanoseconds since 1970.
    pub mtime_ns: i128,
    /// Last change of content or metadata, in nanoseconds since 1970.
    pub ctime_ns: i128,
}

impl Identity {
    /// The identity that `stat` tells.
    #[allow(clippy::unnecessary_cast, reason = "the fields' types differ between systems")]
    pub fn of(stat: &Stat) -> Self {
        Self {
            dev: stat.st_dev as u64,
            ino: stat.st_ino as u64,
            mode: stat.st_mode as u32,
            links: stat.st_nlink as u64,
            uid: stat.st_uid,
            gid: stat.st_gid,
            size: stat.st_size as u64,
            blocks: stat.st_blocks as u64,
            mtime_ns: nanos(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            ctime_ns: nanos(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }

    /// What kind of thing it is.
    pub fn kind(&self) -> EntryType {
        entry_type(FileType::from_raw_mode(self.mode as rustix::fs::RawMode))
    }

    /// Whether content may have moved between the two: another size or time of the same file.
    pub fn content_moved(&self, later: &Identity) -> bool {
        self.size != later.size || self.mtime_ns != later.mtime_ns
    }

    /// Whether the file is still the one that was read: device, inode, mode, size, mtime, ctime.
    pub fn is_still(&self, later: &Identity) -> bool {
        (self.dev, self.ino, self.mode, self.size, self.mtime_ns, self.ctime_ns)
            == (later.dev, later.ino, later.mode, later.size, later.mtime_ns, later.ctime_ns)
    }

    /// Whether the file is still the one that was read, but for what a rename of it moves: its ctime.
    pub fn is_same_content(&self, later: &Identity) -> bool {
        self.is_still(&Identity { ctime_ns: self.ctime_ns, ..*later })
            && (self.uid, self.gid) == (later.uid, later.gid)
    }

    /// Last change in milliseconds since 1970, rounded down.
    pub fn modified_millis(&self) -> i64 {
        i64::try_from(self.mtime_ns.div_euclid(1_000_000)).unwrap_or(i64::MAX)
    }

    /// The revision of a file too large to be hashed: equal means untouched by these.
    pub fn stat_revision(&self) -> String {
        format!("stat:{:x}-{:x}-{:x}-{:x}-{:x}", self.dev, self.ino, self.size, self.mtime_ns, self.ctime_ns)
    }
}

fn nanos(seconds: i64, nanoseconds: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds)
}

/// The revision of a file by its content: equal means equal content.
pub fn hash_revision(content: &[u8]) -> String {
    format_hash(xxh3_128(content))
}

/// The text of a content hash as a revision.
pub fn format_hash(hash: u128) -> String {
    format!("hash:{hash:032x}")
}

/// The contract's word for a file type.
pub fn entry_type(kind: FileType) -> EntryType {
    match kind {
        FileType::Directory => EntryType::Directory,
        FileType::Symlink => EntryType::Symlink,
        FileType::Fifo => EntryType::Fifo,
        FileType::Socket => EntryType::Socket,
        FileType::BlockDevice => EntryType::BlockDevice,
        FileType::CharacterDevice => EntryType::CharDevice,
        _ => EntryType::File,
    }
}
