import FoundationEssentials
import GattherdSync

/// The file with the addresses of the devices that this gateway owned last, one a line.
///
/// Without the centre, a gateway that was restarted connects these. A lost file costs only that.
final class LeaseFile: Sendable {
    /// The most addresses that are read; a line has at most 64 bytes.
    private static let most = 10_000

    private let path: String
    private let saved: Locked<Set<String>>

    /// Reads the file; blocks.
    init(path: String) {
        self.path = path
        let data = FileManager.default.contents(atPath: path) ?? Data()
        let lines = String(decoding: data.prefix(Self.most * 65), as: UTF8.self).split(separator: "\n")
        saved = Locked(Set(lines.prefix(Self.most).map(String.init)))
    }

    var addresses: Set<String> { saved.withLock(\.self) }

    /// Replaces the addresses, on a thread of its own; writes nothing if they are the same.
    func save(_ addresses: Set<String>) {
        let isNew = saved.withLock { saved in
            defer { saved = addresses }
            return saved != addresses
        }
        guard isNew else { return }
        _ = NamedThread.start(name: "leases") { [self] in write() }
    }

    /// Writes the newest addresses, whichever change started the thread.
    private func write() {
        saved.withLock { saved in
            let text = saved.sorted().map { $0 + "\n" }.joined()
            try? Data(text.utf8).write(to: URL(filePath: path), options: .atomic)
        }
    }
}
