//! What the operator allows to be served.

/// Which symbolic links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Symlinks {
    /// Those whose target stays beneath the root at every step. An absolute target is refused even when it points
    /// back into the root, since it is not the root that decides where it leads.
    #[default]
    Within,
    /// None.
    Refused,
    /// All but the "magic" links of `/proc`. A user who can write beneath the root can then publish any file that
    /// the server can read.
    Anywhere,
}

/// What goes into an ETag beside the length and the time of modification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EtagSource {
    /// The inode number too: files of equal length and time (reproducible builds, `rsync` of a clamped tree) are
    /// told apart after one is renamed over the other.
    #[default]
    File,
    /// Nothing else: several servers with copies of one tree, made with times kept to the nanosecond, agree.
    Replicas,
}

/// What the operator allows to be served, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Which symbolic links are followed.
    pub symlinks: Symlinks,
    /// Serve names that begin with a dot. `.well-known` is served regardless (RFC 8615).
    pub dotfiles: bool,
    /// Show the entries of a directory that has no index file.
    pub listing: bool,
    /// How many entries a listing shows at most.
    pub listing_limit_entries: usize,
    /// Names to look for in a directory, first match wins. Plain names; one with a slash or a dot segment in it is
    /// skipped.
    pub index: Vec<String>,
    /// Serve `name.br`, `name.zst` or `name.gz` in the place of `name` to clients that accept it.
    pub precompressed: bool,
    /// What an ETag is made from.
    pub etag_source: EtagSource,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            symlinks: Symlinks::Within,
            dotfiles: false,
            listing: true,
            listing_limit_entries: 10_000,
            index: vec!["index.html".to_owned()],
            precompressed: true,
            etag_source: EtagSource::File,
        }
    }
}
