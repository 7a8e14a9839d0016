import FoundationEssentials
import GattherdLog
import GattherdSync
import Glibc

/// The file with the addresses of the devices that this gateway owned last, one a line.
///
/// Without the centre, a gateway that was restarted connects these. If the file is lost, they wait for the centre.
final class LeaseFile: Sendable {
    /// The maximum number of addresses that are read; a line has at most 64 bytes.
    private static let most = 10_000

    private struct Content: Sendable {
        /// The addresses on the disk.
        var saved: Set<String>
        var wanted: Set<String>
        var isWriting = false
        /// True if the last attempt failed, which is logged once.
        var isFailing = false
    }

    private let path: String
    private let log: Log
    private let content: Locked<Content>

    /// Reads the file; blocks.
    init(path: String, log: Log) {
        (self.path, self.log) = (path, log)
        let data = FileManager.default.contents(atPath: path) ?? Data()
        let lines = String(decoding: data.prefix(Self.most * 65), as: UTF8.self).split(separator: "\n")
        let addresses = Set(lines.prefix(Self.most).map(String.init))
        content = Locked(Content(saved: addresses, wanted: addresses))
    }

    var addresses: Set<String> { content.withLock(\.wanted) }

    /// Replaces the addresses, on a thread of its own; writes nothing if they are the same.
    ///
    /// After a failure the next call tries again, also with the same addresses.
    func save(_ addresses: Set<String>) {
        let isDue = content.withLock { content in
            content.wanted = addresses
            guard content.saved != addresses, !content.isWriting else { return false }
            content.isWriting = true
            return true
        }
        guard isDue else { return }
        let isStarted = NamedThread.start(name: "leases") { [self] in write() }
        if !isStarted { content.withLock { $0.isWriting = false } }
    }

    /// Writes the newest addresses until they are on the disk, or the disk fails.
    private func write() {
        while let wanted = next() {
            do throws(FileError) {
                let draft = try FileDraft(of: path)
                try draft.write(Array(wanted.sorted().map { $0 + "\n" }.joined().utf8))
                try draft.setMode(0o640)
                try draft.replace()
                content.withLock { ($0.saved, $0.isFailing) = (wanted, false) }
            } catch {
                return failed(error)
            }
        }
    }

    /// The addresses to write; `nil` ends the thread.
    private func next() -> Set<String>? {
        content.withLock { content in
            content.isWriting = content.saved != content.wanted
            return content.isWriting ? content.wanted : nil
        }
    }

    private func failed(_ error: FileError) {
        let isFirst = content.withLock { content in
            defer { (content.isWriting, content.isFailing) = (false, true) }
            return !content.isFailing
        }
        guard isFirst else { return }
        log(.warning, "the list of owned devices cannot be written", [LogField("error", error.description)])
    }
}
