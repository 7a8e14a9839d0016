import GattherdOutputs
import GattherdSync
import Glibc

/// A regular file that ends with a complete line; closed with the object.
///
/// On a failure the file is truncated to its previous length, so a line is complete or absent.
final class LinesFile {
    private let path: LinesPath
    private let descriptor: Int32
    /// The length at the last success or ``updateSize()``.
    private(set) var size: Int64 = 0

    /// Opens or creates the file and removes an unfinished line at its end.
    init(_ path: LinesPath) throws(OutputFault) {
        self.path = path
        descriptor = unsafe open(path.path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0o640)
        guard descriptor >= 0 else { throw path.fault(errno) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { throw path.fault(errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw path.notAFile }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let detail = "'\(path.path)' is locked by another program; give each gattherd a file of its own"
            throw OutputFault(.misconfigured, detail)
        }
        size = Int64(status.st_size)
        try removeUnfinishedLine()
        if size == 0 { syncFolder(of: path.resolved) }
    }

    deinit {
        Glibc.close(descriptor)
    }

    /// True if the path still leads to this file, which another program may have moved or removed.
    var isCurrent: Bool {
        var (own, other) = (stat(), stat())
        guard unsafe fstat(descriptor, &own) == 0, unsafe stat(path.path, &other) == 0 else { return false }
        return own.st_ino == other.st_ino && own.st_dev == other.st_dev
    }

    /// Reads the length again: another program may have truncated the file in place.
    func updateSize() throws(OutputFault) {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { throw path.fault(errno) }
        size = Int64(status.st_size)
    }

    /// Appends complete lines.
    func append(_ text: [UInt8], isSynced: Bool) throws(OutputFault) {
        do throws(OutputFault) {
            guard writeAll(text, to: descriptor) else { throw path.fault(errno) }
            if isSynced, fdatasync(descriptor) != 0 { throw path.fault(errno) }
        } catch {
            ftruncate(descriptor, off_t(size))
            throw error
        }
        size += Int64(text.count)
    }

    /// Moves the file to `path.1`, that one to `path.2` and so on; the last of `keep` is replaced.
    ///
    /// Files after a missing number stay, because an interrupted rotation has already moved them. If the path is a
    /// symbolic link, it stays too, and the files are beside its target.
    func rotate(keep: Int) throws(OutputFault) {
        let target = LinesPath(path.resolved)
        let name = target.path
        let first = (1..<keep).first { unsafe access("\(name).\($0)", F_OK) != 0 } ?? keep
        for number in stride(from: first - 1, through: 1, by: -1) {
            let (old, new) = ("\(name).\(number)", "\(name).\(number + 1)")
            guard unsafe rename(old, new) == 0 || errno == ENOENT else { throw target.fault(errno) }
        }
        guard unsafe rename(name, name + ".1") == 0 else { throw target.fault(errno) }
        syncFolder(of: name)
    }

    /// Makes new names durable, if the folder can be read.
    private func syncFolder(of name: String) {
        try? FileDraft.syncFolder(of: name)
    }

    // MARK: - The last line

    /// Removes our own unfinished line, which a kill or a power cut may leave.
    private func removeUnfinishedLine() throws(OutputFault) {
        let tail = LinesTail(size: size) { (position, count) throws(OutputFault) in
            try self.read(at: position, count: count)
        }
        let end = try tail.end()
        guard end < size else { return }
        guard try tail.isUnfinishedLine(at: end), ftruncate(descriptor, off_t(end)) == 0 else {
            let detail = "'\(path.path)' ends with an unfinished line that is not gattherd's; choose another path"
            throw OutputFault(.misconfigured, detail)
        }
        size = end
    }

    /// Reads bytes that are in the file.
    private func read(at position: Int64, count: Int) throws(OutputFault) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var length = 0
        while length < count {
            let part = unsafe bytes[length...].withUnsafeMutableBytes { buffer in
                unsafe pread(descriptor, buffer.baseAddress, buffer.count, off_t(position) + off_t(length))
            }
            if part < 0 && errno == EINTR { continue }
            // Another program has shortened the file.
            guard part != 0 else { throw path.fault(EIO) }
            guard part > 0 else { throw path.fault(errno) }
            length += part
        }
        return bytes
    }
}

/// The end of a file of lines, which may have an unfinished line.
struct LinesTail {
    /// The start of each line that gattherd writes.
    private static let lineStart = Array("{\"type\":\"".utf8)
    /// The longest unfinished line that is searched.
    private static let longest: Int64 = 16 << 20
    private static let chunk: Int64 = 65_536

    let size: Int64
    /// Reads as many bytes at a position; throws if the disk does not give all of them.
    let read: (Int64, Int) throws(OutputFault) -> [UInt8]

    /// Returns the position after the last line break.
    func end() throws(OutputFault) -> Int64 {
        var end = size
        while end > 0, size - end < Self.longest {
            let start = max(0, end - Self.chunk)
            let bytes = try read(start, Int(end - start))
            if let index = bytes.lastIndex(of: UInt8(ascii: "\n")) { return start + Int64(index) + 1 }
            end = start
        }
        return end
    }

    /// True if the bytes from `position` to the end are the beginning of a line of gattherd.
    ///
    /// After its first bytes there may be zeros: a power cut leaves zeros in place of bytes that were not written.
    func isUnfinishedLine(at position: Int64) throws(OutputFault) -> Bool {
        let start = try read(position, Int(min(size - position, Int64(Self.lineStart.count))))
        guard !start.isEmpty else { return false }
        let text = start.prefix { $0 != 0 }
        return Self.lineStart.starts(with: text) && start.dropFirst(text.count).allSatisfy { $0 == 0 }
    }
}
