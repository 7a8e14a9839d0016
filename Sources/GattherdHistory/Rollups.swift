import GattherdModel

/// Minutes and hours, and the samples that come too late for a minute that has been summed up.
final class Rollups {
    private struct LateKey: Hashable {
        let minute: Int64
        let quantity: Int64
    }

    private let minutes: Rollup
    private let hours: Rollup
    private var late: [LateKey: NumberSummary] = [:]

    init(_ connection: Connection, _ state: StateTable) throws(StoreFault) {
        minutes = try Rollup(.minutes, table: "minute", of: .samples, mark: .minutes, connection, state)
        hours = try Rollup(.hours, table: "hour", of: .minutes, mark: .hours, connection, state)
    }

    /// Samples from then on will be met when their turn comes; earlier ones must be told of by ``addLate(_:of:at:)``.
    var end: Int64 { minutes.end }

    /// True when a minute or an hour before the instant `newest` has not been summed up.
    func isBehind(_ newest: Int64) -> Bool {
        minutes.isBehind(newest) || hours.isBehind(minutes.mark)
    }

    /// Sums some of it up.
    func step(_ newest: Int64) throws(StoreFault) {
        if minutes.isBehind(newest) {
            try minutes.step(before: newest)
        } else {
            try hours.step(before: minutes.mark)
        }
    }

    /// Takes a sample from before ``end``, which is being stored.
    func addLate(_ value: SampleValue, of quantity: Int64, at ts: Int64) {
        guard let number = NumberSummary(value) else { return }
        let key = LateKey(minute: ts.rounded(downTo: Grain.minutes.length), quantity: quantity)
        if late[key]?.add(number) == nil { late[key] = number }
    }

    /// Adds what came late to where it belongs; only in a transaction.
    func writeLate() throws(StoreFault) {
        guard !late.isEmpty else { return }
        defer { late.removeAll() }
        for (key, numbers) in late.sorted(by: { $0.key.minute < $1.key.minute }) {
            try minutes.add(numbers, of: key.quantity, at: key.minute)
            try hours.add(numbers, of: key.quantity, at: key.minute)
        }
    }

    /// Forgets what has not been written, for it is not stored.
    func forgetLate() {
        late.removeAll()
    }
}
