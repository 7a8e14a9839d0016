import GattherdOutputs
import GattherdSync
import Glibc

/// A regular file that ends with a complete line; closed with the object.
///
/// On a failure the file is truncated to its length before, so a line is there completely or not at all.
final class LinesFile {
    /// The start of each line of ours.
    private static let lineStart = Array("{\"type\":\"".utf8)
    /// The longest unfinished line that is searched.
    private static let longestTail: off_t = 16 << 20

    private let path: LinesPath
    private let descriptor: Int32
    /// The length, which is also that after the last success.
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
        if size == 0 { syncFolder() }
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
    func rotate(keep: Int) throws(OutputFault) {
        for number in stride(from: keep - 1, through: 1, by: -1) {
            let (old, new) = ("\(path.path).\(number)", "\(path.path).\(number + 1)")
            guard unsafe rename(old, new) == 0 || errno == ENOENT else { throw path.fault(errno) }
        }
        guard unsafe rename(path.path, path.path + ".1") == 0 else { throw path.fault(errno) }
        syncFolder()
    }

    /// Makes new names durable.
    private func syncFolder() {
        let folder = unsafe open(path.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { return }
        fsync(folder)
        Glibc.close(folder)
    }

    // MARK: - The last line

    /// Removes an unfinished line of ours, which a kill or a power cut may leave.
    private func removeUnfinishedLine() throws(OutputFault) {
        let end = endOfLastLine()
        guard end < size else { return }
        let start = read(at: end, count: Self.lineStart.count)
        let isOurs = Self.lineStart.starts(with: start) || start.allSatisfy { $0 == 0 }
        guard isOurs, ftruncate(descriptor, off_t(end)) == 0 else {
            let detail = "'\(path.path)' ends with an unfinished line that is not gattherd's; choose another path"
            throw OutputFault(.misconfigured, detail)
        }
        size = end
    }

    /// The position behind the last line break.
    private func endOfLastLine() -> Int64 {
        var end = size
        while end > 0, size - end < Self.longestTail {
            let start = max(0, end - 65_536)
            let chunk = read(at: start, count: Int(end - start))
            if let index = chunk.lastIndex(of: UInt8(ascii: "\n")) { return start + Int64(index) + 1 }
            end = start
        }
        return end
    }

    private func read(at position: Int64, count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let length = unsafe pread(descriptor, &bytes, count, off_t(position))
        return Array(bytes.prefix(max(0, length)))
    }
}
