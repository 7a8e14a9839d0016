import GattherdSync

/// The outputs of a process to central databases, so that no two of them deliver to one.
///
/// Their URLs may differ, for example if one goes through a pool of connections. The centre has one cursor for the
/// gateway, which both would move, and each would take the entries of the other for those of another history.
package final class CentreWriters: Sendable {
    private struct Entry {
        let name: String
        /// The centre that the output delivers to.
        var centre: String?
        /// True after the first attempt to reach the centre.
        var hasTried = false
    }

    /// The outputs of this process.
    static let current = CentreWriters()
    /// The time for which an output waits for the first attempts of those before it.
    private static let patience = Duration.seconds(12)

    /// The outputs in the order of the configuration.
    private let entries = Locked<[Entry]>([])

    package init() {}

    /// Adds an output after those that were added before.
    func add(_ name: String) {
        entries.withLock { entries in
            if !entries.contains(where: { $0.name == name }) { entries.append(Entry(name: name)) }
        }
    }

    /// True if there are several outputs.
    var areSeveral: Bool { entries.withLock { $0.count > 1 } }

    /// Records that an output has tried to reach its centre.
    func recordAttempt(of name: String) {
        entries.withLock { entries in
            for index in entries.indices where entries[index].name == name { entries[index].hasTried = true }
        }
    }

    /// Reserves a centre for an output, once the outputs before it have tried to reach theirs.
    ///
    /// So the same output gets it after each start.
    ///
    /// - Returns: The output that has the centre instead; `nil` if this one has it.
    func reserve(_ centre: String, for name: String) async -> String? {
        let end = SuspendingClock.now + Self.patience
        while isFirstAttemptAwaited(before: name), SuspendingClock.now < end {
            guard (try? await Task.sleep(for: .milliseconds(100), clock: .loop)) != nil else { break }
        }
        return entries.withLock { entries in
            if let other = entries.first(where: { $0.centre == centre && $0.name != name }) { return other.name }
            for index in entries.indices where entries[index].name == name { entries[index].centre = centre }
            return nil
        }
    }

    private func isFirstAttemptAwaited(before name: String) -> Bool {
        entries.withLock { entries in !entries.prefix { $0.name != name }.allSatisfy(\.hasTried) }
    }
}
