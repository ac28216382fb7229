//! Serves a directory to NFS clients in the clear: a program to try this crate with, by hand. A handle is a path, a thread serves a
//! connection, every file is opened for every READ, and nothing is cached. Not for use.
//!
//! ```text
//! cargo run -p linerate-nfs --example serve -- /srv/media 127.0.0.1:2049
//! mount -t nfs -o vers=4.2,ro localhost:/ /mnt
//! ```

use linerate_nfs::{
    Access, Attributes, Caller, Client, Device, Entry, Evaluated, Fault, FileSystem, FileSystemId, Handle,
    Kind, Limits, Listing, ListingRequest, Name, Opened, Piece, Protocol, Reply, Space, Step, Time,
    TlsPolicy, Waiting,
};
use linerate_rpc::Records;
use std::{
    env,
    error::Error,
    ffi::OsStr,
    fs::{self, File},
    io::{self, ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::{FileExt, FileTypeExt, MetadataExt},
    },
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

struct Directory {
    root: PathBuf,
}

fn fault(error: io::Error) -> Fault {
    match error.kind() {
        ErrorKind::NotFound => Fault::NotFound,
        ErrorKind::PermissionDenied => Fault::Denied,
        ErrorKind::NotADirectory => Fault::NotDirectory,
        ErrorKind::InvalidInput => Fault::NotLink,
        _ => Fault::Failed,
    }
}

impl Directory {
    fn below(&self, path: PathBuf) -> Result<PathBuf, Fault> {
        fs::symlink_metadata(&path).map_err(fault)?;
        Ok(path)
    }
}

impl FileSystem for Directory {
    type Object = PathBuf;
    type File = Arc<File>;

    fn root(&self, _: &Caller<'_>) -> Result<PathBuf, Fault> {
        Ok(self.root.clone())
    }

    fn resolve(&self, _: &Caller<'_>, handle: &[u8]) -> Result<PathBuf, Fault> {
        let Some((b'/', relative)) = handle.split_first() else { return Err(Fault::BadHandle) };
        let relative = Path::new(OsStr::from_bytes(relative));
        if relative.components().any(|part| !matches!(part, std::path::Component::Normal(_))) {
            return Err(Fault::BadHandle);
        }
        self.below(self.root.join(relative)).map_err(|_| Fault::Stale)
    }

    fn handle(&self, object: &PathBuf) -> Handle {
        let relative = object.strip_prefix(&self.root).unwrap_or(object);
        Handle::new(&[b"/", relative.as_os_str().as_bytes()].concat())
            .expect("paths are short where this is tried")
    }

    fn look_up(&self, _: &Caller<'_>, directory: &PathBuf, name: Name<'_>) -> Result<PathBuf, Fault> {
        self.below(directory.join(OsStr::from_bytes(name.as_bytes())))
    }

    fn parent(&self, caller: &Caller<'_>, directory: &PathBuf) -> Result<PathBuf, Fault> {
        if self.attributes(caller, directory)?.kind != Kind::Directory {
            return Err(Fault::NotDirectory);
        }
        if *directory == self.root {
            return Err(Fault::NotFound);
        }
        directory.parent().map(Path::to_owned).ok_or(Fault::NotFound)
    }

    fn attributes(&self, _: &Caller<'_>, object: &PathBuf) -> Result<Attributes, Fault> {
        let metadata = fs::symlink_metadata(object).map_err(|_| Fault::Stale)?;
        let kind = metadata.file_type();
        let time =
            |seconds, nanoseconds| Time { seconds, nanoseconds: u32::try_from(nanoseconds).unwrap_or(0) };
        Ok(Attributes {
            kind: if kind.is_file() {
                Kind::File
            } else if kind.is_dir() {
                Kind::Directory
            } else if kind.is_symlink() {
                Kind::SymbolicLink
            } else if kind.is_fifo() {
                Kind::Pipe
            } else if kind.is_socket() {
                Kind::Socket
            } else if kind.is_block_device() {
                Kind::BlockDevice
            } else {
                Kind::CharacterDevice
            },
            mode: metadata.mode() & 0o7777,
            links: u32::try_from(metadata.nlink()).unwrap_or(u32::MAX),
            user: metadata.uid(),
            group: metadata.gid(),
            size_bytes: metadata.size(),
            used_bytes: metadata.blocks() * 512,
            device: Device::default(),
            file_system: FileSystemId { major: metadata.dev(), minor: 0 },
            number: metadata.ino(),
            mounted_on_number: metadata.ino(),
            change: (metadata.ctime() * 1_000_000_000 + metadata.ctime_nsec()) as u64,
            accessed: time(metadata.atime(), metadata.atime_nsec()),
            modified: time(metadata.mtime(), metadata.mtime_nsec()),
            attributes_changed: time(metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    fn space(&self, _: &Caller<'_>, _: &PathBuf) -> Result<Space, Fault> {
        Ok(Space { total_bytes: 1 << 40, ..Space::default() })
    }

    fn access(&self, caller: &Caller<'_>, object: &PathBuf) -> Result<Access, Fault> {
        let attributes = self.attributes(caller, object)?;
        let is_directory = attributes.kind == Kind::Directory;
        Ok(Access {
            read: true,
            look_up: is_directory,
            execute: !is_directory && attributes.mode & 0o111 != 0,
        })
    }

    fn open(&self, caller: &Caller<'_>, object: &PathBuf) -> Result<Opened<Arc<File>>, Fault> {
        match self.attributes(caller, object)?.kind {
            Kind::File => {}
            Kind::Directory => return Err(Fault::IsDirectory),
            _ => return Err(Fault::NotFile),
        }
        let file = File::open(object).map_err(fault)?;
        let size_bytes = file.metadata().map_err(fault)?.len();
        Ok(Opened { file: Arc::new(file), size_bytes })
    }

    fn read_link(&self, _: &Caller<'_>, object: &PathBuf) -> Result<Vec<u8>, Fault> {
        Ok(fs::read_link(object).map_err(fault)?.into_os_string().into_vec())
    }

    fn list(&self, _: &Caller<'_>, directory: &PathBuf, request: ListingRequest) -> Result<Listing, Fault> {
        let mut all: Vec<_> = fs::read_dir(directory).map_err(fault)?.filter_map(Result::ok).collect();
        all.sort_by_key(fs::DirEntry::file_name);
        use std::os::unix::fs::DirEntryExt;
        let first = usize::try_from(request.after.saturating_sub(2)).unwrap_or(usize::MAX);
        let behind = all.iter().enumerate().skip(first);
        let entries: Vec<_> = behind
            .take(request.limit_entries)
            .map(|(index, entry)| Entry {
                name: entry.file_name().into_vec(),
                cookie: index as u64 + 3,
                number: entry.ino(),
                kind: None,
            })
            .collect();
        let is_end = entries.last().is_none_or(|last| last.cookie == all.len() as u64 + 2);
        Ok(Listing { verifier: [0; 8], entries, is_end })
    }

    fn exports(&self, _: &Caller<'_>) -> Result<Vec<Vec<u8>>, Fault> {
        Ok(vec![b"/".to_vec()])
    }
}

fn send(stream: &mut TcpStream, reply: Reply<Arc<File>>) -> io::Result<()> {
    let mut all = Vec::new();
    for piece in reply.pieces {
        match piece {
            Piece::Bytes(bytes) => all.extend_from_slice(&bytes),
            Piece::File { file, range } => {
                let before = all.len();
                all.resize(before + (range.end - range.start) as usize, 0);
                file.read_exact_at(&mut all[before..], range.start)?;
            }
        }
    }
    stream.write_all(&all)
}

fn connection(
    mut stream: TcpStream,
    protocol: &Protocol,
    files: &Directory,
    start: Instant,
) -> Result<(), Box<dyn Error>> {
    stream.set_nodelay(true)?;
    let client = Client { address: stream.peer_addr()?, tls: None };
    let mut records = Records::new(protocol.call_limit_bytes());
    let mut buffer = vec![0; 1 << 16];
    let mut filled = 0;
    loop {
        let received = stream.read(&mut buffer[filled..])?;
        if received == 0 {
            return Ok(());
        }
        filled += received;
        let mut done = 0;
        while done < filled {
            let taken = records.take(&buffer[done..filled])?;
            done += taken.consumed_bytes;
            let Some(record) = taken.record else { break };
            match protocol.take(record, &client, TlsPolicy::Off, start.elapsed()) {
                Step::Reply(bytes) | Step::StartTls(bytes) => stream.write_all(&bytes)?,
                Step::Evaluate(mut request) => {
                    let evaluated = request.evaluate(protocol, files, &client, Waiting::Allowed);
                    drop(request);
                    let Evaluated::Reply(reply) = evaluated else { return Err("it did not wait".into()) };
                    let report = reply.report;
                    let (procedure, operations) = (report.procedure, report.operations);
                    eprintln!("{} {procedure} {operations:?} {}", client.address, report.status);
                    send(&mut stream, reply)?;
                }
                Step::End => return Err("no call".into()),
            }
        }
        buffer.copy_within(done..filled, 0);
        filled -= done;
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1);
    let (Some(root), Some(address)) = (arguments.next(), arguments.next()) else {
        return Err("usage: serve DIRECTORY ADDRESS:PORT".into());
    };
    let files = Arc::new(Directory { root: fs::canonicalize(root)? });
    let seed = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
    let protocol = Arc::new(Protocol::new(Limits::default(), b"linerate-nfs example", seed));
    let start = Instant::now();
    let listener = TcpListener::bind(address.to_str().ok_or("an address")?)?;
    for stream in listener.incoming() {
        let (stream, protocol, files) = (stream?, Arc::clone(&protocol), Arc::clone(&files));
        thread::spawn(move || {
            if let Err(error) = connection(stream, &protocol, &files, start) {
                eprintln!("a connection ended: {error}");
            }
        });
    }
    Ok(())
}
