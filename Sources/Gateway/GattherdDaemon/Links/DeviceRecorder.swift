import GattherdLog
import GattherdModel
import GattherdSync

/// Records devices in history, apart from their link sessions: a disk that hangs must not delay these.
final class DeviceRecorder: Sendable {
    private struct Waiting: Sendable {
        let record: DeviceRecord
        let time: Timestamp
    }

    private let store: any ReadingStore
    private let log: Log
    /// The newest record of each device that history has not got yet.
    private let waiting = Locked<[String: Waiting]>([:])
    private let (arrivals, arrived) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    init(_ store: any ReadingStore, log: Log) {
        (self.store, self.log) = (store, log)
    }

    /// Queues a record; it replaces a record of the same device that still waits.
    func record(_ record: DeviceRecord, seenAt time: Timestamp) {
        waiting.withLock { $0[record.device] = Waiting(record: record, time: time) }
        arrived.yield()
    }

    /// Stores records until ``finish()`` or until cancelled, then those that wait; called once.
    func run() async {
        for await _ in arrivals { await storeWaiting() }
        await storeWaiting()
    }

    /// Ends ``run()``.
    func finish() {
        arrived.finish()
    }

    private func storeWaiting() async {
        let records = waiting.withLock { waiting in
            defer { waiting = [:] }
            return waiting.values.sorted { $0.record.device < $1.record.device }
        }
        for waiting in records { await write(waiting) }
    }

    private func write(_ waiting: Waiting) async {
        do throws(StoreFault) {
            try await store.record(waiting.record, seenAt: waiting.time)
        } catch {
            let fields = [LogField("device", waiting.record.device), LogField("history.error", error.detail)]
            log(.warning, "the device could not be recorded in history", fields)
        }
    }
}
