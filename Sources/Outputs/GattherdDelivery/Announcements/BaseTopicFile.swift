import FoundationEssentials
import GattherdSync

/// The file with the base topics at which the gateway's retained messages may be, the current one first.
///
/// A line has a broker's URL and a base topic. Calls block.
package final class BaseTopicFile: Sendable {
    private struct Line: Sendable, Hashable {
        let broker: String
        let base: String

        var text: String { "\(broker) \(base)\n" }
    }

    /// The maximum number of base topics in the file.
    private static let most = 5

    private let path: String
    private let lines = Locked<[Line]>([])

    package init(path: String) {
        self.path = path
    }

    /// Makes `base` the current base topic.
    ///
    /// - Returns: The former base topics at the same broker, except parents and children of the current one.
    package func use(_ base: String, at broker: String) -> [String] {
        let present = Line(broker: broker, base: base)
        let former = read().filter { $0.broker == broker && !Self.overlaps($0.base, base) }
        let all = Array(([present] + former).prefix(Self.most))
        lines.withLock { $0 = all }
        save()
        return all.dropFirst().map(\.base)
    }

    /// Removes a former base topic.
    package func forget(_ base: String) {
        lines.withLock { lines in lines = lines.prefix(1) + lines.dropFirst().filter { $0.base != base } }
        save()
    }

    private func read() -> [Line] {
        guard let data = FileManager.default.contents(atPath: path) else { return [] }
        return String(decoding: data, as: UTF8.self).split(separator: "\n").prefix(Self.most).compactMap { line in
            let parts = line.split(separator: " ", maxSplits: 1)
            guard let broker = parts.first, parts.count == 2, Self.isPlain(parts[1]) else { return nil }
            return Line(broker: String(broker), base: String(parts[1]))
        }
    }

    /// Writes the file; without it, messages below a former base topic stay at the broker.
    private func save() {
        let text = lines.withLock { $0.map(\.text).joined() }
        do throws(FileError) {
            let draft = try FileDraft(of: path)
            try draft.write(Array(text.utf8))
            try draft.setMode(0o640)
            try draft.replace()
        } catch {
            return
        }
    }

    private static func overlaps(_ one: String, _ other: String) -> Bool {
        one == other || one.hasPrefix(other + "/") || other.hasPrefix(one + "/")
    }

    private static func isPlain(_ base: Substring) -> Bool {
        (1...1024).contains(base.utf8.count) && !base.utf8.contains { "+#\0".utf8.contains($0) }
    }
}
