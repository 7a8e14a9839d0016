import GattherdModel
import GattherdSync
import Glibc

/// The highest number that a reading may have, in a file beside the database.
///
/// The file outlives a database that is lost or restored from an older copy. Its second line is the link to the
/// database, see ``EpochTable``.
struct SequenceFile {
    enum Content: Hashable {
        case missing
        case mark(Int64)
        /// Invalid content, described by the text.
        case garbled(String)
    }

    let path: String

    func read() -> Content {
        switch bytes() {
        case nil: .missing
        case .success(let bytes): Self.parse(bytes)
        case .failure(let fault): .garbled(fault.detail)
        }
    }

    /// Returns the link to the database; `nil` without a valid one.
    func link() -> Int64? {
        guard case .success(let bytes) = bytes(), case .mark = Self.parse(bytes) else { return nil }
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        // Without its line feed the number may be truncated.
        guard lines.count > 2 else { return nil }
        return Int64(String(decoding: lines[1], as: UTF8.self))
    }

    /// Returns the content; `nil` without a file.
    private func bytes() -> Result<ArraySlice<UInt8>, StoreFault>? {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            return errno == ENOENT ? nil : .failure(StoreFault(SystemError.current.description))
        }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = unsafe Glibc.read(descriptor, &bytes, bytes.count)
        guard count >= 0 else { return .failure(StoreFault(SystemError.current.description)) }
        return .success(bytes[..<count])
    }

    /// A decimal number and a line feed at the beginning; without the line feed the number may be truncated.
    private static func parse(_ bytes: ArraySlice<UInt8>) -> Content {
        let digits = bytes.prefix { $0 != UInt8(ascii: "\n") }
        guard digits.count < bytes.count, digits.allSatisfy({ (0x30...0x39).contains($0) }),
            let mark = Int64(String(decoding: digits, as: UTF8.self)), mark <= SequenceNumbers.highest
        else { return .garbled("not a sequence number") }
        return .mark(mark)
    }

    /// Replaces the mark; after a power loss the file has the old mark or the new one.
    ///
    /// On a full disk the mark is overwritten in place, which needs no space: its few bytes lie in one sector.
    func write(_ mark: Int64) throws(StoreFault) {
        try write(mark, link: link())
    }

    /// Replaces the mark and the link.
    func write(_ mark: Int64, link: Int64?) throws(StoreFault) {
        let text = "\(mark)\n" + (link.map { "\($0)\n" } ?? "")
        do throws(StoreFault) {
            try replace(text)
        } catch {
            guard error.kind == .full, case .mark(let old) = read(), mark > old else { throw error }
            try writeAndSync(text, to: path, flags: 0)
        }
    }

    private func replace(_ text: String) throws(StoreFault) {
        let draft = path + ".new"
        // A link that the daemon's user made must not lead root elsewhere.
        unsafe unlink(draft)
        do throws(StoreFault) {
            try writeAndSync(text, to: draft, flags: O_CREAT | O_EXCL)
        } catch {
            unsafe unlink(draft)
            throw error
        }
        guard unsafe rename(draft, path) == 0 else { throw StoreFault(errno: errno, "cannot replace", path: path) }
        try FileSync.directory(of: path)
    }

    private func writeAndSync(_ text: String, to path: String, flags: Int32) throws(StoreFault) {
        let descriptor = unsafe open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | flags, 0o644)
        guard descriptor >= 0 else { throw StoreFault(errno: errno, "cannot create", path: path) }
        defer { close(descriptor) }
        let count = unsafe Glibc.write(descriptor, text, text.utf8.count)
        guard count == text.utf8.count else {
            throw StoreFault(errno: count < 0 ? errno : ENOSPC, "cannot write", path: path)
        }
        try? FileOwner(database: path).apply(to: path)
        guard fsync(descriptor) == 0 else { throw StoreFault(errno: errno, "cannot sync", path: path) }
    }
}
