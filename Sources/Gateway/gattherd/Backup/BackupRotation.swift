import FoundationEssentials
import GattherdModel
import Glibc

/// Numbered backups in one folder; the newest are kept.
///
/// The order is that of the numbers. The times in the names are for people: the clock may be wrong.
struct BackupRotation {
    private static let ending = ".tar"
    private static let draftEnding = ending + BackupArchive.draftEnding

    private let folder: String
    private let start: String
    private let count: Int

    /// - Parameters:
    ///   - folder: The folder.
    ///   - gateway: The gateway, whose name is a part of the names of its backups.
    ///   - count: The number of backups that stay.
    init(folder: String, gateway: String, count: Int) {
        self.folder = folder
        start = "gattherd-\(gateway)-"
        self.count = count
    }

    /// Returns the path of the next backup.
    func path(at time: Timestamp) -> String {
        let last = names.compactMap { number(of: $0) }.max() ?? 0
        let next = String(last + 1)
        let padding = String(repeating: "0", count: max(0, 6 - next.count))
        let stamp = time.rfc3339.prefix(19).filter { $0 != "-" && $0 != ":" }
        return "\(folder)/\(start)\(padding)\(next)-\(stamp)Z\(Self.ending)"
    }

    /// Removes the oldest backups, never `newest`, and the drafts of killed processes.
    func removeOld(after newest: String) {
        let names = names
        for name in names where name.hasPrefix(start) && name.hasSuffix(Self.draftEnding) { removeDraft(name) }
        let others = names.filter { $0 != newest.fileName }
        let backups = others.compactMap { name in number(of: name).map { (number: $0, name: name) } }
        for backup in backups.sorted(by: <).dropLast(count - 1) { unsafe unlink(folder + "/" + backup.name) }
    }

    private var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] }

    /// Returns the number in the name of a backup of the gateway; `nil` for other names.
    private func number(of name: String) -> Int? {
        guard name.hasPrefix(start), name.hasSuffix(Self.ending) else { return nil }
        let parts = name.dropFirst(start.count).dropLast(Self.ending.count).split(
            separator: "-",
            omittingEmptySubsequences: false
        )
        guard parts.count == 2, (6...9).contains(parts[0].count), parts[0].allSatisfy({ $0.isASCII && $0.isNumber }),
            parts[1].count == 16, parts[1].allSatisfy({ $0.isASCII && ($0.isNumber || $0 == "T" || $0 == "Z") })
        else { return nil }
        return Int(parts[0])
    }

    /// Removes a draft that no process writes.
    private func removeDraft(_ name: String) {
        let path = folder + "/" + name
        let descriptor = unsafe open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { unsafe unlink(path) }
        close(descriptor)
    }
}
